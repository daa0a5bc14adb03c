package identity

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// The limits of the stored values.
const (
	maxCode     = 32
	maxUsername = 64
	maxName     = 64
	maxSealed   = 4096
)

// Decide returns the consequences of a command.
func (s *State) Decide(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	payload, known := c.Payload.(decide.Payload)
	if !known || payload.CommandType() != c.Type {
		return decide.Decision{}, decide.UnknownCommand(c)
	}
	if err := s.permit(c); err != nil {
		return decide.Decision{}, err
	}
	if err := s.permitProposer(at, c); err != nil {
		return decide.Decision{}, err
	}
	if d, done, err := s.core.Govern(at, c, governed{s}); done {
		return d, err
	}
	return s.act(at, c)
}

// act decides a command that needs no second person, or has one.
func (s *State) act(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	if d, done, err := s.core.Decide(at, c, nil); done {
		return d, err
	}
	return commandTable.Decide(request{s, at, c.Actor}, c)
}

// request is a command that is being decided. It only reads the state.
type request struct {
	*State
	at    decide.Stamp
	actor decide.Actor
}

// accepted returns an accepted decision that records these events.
func accepted(events ...decide.Event) (decide.Decision, error) {
	return decide.Decision{Outcome: decide.Accepted, Events: events}, nil
}

// permit refuses a command that the actor may not give.
func (s *State) permit(c decide.Command) error {
	switch c.Type {
	case CommandCreateAPIKey, CommandRevokeAPIKey:
		if !s.isUser(c.Actor) {
			return decide.Refuse(decide.Forbidden, "FORBIDDEN", "API keys belong to an active user")
		}
	case CommandUseAPIKey, CommandReplaceKeys: // which report the system's own observations
		if c.Actor.System == "" {
			return decide.Refuse(decide.Forbidden, "FORBIDDEN", "only the system says this")
		}
	default:
		if !s.mayChange(c.Actor) {
			return decide.Refuse(decide.Forbidden, "FORBIDDEN", "only an operator may change users, brokers and keys")
		}
	}
	return nil
}

// mayChange reports whether the actor is the system or an active operator.
func (s *State) mayChange(a decide.Actor) bool {
	if a.System != "" {
		return true
	}
	u, ok := s.users[a.Sub]
	return ok && u.IsActive && u.Broker == a.Broker && u.Has(ScopeOperator)
}

func (r request) registerBroker(payload *RegisterBroker) (decide.Decision, error) {
	if !isCode(payload.Broker, maxCode, "._-") {
		return decide.Decision{}, decide.InvalidField("broker", "the broker's code must be 1 to 32 characters out of letters, digits and ._-")
	}
	if !isText(payload.Name, maxName) {
		return decide.Decision{}, decide.InvalidField("name", "the name must be 1 to 64 characters without control characters")
	}
	if _, taken := r.brokers[payload.Broker]; taken {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Conflict, Code: "BROKER_TAKEN", Field: "broker", Message: "the broker exists already"}
	}
	return accepted(&BrokerRegistered{Broker{Broker: payload.Broker, Name: payload.Name, Created: r.at.Time}})
}

func (r request) registerUser(payload *RegisterUser) (decide.Decision, error) {
	u := User{Username: payload.Username, Broker: payload.Broker, CustomerCode: payload.CustomerCode, Scopes: slices.Clone(payload.Scopes),
		IsActive: payload.IsActive, IsVerified: payload.IsVerified, RateLimit: cloneLimit(payload.RateLimit),
		PasswordHash: slices.Clone(payload.PasswordHash), Created: r.at.Time, Updated: r.at.Time}
	if err := check(&u); err != nil {
		return decide.Decision{}, err
	}
	if _, known := r.brokers[u.Broker]; !known {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Unacceptable, Code: "BROKER_UNKNOWN", Field: "broker", Message: "there is no such broker"}
	}
	if _, taken := r.users[u.Username]; taken {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Conflict, Code: "USERNAME_TAKEN", Field: "username", Message: "the username is taken"}
	}
	return accepted(&UserRegistered{u})
}

func (r request) changeUser(payload *ChangeUser) (decide.Decision, error) {
	old, known := r.users[payload.Username]
	if !known {
		return decide.Decision{}, decide.Refuse(decide.NotFound, "USER_NOT_FOUND", "there is no such user")
	}
	u := *old
	u.Updated = r.at.Time
	if payload.CustomerCode != nil {
		u.CustomerCode = *payload.CustomerCode
	}
	if payload.Scopes != nil {
		u.Scopes = slices.Clone(payload.Scopes)
	}
	if payload.IsActive != nil {
		u.IsActive = *payload.IsActive
	}
	if payload.IsVerified != nil {
		u.IsVerified = *payload.IsVerified
	}
	if payload.RateLimit != nil {
		u.RateLimit = cloneLimit(payload.RateLimit)
	} else if payload.ClearRateLimit {
		u.RateLimit = nil
	}
	if payload.PasswordHash != nil {
		u.PasswordHash = slices.Clone(payload.PasswordHash)
	}
	if err := check(&u); err != nil {
		return decide.Decision{}, err
	}
	return accepted(&UserChanged{u})
}

func check(u *User) error {
	switch {
	case !isCode(u.Username, maxUsername, "._@+-"):
		return decide.InvalidField("username", "the username must be 1 to 64 characters out of letters, digits and ._@+-")
	case !isCode(u.Broker, maxCode, "._-"):
		return decide.InvalidField("broker", "the broker's code must be 1 to 32 characters out of letters, digits and ._-")
	case u.CustomerCode != "" && !isCode(u.CustomerCode, maxCode, "._-"):
		return decide.InvalidField("customer_code", "the customer code must be 1 to 32 characters out of letters, digits and ._-")
	case len(u.PasswordHash) == 0 || len(u.PasswordHash) > maxSealed:
		return decide.InvalidField("password", "the password's sealed hash is missing or too long")
	}
	if err := checkScopes(u.Scopes); err != nil {
		return err
	}
	return checkLimit(u.RateLimit)
}

func checkLimit(l *RateLimit) error {
	if l != nil && (l.PerSecond < 1 || l.Burst < 1 || l.PerSecond > MaxRate || l.Burst > MaxRate) {
		return decide.InvalidField("rate_limit", fmt.Sprintf("per_second and burst must be between 1 and %d", MaxRate))
	}
	return nil
}

func checkScopes(scopes []string) error {
	if len(scopes) == 0 {
		return decide.InvalidField("scopes", "at least one scope is needed")
	}
	for i, scope := range scopes {
		if !slices.Contains(Scopes(), scope) {
			return decide.InvalidField("scopes", "a scope must be one of "+strings.Join(Scopes(), ", "))
		}
		if slices.Contains(scopes[:i], scope) {
			return decide.InvalidField("scopes", "the scope "+scope+" is given more than once")
		}
	}
	return nil
}

func (r request) addSigningKey(payload *AddSigningKey) (decide.Decision, error) {
	switch {
	case !isCode(payload.KID, maxUsername, "._-"):
		return decide.Decision{}, decide.InvalidField("kid", "the key id must be 1 to 64 characters out of letters, digits and ._-")
	case len(payload.Public) != ed25519.PublicKeySize:
		return decide.Decision{}, decide.InvalidField("public", "the public key must have 32 bytes")
	case len(payload.Private) == 0 || len(payload.Private) > maxSealed:
		return decide.Decision{}, decide.InvalidField("private", "the sealed private key is missing or too long")
	}
	if _, known := r.Key(payload.KID); known {
		return decide.Decision{}, decide.Refuse(decide.Conflict, "SIGNING_KEY_TAKEN", "there is a signing key with this id")
	}
	return accepted(&SigningKeyAdded{SigningKey{KID: payload.KID, Public: slices.Clone(payload.Public), Private: slices.Clone(payload.Private),
		Created: r.at.Time}})
}

// replaceSigningKeys adds a key and retires all others.
func (r request) replaceSigningKeys(payload *ReplaceSigningKeys) (decide.Decision, error) {
	d, err := r.addSigningKey(&payload.AddSigningKey)
	if err != nil {
		return d, err
	}
	for _, k := range r.Keys() {
		d.Events = append(d.Events, &SigningKeyRetired{KID: k.KID, Retired: r.at.Time})
	}
	return d, nil
}

func (r request) retireSigningKey(payload *RetireSigningKey) (decide.Decision, error) {
	k, known := r.Key(payload.KID)
	switch {
	case !known:
		return decide.Decision{}, decide.Refuse(decide.NotFound, "SIGNING_KEY_NOT_FOUND", "there is no such signing key")
	case k.Retired != 0:
		return decide.Decision{}, decide.Refuse(decide.Conflict, "SIGNING_KEY_RETIRED", "the signing key is retired already")
	case len(r.Keys()) == 1:
		return decide.Decision{}, decide.Refuse(decide.Conflict, "LAST_SIGNING_KEY", "the only signing key cannot be retired: add another one first")
	}
	return accepted(&SigningKeyRetired{KID: payload.KID, Retired: r.at.Time})
}

func cloneLimit(l *RateLimit) *RateLimit {
	if l == nil {
		return nil
	}
	c := *l
	return &c
}

// isCode reports whether s is 1 to limit characters out of ASCII letters, digits and the extra ones.
func isCode(s string, limit int, extra string) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(extra, c) < 0 {
			return false
		}
	}
	return true
}

// isText reports whether s is 1 to limit characters of valid text without control characters.
func isText(s string, limit int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= limit && !strings.ContainsFunc(s, unicode.IsControl)
}
