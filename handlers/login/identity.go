package login

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Identity gives access to the state of the identity journal. A callback MUST NOT retain or modify the state.
type Identity interface {
	View(look func(*identity.State))
}

// Followed is an Identity that can wait for a record.
type Followed interface {
	Identity
	web.Waiter
}

// Fold is an Identity backed by a fold of the journal.
type Fold struct{ fold *follow.Fold }

// FromFold returns an Identity for a fold of the identity journal under identity.Rules.
func FromFold(f *follow.Fold) Fold { return Fold{f} }

// View calls look with the fold's current state.
func (f Fold) View(look func(*identity.State)) {
	f.fold.View(func(s decide.State, _ record.Position) { look(s.(*identity.State)) })
}

// Wait returns when the fold has applied the record with the sequence. It returns the context's error, or the error
// that stopped the fold.
func (f Fold) Wait(ctx context.Context, sequence int64) error { return f.fold.Wait(ctx, sequence) }

// Listen registers a function that is called for every change of the rights of tokens and keys. The call happens
// under the fold's lock. Listen must be called before the fold runs.
func (f Fold) Listen(call func(web.Change)) {
	f.fold.Listen(func(e record.Entry, _ decide.State) {
		for _, event := range e.Record.Events {
			switch event := event.(type) {
			case *identity.UserChanged:
				call(web.Change{Username: event.Username, Account: accountOf(&event.User)})
			case *identity.SigningKeyRetired:
				call(web.Change{KID: event.KID})
			case *identity.APIKeyRevoked:
				call(web.Change{APIKey: event.ID})
			}
		}
	})
}

// Directory looks up signing keys, users and API keys for authentication. It implements web.Identities.
type Directory struct {
	identity Identity
	lookups  *sync.Pool // of *lookup
}

// NewDirectory returns a directory for an identity state.
func NewDirectory(i Identity) Directory {
	return Directory{i, &sync.Pool{New: func() any { return newLookup() }}}
}

// lookup holds a query and its result. Lookups are pooled, because every request needs one.
type lookup struct {
	name    string
	key     ed25519.PublicKey
	account web.Account
	hash    [sha256.Size]byte
	apiKey  web.APIKey
	known   bool

	keyOf, accountOf, apiKeyOf func(*identity.State) // the methods as func values, so that View calls allocate nothing
}

func newLookup() *lookup {
	l := new(lookup)
	l.keyOf = func(s *identity.State) {
		if k, known := s.Key(l.name); known && k.Retired == 0 {
			l.key, l.known = k.Public, true
		}
	}
	l.accountOf = func(s *identity.State) {
		u, known := s.User(l.name)
		if !known {
			return
		}
		l.account, l.known = accountOf(u), true
	}
	l.apiKeyOf = func(s *identity.State) {
		k, known := s.APIKey(l.hash)
		if !known {
			return
		}
		l.apiKey, l.known = web.APIKey{ID: k.ID, Username: k.Username, Customer: k.CustomerCode, Scopes: k.Scopes, Networks: k.IPAllowList,
			Expires: k.ExpiresAt, LastUsed: k.LastUsed, Limit: limitOf(k.RateLimit)}, true
	}
	return l
}

func accountOf(u *identity.User) web.Account {
	return web.Account{Active: u.IsActive, Broker: u.Broker, Customer: u.CustomerCode, Scopes: u.Scopes, RateLimit: limitOf(u.RateLimit),
		PasswordChanged: u.PasswordChanged}
}

func limitOf(l *identity.RateLimit) web.RateLimit {
	if l == nil {
		return web.RateLimit{}
	}
	return web.RateLimit{PerSecond: l.PerSecond, Burst: l.Burst}
}

func (d Directory) ask(name string) *lookup {
	l := d.lookups.Get().(*lookup)
	l.name, l.key, l.account, l.apiKey, l.known = name, nil, web.Account{}, web.APIKey{}, false
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
func (d Directory) Account(username string) (web.Account, bool) {
	l := d.ask(username)
	defer d.lookups.Put(l)
	d.identity.View(l.accountOf)
	return l.account, l.known
}

// APIKey returns the API key for the hash of the secret. It returns false if the key is unknown or revoked.
func (d Directory) APIKey(hash [sha256.Size]byte) (web.APIKey, bool) {
	l := d.ask("")
	defer d.lookups.Put(l)
	l.hash = hash
	d.identity.View(l.apiKeyOf)
	return l.apiKey, l.known
}

// CheckSeal decrypts the private part of every signing key and the password hash of every user. A node with the wrong
// master key thus fails at startup and not at the first login.
func CheckSeal(i Identity, box *seal.Box) error {
	var keys []*identity.SigningKey
	var users []*identity.User
	// Decrypt outside the view, which blocks the fold.
	i.View(func(s *identity.State) { keys, users = s.Keys(), s.Users() })
	for _, k := range keys {
		if _, err := box.Open(k.Private, privatePlace(k.KID)); err != nil {
			return fmt.Errorf("signing key %s: %w", k.KID, err)
		}
	}
	for _, u := range users {
		if _, err := box.Open(u.PasswordHash, passwordPlace(u.Username)); err != nil {
			return fmt.Errorf("password of user %s: %w", u.Username, err)
		}
	}
	return nil
}

func passwordPlace(username string) seal.Place {
	return seal.Place{Owner: username, Field: "password_hash", Type: "user"}
}

func privatePlace(kid string) seal.Place {
	return seal.Place{Owner: kid, Field: "private", Type: "signing_key"}
}
