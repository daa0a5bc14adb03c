package identity

import (
	"crypto/sha256"
	"net/netip"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The limits of API keys.
const (
	// MaxAPIKeys is the greatest number of keys of a user, including expired keys that are not revoked.
	MaxAPIKeys = 100
	// MaxAllowed is the greatest number of addresses and networks in a key's allow list.
	MaxAllowed = 32

	maxPrefix = 16
)

// APIKey gives programs access: a client that sends the secret acts for the key's user. The key holds only the hash of
// the secret.
type APIKey struct {
	ID       scalar.ID `json:"id"`
	Username string    `json:"username"`
	Broker   string    `json:"broker"` // the user's broker
	Name     string    `json:"name"`
	Prefix   string    `json:"prefix"` // the beginning of the secret, by which people recognize the key
	Hash     []byte    `json:"hash"`   // SHA-256 of the secret; the secret has 256 random bits, so a salt is unnecessary
	Scopes   []string  `json:"scopes"` // a scope that the user does not have is without effect
	// CustomerCode confines the key to one account.
	CustomerCode string `json:"customer_code,omitempty"`
	// IPAllowList lists the addresses and networks from which the key may be used. An empty list allows all.
	IPAllowList []string    `json:"ip_allow_list,omitempty"`
	ExpiresAt   scalar.Time `json:"expires_at,omitzero"` // zero: never
	Created     scalar.Time `json:"created"`
	// LastUsed is the start of the last UTC day on which the key was used, or zero before the first use. It is set by
	// APIKeyUsed.
	LastUsed scalar.Time `json:"-"`
	// RateLimit is the key's own rate limit. If it is nil, the key counts toward its user's limit. It is set by
	// APIKeyLimited.
	RateLimit *RateLimit `json:"-"`
}

func (k *APIKey) clone() *APIKey {
	c := *k
	c.Hash, c.Scopes, c.IPAllowList = slices.Clone(k.Hash), slices.Clone(k.Scopes), slices.Clone(k.IPAllowList)
	c.RateLimit = cloneLimit(k.RateLimit)
	return &c
}

// Day returns the start of the UTC day that contains t.
func Day(t scalar.Time) scalar.Time { return t - t%scalar.Day }

// apiKeys holds the keys that are not revoked.
type apiKeys struct {
	byID   map[scalar.ID]*APIKey
	byHash map[[sha256.Size]byte]scalar.ID
	byUser map[string][]scalar.ID // in the order of their creation
}

func newAPIKeys() apiKeys {
	return apiKeys{make(map[scalar.ID]*APIKey), make(map[[sha256.Size]byte]scalar.ID), make(map[string][]scalar.ID)}
}

func hashOf(k *APIKey) (h [sha256.Size]byte) {
	copy(h[:], k.Hash)
	return h
}

func (a *apiKeys) add(k *APIKey) {
	a.byID[k.ID] = k
	a.byHash[hashOf(k)] = k.ID
	a.byUser[k.Username] = append(a.byUser[k.Username], k.ID)
}

func (a *apiKeys) remove(id scalar.ID) {
	k, known := a.byID[id]
	if !known {
		return
	}
	delete(a.byID, id)
	delete(a.byHash, hashOf(k))
	left := slices.DeleteFunc(a.byUser[k.Username], func(other scalar.ID) bool { return other == id })
	if a.byUser[k.Username] = left; len(left) == 0 {
		delete(a.byUser, k.Username)
	}
}

func (a *apiKeys) change(id scalar.ID, change func(*APIKey)) {
	if k, known := a.byID[id]; known {
		changed := *k // readers may hold the old key
		change(&changed)
		a.byID[id] = &changed
	}
}

// APIKey finds a key that is not revoked by the SHA-256 of the secret.
func (s *State) APIKey(hash [sha256.Size]byte) (*APIKey, bool) {
	k, ok := s.apiKeys.byID[s.apiKeys.byHash[hash]]
	return k, ok
}

// APIKeys returns a user's keys that are not revoked, in the order of their creation.
func (s *State) APIKeys(username string) []*APIKey {
	out := make([]*APIKey, 0, len(s.apiKeys.byUser[username]))
	for _, id := range s.apiKeys.byUser[username] {
		out = append(out, s.apiKeys.byID[id])
	}
	return out
}

// createAPIKey creates a key for the user who gives the command. An API key must not create another key. The handler has
// to refuse that, since a command's actor does not show how the user authenticated.
func (r request) createAPIKey(payload *CreateAPIKey) (decide.Decision, error) {
	u := r.users[r.actor.Sub]
	k := APIKey{ID: r.at.Derive(0), Username: u.Username, Broker: u.Broker, Name: payload.Name, Prefix: payload.Prefix,
		Hash: slices.Clone(payload.Hash), Scopes: slices.Clone(payload.Scopes), CustomerCode: payload.CustomerCode,
		ExpiresAt: payload.ExpiresAt, Created: r.at.Time}
	if k.CustomerCode == "" {
		k.CustomerCode = u.CustomerCode
	}
	var err error
	if k.IPAllowList, err = allowList(payload.IPAllowList); err != nil {
		return decide.Decision{}, err
	}
	if err := r.checkAPIKey(r.at, u, &k); err != nil {
		return decide.Decision{}, err
	}
	return accepted(&APIKeyCreated{k})
}

// isUser reports whether the actor is an active user. It uses the state and not the token.
func (s *State) isUser(a decide.Actor) bool {
	u, known := s.users[a.Sub]
	return a.System == "" && known && u.IsActive && u.Broker == a.Broker && u.CustomerCode == a.Customer
}

func (s *State) checkAPIKey(at decide.Stamp, u *User, k *APIKey) error {
	switch {
	case !isText(k.Name, maxName):
		return decide.InvalidField("name", "the name must be 1 to 64 characters without control characters")
	case len(k.Hash) != sha256.Size:
		return decide.InvalidField("hash", "the hash must have 32 bytes")
	case !isCode(k.Prefix, maxPrefix, "_-"):
		return decide.InvalidField("prefix", "the prefix must be 1 to 16 characters out of letters, digits and _-")
	case k.CustomerCode != "" && !isCode(k.CustomerCode, maxCode, "._-"):
		return decide.InvalidField("customer_code", "the customer code must be 1 to 32 characters out of letters, digits and ._-")
	case k.ExpiresAt != 0 && k.ExpiresAt <= at.Time:
		return decide.InvalidField("expires_at", "the key would have expired already")
	}
	if err := checkScopes(k.Scopes); err != nil {
		return err
	}
	for _, scope := range k.Scopes {
		if !u.Has(scope) {
			return &decide.Refusal{Kind: decide.Unacceptable, Code: "SCOPE_NOT_HELD", Field: "scopes", Message: "the user has no scope " + scope}
		}
	}
	if u.CustomerCode != "" && k.CustomerCode != u.CustomerCode {
		return &decide.Refusal{Kind: decide.Unacceptable, Code: "UNKNOWN_CUSTOMER", Field: "customer_code", Message: "the user has no such customer"}
	}
	if _, taken := s.apiKeys.byHash[hashOf(k)]; taken {
		return decide.Refuse(decide.Conflict, "API_KEY_TAKEN", "there is such a key")
	}
	if len(s.apiKeys.byUser[u.Username]) >= MaxAPIKeys {
		return decide.Refuse(decide.Unacceptable, "TOO_MANY_API_KEYS", "the user has as many API keys as there may be: delete one first")
	}
	return nil
}

// allowList parses addresses and networks, brings them into canonical form and removes duplicates.
func allowList(given []string) ([]string, error) {
	if len(given) > MaxAllowed {
		return nil, decide.InvalidField("ip_allow_list", "at most 32 addresses and networks may be named")
	}
	var out []string
	for _, text := range given {
		n, ok := ParseNetwork(text)
		if !ok {
			return nil, decide.InvalidField("ip_allow_list", "an entry must be an address like 192.0.2.7, or a network like 192.0.2.0/24")
		}
		if !slices.Contains(out, n.String()) {
			out = append(out, n.String())
		}
	}
	return out, nil
}

// ParseNetwork parses an address or a network. An address becomes the network that contains only this address. The
// address of a network is masked to the prefix length.
func ParseNetwork(text string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	n, err := netip.ParsePrefix(text)
	if err != nil || n.Addr().Is4In6() {
		return netip.Prefix{}, false
	}
	return n.Masked(), true
}

// revokeAPIKey revokes a key of the user who gives the command. It answers NotFound for another user's key.
func (r request) revokeAPIKey(payload *RevokeAPIKey) (decide.Decision, error) {
	k, known := r.apiKeys.byID[payload.ID]
	if !known || k.Username != r.actor.Sub {
		return decide.Decision{}, decide.Refuse(decide.NotFound, "API_KEY_NOT_FOUND", "the user has no such API key")
	}
	return accepted(&APIKeyRevoked{ID: k.ID, Username: k.Username, Revoked: r.at.Time})
}

// limitAPIKey sets or clears the rate limit of a key.
func (r request) limitAPIKey(payload *LimitAPIKey) (decide.Decision, error) {
	k, known := r.apiKeys.byID[payload.ID]
	if !known || k.Username != payload.Username {
		return decide.Decision{}, decide.Refuse(decide.NotFound, "API_KEY_NOT_FOUND", "the user has no such API key")
	}
	if err := checkLimit(payload.RateLimit); err != nil {
		return decide.Decision{}, err
	}
	return accepted(&APIKeyLimited{ID: k.ID, Username: k.Username, RateLimit: cloneLimit(payload.RateLimit)})
}

// useAPIKey records that a key was used today. It refuses repetitions within a day.
func (r request) useAPIKey(payload *UseAPIKey) (decide.Decision, error) {
	k, known := r.apiKeys.byID[payload.ID]
	if !known {
		return decide.Decision{}, decide.Refuse(decide.NotFound, "API_KEY_NOT_FOUND", "there is no such API key")
	}
	if k.LastUsed >= Day(r.at.Time) {
		return decide.Decision{}, decide.Refuse(decide.Conflict, "API_KEY_USE_KNOWN", "the key's use on this day is known")
	}
	return accepted(&APIKeyUsed{ID: k.ID, Day: Day(r.at.Time)})
}
