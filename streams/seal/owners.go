package seal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sync/errgroup"
)

// ErrDestroyed says that an owner's key was destroyed: what was sealed with it can't be read any more, by anybody.
var ErrDestroyed = errors.New("the owner's key is destroyed")

// ErrMissing says that the key store holds nothing about an owner, neither a key nor the tombstone of one: it is not the one
// that the key was made in, or an old copy of it.
var ErrMissing = errors.New("the key store holds no key of the owner, nor that it was destroyed: restore the key store, or look at --key-url")

// Owners seals what is about one person or corporate with that owner's own key, so that all of it becomes unreadable at once,
// wherever it was copied to, when the key is destroyed.
//
// Each owner has a file in the key store: the key, sealed under the master key. It is on disk before anything is sealed
// with it. Destroyed, the key is overwritten by a tombstone in the same place, so that it is never made anew; of two nodes
// that make one at once, the first one counts.
//
// A node keeps the keys that it uses in memory, KeyLifetime long and no more than cachedKeys of them; then it reads the
// file again. So KeyLifetime after a destruction no node opens or seals anything of that owner any more, whoever destroyed
// the key, and streams that are under way end with ErrDestroyed.
//
// holds.go says who may change the store, and when a key in a shared store is destroyed.
//
// Owners are named as owner.Ref.String does. Errors are ErrDestroyed, ErrMissing, ErrDamaged, *WrongKeyError where the key
// file was sealed under another master key, and ErrAway where the store can't be asked. It is safe for concurrent use.
type Owners struct {
	store  store
	master *Box
	cache  *keyCache
	guard  Guard
}

// OpenOwners opens the key store at a URL: the scheme file for a folder, mem for tests, and those of buckets. The caller
// closes it.
func OpenOwners(ctx context.Context, url string, master *Box) (*Owners, error) {
	s, err := openStore(ctx, url)
	if err != nil {
		return nil, err
	}
	return newOwners(s, master), nil
}

func newOwners(s store, master *Box) *Owners {
	o := &Owners{store: s, master: master, guard: unguarded{}}
	o.cache = newKeyCache(o.load)
	return o
}

// SetGuard sets the guard that permits creating, discarding, holding, releasing and destroying keys. Without a guard everything
// is permitted. SetGuard MUST be called before the first use.
func (o *Owners) SetGuard(g Guard) { o.guard = g }

// Store returns the key store that the keys are in. It is closed with the Owners.
func (o *Owners) Store() *KeyStore { return &KeyStore{o.store} }

// Close lets go of the store.
func (o *Owners) Close() error { return o.store.close() }

// Create makes an owner's key, and returns once that is durable. That there is one already is no error, and that there was
// one is ErrDestroyed.
func (o *Owners) Create(ctx context.Context, owner string) error {
	name, err := keyFileName(owner)
	if err != nil {
		return err
	}
	if err := o.guard.Check(ctx); err != nil {
		return err
	}
	key := make([]byte, KeySize)
	rand.Read(key) // never fails
	f, err := newKeyFile(o.master, owner, key)
	if err != nil {
		return err
	}
	content, err := f.encode()
	if err != nil {
		return err
	}
	err = o.store.create(ctx, name, content)
	if errors.Is(err, fs.ErrExist) {
		// Another request or node was first, or this is a retry. Whatever it made has to be of use.
		_, err = o.load(ctx, owner)
		return err
	}
	if err != nil {
		return away("make the key of "+owner, err)
	}
	return nil
}

// Seal encrypts a value for its place with the key of the place's owner.
func (o *Owners) Seal(ctx context.Context, plain []byte, at Place) ([]byte, error) {
	box, err := o.cache.get(ctx, at.Owner)
	if err != nil {
		return nil, err
	}
	return box.Seal(plain, at)
}

// Open decrypts a value of the given place.
func (o *Owners) Open(ctx context.Context, sealed []byte, at Place) ([]byte, error) {
	box, err := o.cache.get(ctx, at.Owner)
	if err != nil {
		return nil, err
	}
	plain, err := box.Open(sealed, at)
	if err != nil { // also *WrongKeyError, which would speak of the master key
		return nil, ErrDamaged
	}
	return plain, nil
}

// fetches is how many keys Fetch reads at a time. A folder is asked no more than pending questions at once.
const fetches = 16

// Fetch has the keys of owners in memory, read several at a time: who then opens something of each, all within KeyLifetime,
// does not wait for the store as often as there are owners. Its error is ErrAway. What is wrong with one of the keys, who
// opens something with it learns.
func (o *Owners) Fetch(ctx context.Context, owners []string) error {
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(fetches)
	for _, owner := range owners {
		group.Go(func() error {
			if reading.Err() != nil { // the store is away, or the caller is: this one would only wait for the same
				return nil
			}
			if _, err := o.cache.get(reading, owner); errors.Is(err, ErrAway) {
				return err
			}
			return nil
		})
	}
	return group.Wait()
}

// KeyID names an owner's key, and goes on to do so once it is destroyed.
func (o *Owners) KeyID(ctx context.Context, owner string) (string, error) {
	f, err := o.file(ctx, owner)
	if err != nil {
		return "", err
	}
	return f.KeyID, nil
}

// Discard removes the key of an owner who never came to be, without a trace. It is for who has made the key, and knows that
// nothing that was sealed with it is kept and that nobody else will ever use the owner's name. That there is none is no error.
func (o *Owners) Discard(ctx context.Context, owner string) error {
	name, err := keyFileName(owner)
	if err != nil {
		return err
	}
	if err := o.guard.Check(ctx); err != nil {
		return err
	}
	o.cache.forget(owner)
	if err := o.store.remove(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return away("discard the key of "+owner, err)
	}
	return nil
}

// load reads an owner's key from the store.
func (o *Owners) load(ctx context.Context, owner string) (*Box, error) {
	f, err := o.file(ctx, owner)
	if err != nil {
		return nil, err
	}
	return f.open(o.master)
}

func (o *Owners) file(ctx context.Context, owner string) (*keyFile, error) {
	name, err := keyFileName(owner)
	if err != nil {
		return nil, err
	}
	content, err := o.store.read(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", owner, ErrMissing)
	}
	if err != nil {
		return nil, away("read the key of "+owner, err)
	}
	return decodeKeyFile(content, owner)
}

// away tells that the store could not be asked, and why.
func away(doing string, err error) error {
	if errors.Is(err, ErrAway) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrAway, err)
}
