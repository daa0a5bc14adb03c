package login

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// View calls look with the state of a follower of the identity journal. look MUST NOT keep or modify the state.
func View(f record.Follower, look func(*identity.State)) {
	f.View(func(s decide.State, _ record.Position) { look(s.(*identity.State)) })
}

// Changes reports how the identity journal changes the rights of tokens and keys.
type Changes struct{ Follower record.Follower }

// Listen registers a function that is called for every change, under the follower's lock. Listen must be called before
// the follower runs.
func (c Changes) Listen(call func(access.Change)) {
	c.Follower.Listen(func(e record.Entry, s decide.State) {
		for _, event := range e.Record.Events {
			switch event := event.(type) {
			case *identity.UserChanged:
				// The event does not say when the password changed, but the state does.
				u, _ := s.(*identity.State).User(event.Username)
				call(access.Change{Username: event.Username, Account: accountOf(u)})
			case *identity.SigningKeyRetired:
				call(access.Change{KID: event.KID})
			case *identity.APIKeyRevoked:
				call(access.Change{APIKey: event.ID})
			}
		}
	})
}

// Directory looks up signing keys, users and API keys for authentication. It implements access.Identities.
type Directory struct {
	identity record.Follower
	lookups  *sync.Pool // of *lookup
}

// NewDirectory returns a directory for a follower of the identity journal.
func NewDirectory(f record.Follower) Directory {
	return Directory{f, &sync.Pool{New: func() any { return newLookup() }}}
}

// lookup holds a query and its result. Lookups are pooled, because every request needs one.
type lookup struct {
	name    string
	key     ed25519.PublicKey
	account access.Account
	hash    [sha256.Size]byte
	apiKey  access.APIKey
	known   bool

	keyOf, accountOf, apiKeyOf func(decide.State, record.Position) // the methods as func values, so that View calls allocate nothing
}

func newLookup() *lookup {
	l := new(lookup)
	l.keyOf = func(s decide.State, _ record.Position) {
		if k, known := s.(*identity.State).Key(l.name); known && k.Retired == 0 {
			l.key, l.known = k.Public, true
		}
	}
	l.accountOf = func(s decide.State, _ record.Position) {
		u, known := s.(*identity.State).User(l.name)
		if !known {
			return
		}
		l.account, l.known = accountOf(u), true
	}
	l.apiKeyOf = func(s decide.State, _ record.Position) {
		k, known := s.(*identity.State).APIKey(l.hash)
		if !known {
			return
		}
		l.apiKey, l.known = access.APIKey{ID: k.ID, Username: k.Username, Customer: k.CustomerCode, Scopes: k.Scopes, Networks: k.IPAllowList,
			Expires: k.ExpiresAt, LastUsed: k.LastUsed, Limit: limitOf(k.RateLimit)}, true
	}
	return l
}

func accountOf(u *identity.User) access.Account {
	return access.Account{Active: u.IsActive, Broker: u.Broker, Customer: u.CustomerCode, Scopes: u.Scopes, RateLimit: limitOf(u.RateLimit),
		PasswordChanged: u.PasswordChanged}
}

func limitOf(l *identity.RateLimit) access.RateLimit {
	if l == nil {
		return access.RateLimit{}
	}
	return access.RateLimit{PerSecond: l.PerSecond, Burst: l.Burst}
}

func (d Directory) ask(name string) *lookup {
	l := d.lookups.Get().(*lookup)
	l.name, l.key, l.account, l.apiKey, l.known = name, nil, access.Account{}, access.APIKey{}, false
	return l
}

// PublicKey returns the key with the ID. It returns false if the key is unknown or retired.
func (d Directory) PublicKey(kid string) (ed25519.PublicKey, bool) {
	l := d.ask(kid)
	defer d.lookups.Put(l)
	d.identity.View(l.keyOf)
	return l.key, l.known
}

// Account returns a user's active flag, rights and rate limit.
func (d Directory) Account(username string) (access.Account, bool) {
	l := d.ask(username)
	defer d.lookups.Put(l)
	d.identity.View(l.accountOf)
	return l.account, l.known
}

// APIKey returns the API key for the hash of the secret. It returns false if the key is unknown or revoked.
func (d Directory) APIKey(hash [sha256.Size]byte) (access.APIKey, bool) {
	l := d.ask("")
	defer d.lookups.Put(l)
	l.hash = hash
	d.identity.View(l.apiKeyOf)
	return l.apiKey, l.known
}

// CheckSeal decrypts the private part of every signing key and the password hash of every user. A node with the wrong
// master key thus fails at startup and not at the first login.
func CheckSeal(f record.Follower, box *seal.Box) error {
	var keys []*identity.SigningKey
	var users []*identity.User
	// Decrypt outside the view, which blocks the fold.
	View(f, func(s *identity.State) { keys, users = s.Keys(), s.Users() })
	for _, k := range keys {
		if _, err := box.Open(k.Private, privateKeyData(k.KID)); err != nil {
			return fmt.Errorf("signing key %s: %w", k.KID, err)
		}
	}
	for _, u := range users {
		if _, err := box.Open(u.PasswordHash, passwordData(u.Username)); err != nil {
			return fmt.Errorf("password of user %s: %w", u.Username, err)
		}
	}
	return nil
}

func passwordData(username string) seal.AssociatedData {
	return seal.AssociatedData{Owner: username, Field: "password_hash", Type: "user"}
}

func privateKeyData(kid string) seal.AssociatedData {
	return seal.AssociatedData{Owner: kid, Field: "private", Type: "signing_key"}
}
