package identity

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// governed is the state as decide.Core.Govern needs it.
type governed struct{ *State }

// Governed returns the state's rules, as far as four eyes need them.
func (s *State) Governed() decide.Governed { return governed{s} }

// ProtectsUsers reports whether the policy covers both new users and changes of users. Otherwise one operator can act as two
// persons in every journal.
func (s *State) ProtectsUsers() bool {
	policy := s.core.Policy()
	return policy.Covers(&decide.Subject{Action: CommandRegisterUser}) && policy.Covers(&decide.Subject{Action: CommandChangeUser})
}

// Act implements decide.Governed.
func (g governed) Act(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	return g.act(at, c)
}

// Payloads implements decide.Governed.
func (governed) Payloads() *decide.Payloads { return Payloads() }

// Actions implements decide.Governed. This journal has no due work, so CommandPutBackDue is missing.
func (governed) Actions() []decide.Action {
	return []decide.Action{
		{Name: CommandRegisterUser},
		{Name: CommandChangeUser},
		{Name: CommandLimitAPIKey},
		{Name: CommandAddSigningKey},
		{Name: CommandRetireSigningKey},
		{Name: decide.CommandRotateCheckpointKey},
		{Name: decide.CommandActivateRules},
	}
}

// Subject implements decide.Governed. No policy covers what users do for themselves: a change that does not widen their rights,
// and their API keys, which have at most the user's scopes.
func (g governed) Subject(c decide.Command) (decide.Subject, bool) {
	s := decide.Subject{Action: c.Type}
	switch p := c.Payload.(type) {
	case *RegisterUser:
		s.Objects = []string{userObject(p.Username)}
	case *ChangeUser:
		s.Objects = []string{userObject(p.Username)}
		return s, p.Username != c.Actor.Sub || g.widens(p)
	case *LimitAPIKey:
		s.Objects = []string{apiKeyObject(p.ID)}
	case *AddSigningKey:
		s.Objects = []string{newSigningKeys}
	case *RetireSigningKey:
		s.Objects = []string{signingKeyObject(p.KID)}
	default:
		return s, false
	}
	return s, true
}

// widens reports whether a change gives the user a right, or may do so. A password gives none, and neither do fewer scopes, the
// confinement of a user that has no customer, and a status of false.
func (s *State) widens(p *ChangeUser) bool {
	u, known := s.users[p.Username]
	if !known {
		return true
	}
	return slices.ContainsFunc(p.Scopes, func(scope string) bool { return !u.Has(scope) }) ||
		p.CustomerCode != nil && *p.CustomerCode != u.CustomerCode && u.CustomerCode != "" ||
		p.IsActive != nil && *p.IsActive && !u.IsActive ||
		p.IsVerified != nil && *p.IsVerified && !u.IsVerified ||
		p.RateLimit != nil && (u.RateLimit == nil || *p.RateLimit != *u.RateLimit) ||
		p.ClearRateLimit && u.RateLimit != nil
}

// permitProposer refuses to confirm an open proposal if its proposer is no longer an active operator.
func (s *State) permitProposer(at decide.Stamp, c decide.Command) error {
	confirm, ok := c.Payload.(*decide.ConfirmProposal)
	if !ok {
		return nil
	}
	all := s.core.Proposals()
	i := slices.IndexFunc(all, func(p decide.Proposal) bool { return p.ID == confirm.ID })
	if i < 0 || all[i].StatusAt(at.Time) != decide.StatusOpen || s.mayChange(all[i].Proposer) {
		return nil
	}
	return decide.Refuse(decide.Conflict, "PROPOSER_NOT_OPERATOR", "the proposer is no active operator any longer: reject the proposal")
}

// newSigningKeys is the object of proposals to add a signing key.
const newSigningKeys = "signing_keys"

func userObject(username string) string  { return "user/" + username }
func apiKeyObject(id scalar.ID) string   { return "api_key/" + id.String() }
func signingKeyObject(kid string) string { return "signing_key/" + kid }

// touched returns the objects of proposals that an event changes. The use of an API key changes none.
func touched(e decide.Event) []string {
	switch e := e.(type) {
	case *UserRegistered:
		return []string{userObject(e.Username)}
	case *UserChanged:
		return []string{userObject(e.Username)}
	case *APIKeyLimited:
		return []string{apiKeyObject(e.ID)}
	case *APIKeyRevoked:
		return []string{apiKeyObject(e.ID)}
	case *SigningKeyAdded:
		return []string{newSigningKeys}
	case *SigningKeyRetired:
		return []string{signingKeyObject(e.KID)}
	}
	return nil
}

// The forms of proposed commands in the log. Each has the fields of a payload, so that the compiler compares the two. Secrets are
// sealed, as in the events.
type (
	newUserContent struct {
		Username     string     `json:"username"`
		Broker       string     `json:"broker"`
		CustomerCode string     `json:"customer_code,omitzero"`
		Scopes       []string   `json:"scopes"`
		IsActive     bool       `json:"is_active"`
		IsVerified   bool       `json:"is_verified"`
		RateLimit    *RateLimit `json:"rate_limit,omitzero"`
		PasswordHash Sealed     `json:"password_hash"`
	}
	userContent struct {
		Username       string     `json:"username"`
		CustomerCode   *string    `json:"customer_code,omitzero"`
		Scopes         []string   `json:"scopes,omitzero"`
		IsActive       *bool      `json:"is_active,omitzero"`
		IsVerified     *bool      `json:"is_verified,omitzero"`
		RateLimit      *RateLimit `json:"rate_limit,omitzero"`
		ClearRateLimit bool       `json:"clear_rate_limit,omitzero"`
		PasswordHash   Sealed     `json:"password_hash,omitzero"`
	}
	keyLimitContent struct {
		Username  string     `json:"username"`
		ID        scalar.ID  `json:"id"`
		RateLimit *RateLimit `json:"rate_limit,omitzero"`
	}
	signingKeyContent struct {
		KID     string `json:"kid"`
		Public  []byte `json:"public"`
		Private Sealed `json:"private"`
	}
	kidContent struct {
		KID string `json:"kid"`
	}
)

// Content implements decide.Proposable.
func (p *RegisterUser) Content() any { return (*newUserContent)(p) }

// Content implements decide.Proposable.
func (p *ChangeUser) Content() any { return (*userContent)(p) }

// Content implements decide.Proposable.
func (p *LimitAPIKey) Content() any { return (*keyLimitContent)(p) }

// Content implements decide.Proposable.
func (p *AddSigningKey) Content() any { return (*signingKeyContent)(p) }

// Content implements decide.Proposable.
func (p *RetireSigningKey) Content() any { return (*kidContent)(p) }
