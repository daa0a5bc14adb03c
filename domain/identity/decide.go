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
	asked, known := c.Payload.(decide.Payload)
	if !known || asked.CommandType() != c.Type {
		return decide.Decision{}, decide.UnknownCommand(c)
	}
	p, own := asked.(payload)
	permit := s.onlyOperators // for the commands that every journal accepts
	if own {
		permit = func(a decide.Actor) error { return p.permit(s, a) }
	}
	if err := permit(c.Actor); err != nil {
		return decide.Decision{}, err
	}
	if d, done, err := s.core.Decide(at, c, nil); done {
		return d, err
	}
	if !own {
		return decide.Decision{}, decide.UnknownCommand(c)
	}
	events, err := p.decide(s, at, c.Actor)
	if err != nil {
		return decide.Decision{}, err
	}
	return decide.Decision{Outcome: decide.Accepted, Events: events}, nil
}

// onlyOperators refuses actors other than the system and active operators. Only these change users, brokers and signing
// keys.
func (s *State) onlyOperators(a decide.Actor) error {
	if !s.mayChange(a) {
		return decide.Refuse(decide.Forbidden, "FORBIDDEN", "only an operator may change users, brokers and keys")
	}
	return nil
}

// onlyUsers refuses actors other than active users, since API keys belong to a user.
func (s *State) onlyUsers(a decide.Actor) error {
	if !s.isUser(a) {
		return decide.Refuse(decide.Forbidden, "FORBIDDEN", "API keys belong to an active user")
	}
	return nil
}

// onlySystem refuses actors other than the system. It protects commands that report the system's own observations.
func (*State) onlySystem(a decide.Actor) error {
	if a.System == "" {
		return decide.Refuse(decide.Forbidden, "FORBIDDEN", "only the system says this")
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

func (s *State) registerBroker(at decide.Stamp, payload *RegisterBroker) (decide.Event, error) {
	if !isCode(payload.Broker, maxCode, "._-") {
		return nil, decide.InvalidField("broker", "the broker's code must be 1 to 32 characters out of letters, digits and ._-")
	}
	if !isText(payload.Name, maxName) {
		return nil, decide.InvalidField("name", "the name must be 1 to 64 characters without control characters")
	}
	if _, taken := s.brokers[payload.Broker]; taken {
		return nil, &decide.Refusal{Kind: decide.Conflict, Code: "BROKER_TAKEN", Field: "broker", Message: "the broker exists already"}
	}
	return &BrokerRegistered{Broker{Broker: payload.Broker, Name: payload.Name, Created: at.Time}}, nil
}

func (s *State) registerUser(at decide.Stamp, payload *RegisterUser) (decide.Event, error) {
	u := User{Username: payload.Username, Broker: payload.Broker, CustomerCode: payload.CustomerCode, Scopes: slices.Clone(payload.Scopes),
		IsActive: payload.IsActive, IsVerified: payload.IsVerified, RateLimit: cloneLimit(payload.RateLimit),
		PasswordHash: slices.Clone(payload.PasswordHash), Created: at.Time, Updated: at.Time}
	if err := check(&u); err != nil {
		return nil, err
	}
	if _, known := s.brokers[u.Broker]; !known {
		return nil, &decide.Refusal{Kind: decide.Unacceptable, Code: "BROKER_UNKNOWN", Field: "broker", Message: "there is no such broker"}
	}
	if _, taken := s.users[u.Username]; taken {
		return nil, &decide.Refusal{Kind: decide.Conflict, Code: "USERNAME_TAKEN", Field: "username", Message: "the username is taken"}
	}
	return &UserRegistered{u}, nil
}

func (s *State) changeUser(at decide.Stamp, payload *ChangeUser) (decide.Event, error) {
	old, known := s.users[payload.Username]
	if !known {
		return nil, decide.Refuse(decide.NotFound, "USER_NOT_FOUND", "there is no such user")
	}
	u := *old
	u.Updated = at.Time
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
		return nil, err
	}
	return &UserChanged{u}, nil
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

func (s *State) addSigningKey(at decide.Stamp, payload *AddSigningKey) (decide.Event, error) {
	switch {
	case !isCode(payload.KID, maxUsername, "._-"):
		return nil, decide.InvalidField("kid", "the key id must be 1 to 64 characters out of letters, digits and ._-")
	case len(payload.Public) != ed25519.PublicKeySize:
		return nil, decide.InvalidField("public", "the public key must have 32 bytes")
	case len(payload.Private) == 0 || len(payload.Private) > maxSealed:
		return nil, decide.InvalidField("private", "the sealed private key is missing or too long")
	}
	if _, known := s.Key(payload.KID); known {
		return nil, decide.Refuse(decide.Conflict, "SIGNING_KEY_TAKEN", "there is a signing key with this id")
	}
	return &SigningKeyAdded{SigningKey{KID: payload.KID, Public: slices.Clone(payload.Public), Private: slices.Clone(payload.Private),
		Created: at.Time}}, nil
}

func (s *State) retireSigningKey(at decide.Stamp, payload *RetireSigningKey) (decide.Event, error) {
	k, known := s.Key(payload.KID)
	switch {
	case !known:
		return nil, decide.Refuse(decide.NotFound, "SIGNING_KEY_NOT_FOUND", "there is no such signing key")
	case k.Retired != 0:
		return nil, decide.Refuse(decide.Conflict, "SIGNING_KEY_RETIRED", "the signing key is retired already")
	case len(s.Keys()) == 1:
		return nil, decide.Refuse(decide.Conflict, "LAST_SIGNING_KEY", "the only signing key cannot be retired: add another one first")
	}
	return &SigningKeyRetired{KID: payload.KID, Retired: at.Time}, nil
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
