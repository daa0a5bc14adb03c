package identity

import (
	"bytes"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// RecordLimit is the greatest size of a record's value in bytes.
const RecordLimit = 256 << 10

const (
	// rulesOfCommitments is the first number of rules with the events of commitments. A build without these rules stops at
	// the first of them.
	rulesOfCommitments = 2
	// rulesOfCheckpointKeys is the first number of rules with rotations of the keys of transparency logs.
	rulesOfCheckpointKeys = 3
	// rulesOfFourEyes is the first number of rules with policies and proposals (decide.Core.Govern).
	rulesOfFourEyes = 4
	// rulesOfReasons is the first number of rules with reasons for the end of proposals.
	rulesOfReasons = 5
	// rulesSupported is the highest number of rules that this build supports.
	rulesSupported = rulesOfReasons
)

// Rules returns the rules of the identity journal.
func Rules() decide.Rules { return rules{} }

type rules struct{}

func (rules) Journal() string            { return "identity" }
func (rules) NewState() decide.State     { return NewState() }
func (rules) Limit() int                 { return RecordLimit }
func (rules) Newest() int                { return rulesSupported }
func (rules) Registry() *decide.Registry { return eventTable.Registry() }

// eventTable is the table of the journal's events.
var eventTable = decide.NewEvents(
	decide.On((*State).brokerRegistered),
	decide.On((*State).userRegistered),
	decide.On((*State).userChanged),
	decide.On((*State).signingKeyAdded),
	decide.On((*State).signingKeyRetired),
	decide.On((*State).apiKeyCreated),
	decide.On((*State).apiKeyRevoked),
	decide.On((*State).apiKeyUsed),
	decide.On((*State).apiKeyLimited),
)

// State is the fold of the identity journal. The objects that its methods return are shared: callers MUST NOT change
// them.
type State struct {
	decide.Facts
	brokers map[string]*Broker
	users   map[string]*User
	keys    []*SigningKey // in the order of addition, including retired keys
	apiKeys apiKeys
	core    decide.Core

	brokerOrder []string // in the order of registration
	userOrder   []string
}

// NewState returns the state before genesis.
func NewState() *State {
	numbers := decide.Numbers{Newest: rulesSupported, Commitments: rulesOfCommitments, FourEyes: rulesOfFourEyes, Reasons: rulesOfReasons, CheckpointKeys: rulesOfCheckpointKeys}
	s := &State{brokers: make(map[string]*Broker), users: make(map[string]*User), apiKeys: newAPIKeys(), core: decide.NewCore(numbers)}
	s.Facts = &s.core
	return s
}

// Evolve applies one valid record. Events of other types, such as the journal's own, change nothing here.
func (s *State) Evolve(at decide.Stamp, c decide.Recorded, _ decide.Outcome, events []decide.Event) {
	s.core.Touch(at, events, touched)
	s.core.Evolve(at, c, events)
	for _, e := range events {
		eventTable.Apply(s, e)
	}
}

func (s *State) brokerRegistered(e *BrokerRegistered) {
	if _, known := s.brokers[e.Broker.Broker]; !known {
		s.brokerOrder = append(s.brokerOrder, e.Broker.Broker)
	}
	broker := e.Broker // copied: the state shares no memory with events, since others read them concurrently
	s.brokers[broker.Broker] = &broker
}

func (s *State) userRegistered(e *UserRegistered) { s.setUser(e.User.clone()) }

func (s *State) userChanged(e *UserChanged) { s.setUser(e.User.clone()) }

func (s *State) signingKeyAdded(e *SigningKeyAdded) { s.setKey(e.SigningKey.clone()) }

func (s *State) signingKeyRetired(e *SigningKeyRetired) {
	if k, known := s.Key(e.KID); known {
		retired := *k
		retired.Retired = e.Retired
		s.setKey(&retired)
	}
}

func (s *State) apiKeyCreated(e *APIKeyCreated) { s.apiKeys.add(e.APIKey.clone()) }

func (s *State) apiKeyRevoked(e *APIKeyRevoked) { s.apiKeys.remove(e.ID) }

func (s *State) apiKeyUsed(e *APIKeyUsed) {
	s.apiKeys.change(e.ID, func(k *APIKey) { k.LastUsed = e.Day })
}

func (s *State) apiKeyLimited(e *APIKeyLimited) {
	s.apiKeys.change(e.ID, func(k *APIKey) { k.RateLimit = cloneLimit(e.RateLimit) })
}

// setUser stores the user of an event. Sealing the same password twice gives different ciphertexts, so an equal
// ciphertext means that the password did not change.
func (s *State) setUser(u *User) {
	u.PasswordChanged = u.Updated
	if old, known := s.users[u.Username]; !known {
		s.userOrder = append(s.userOrder, u.Username)
	} else if bytes.Equal(old.PasswordHash, u.PasswordHash) {
		u.PasswordChanged = old.PasswordChanged
	}
	s.users[u.Username] = u
}

func (s *State) setKey(k *SigningKey) {
	i := slices.IndexFunc(s.keys, func(x *SigningKey) bool { return x.KID == k.KID })
	if i < 0 {
		s.keys = append(s.keys, k)
		return
	}
	s.keys[i] = k
}

// Due returns Nothing: no work becomes due in this journal.
func (s *State) Due(scalar.Time) decide.Urgency { return decide.Nothing }

// NextDue returns false: no work becomes due in this journal.
func (s *State) NextDue() (scalar.Time, bool) { return 0, false }

// Step is never called, since no work becomes due.
func (s *State) Step(decide.Stamp, bool) decide.Decision { return decide.Decision{} }

// SetAside is never called, since no work becomes due.
func (s *State) SetAside(decide.Stamp, string) decide.Decision { return decide.Decision{} }

// Broker returns a tenant.
func (s *State) Broker(code string) (*Broker, bool) {
	b, ok := s.brokers[code]
	return b, ok
}

// Brokers returns all tenants in the order of registration.
func (s *State) Brokers() []*Broker {
	return inOrder(s.brokerOrder, s.brokers)
}

// inOrder returns the values of the keys.
func inOrder[V any](keys []string, of map[string]V) []V {
	out := make([]V, 0, len(keys))
	for _, key := range keys {
		out = append(out, of[key])
	}
	return out
}

// User returns a user.
func (s *State) User(username string) (*User, bool) {
	u, ok := s.users[username]
	return u, ok
}

// Users returns all users in the order of registration.
func (s *State) Users() []*User {
	return inOrder(s.userOrder, s.users)
}

// Key returns a signing key, retired or not.
func (s *State) Key(kid string) (*SigningKey, bool) {
	for _, k := range s.keys {
		if k.KID == kid {
			return k, true
		}
	}
	return nil, false
}

// Keys returns the signing keys that are not retired, in the order of addition. Tokens are verified with these keys.
func (s *State) Keys() []*SigningKey {
	out := make([]*SigningKey, 0, len(s.keys))
	for _, k := range s.keys {
		if k.Retired == 0 {
			out = append(out, k)
		}
	}
	return out
}

// KeyDelay is the time between the publication of a new key and its first use for signing. Nodes with a slightly lagging
// fold and clients with a cached key set have the key before they receive its first token.
const KeyDelay = 5 * scalar.Second

// SigningKey returns the key for signing: the newest key that is at least KeyDelay old or, if all are younger, the
// oldest key.
func (s *State) SigningKey(now scalar.Time) (*SigningKey, bool) {
	keys := s.Keys()
	for _, k := range slices.Backward(keys) {
		if now-k.Created >= KeyDelay {
			return k, true
		}
	}
	if len(keys) == 0 {
		return nil, false
	}
	return keys[0], true
}
