package seal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrDestroyed reports that an owner's key was destroyed: data sealed with it can never be read again.
var ErrDestroyed = errors.New("the owner's key is destroyed")

// ErrMissing reports that the key store has neither a key nor a tombstone of an owner: it is not the store in which the
// key was created, or it is an old copy.
var ErrMissing = errors.New("the key store holds no key of the owner, nor that it was destroyed: restore the key store, or look at --key-url")

// Owners seals data about persons and corporates, each with a separate key. Destroying an owner's key makes all copies
// of the owner's data unreadable.
//
// Each owner has a file in the key store. It holds the key, sealed with the master key, and is durable before anything
// is sealed with the key. Destroying the key overwrites it with a tombstone in the same file, so that it is never
// created again. If two nodes create a key concurrently, the first one is used.
//
// A node keeps the keys that it uses in memory, each for KeyLifetime and at most cachedKeys of them; then it reads the
// file again. So KeyLifetime after a destruction on any node, no node seals or opens data of that owner any more, and
// open streams fail with ErrDestroyed.
//
// holds.go describes which venue may change the store, and when a key in a shared store is destroyed.
//
// Owners are named by owner.Ref.String. Errors are ErrDestroyed, ErrMissing, ErrDamaged, *WrongKeyError if the key file
// was sealed with another master key, and ErrAway if the store does not answer. With a foreign master key (Box.Foreign), ErrDestroyed
// replaces ErrMissing. Owners is safe for concurrent use.
type Owners struct {
	store  store
	master *Box
	cache  *keyCache
	guard  Guard
}

// OpenOwners opens the key store at a URL: the scheme file for a folder, mem for tests, or a bucket's scheme. The
// caller must close it.
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

// SetClock sets the monotonic clock that measures KeyLifetime. In place of Go's, a node MUST set one that counts the time during
// which its machine is suspended: another node may destroy a key in that time. SetClock MUST be called before the first use.
func (o *Owners) SetClock(elapsed func() time.Duration) { o.cache.elapsed = elapsed }

// Store returns the key store that the keys are in. It is closed with the Owners.
func (o *Owners) Store() *KeyStore { return &KeyStore{o.store} }

// Close closes the store.
func (o *Owners) Close() error { return o.store.close() }

// Create creates an owner's key and returns once it is durable. It returns nil if the key exists, and ErrDestroyed if
// it was destroyed.
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
		// Another request or node was first, or this is a retry. The existing key must be usable.
		_, err = o.load(ctx, owner)
		return err
	}
	if err != nil {
		return away("make the key of "+owner, err)
	}
	return nil
}

// Seal encrypts a value with the key of the owner in its associated data, and binds it to that data.
func (o *Owners) Seal(ctx context.Context, plain []byte, at AssociatedData) ([]byte, error) {
	box, err := o.cache.get(ctx, at.Owner)
	if err != nil {
		return nil, err
	}
	return box.Seal(plain, at)
}

// Open decrypts a value that was sealed with the same associated data.
func (o *Owners) Open(ctx context.Context, sealed []byte, at AssociatedData) ([]byte, error) {
	box, err := o.cache.get(ctx, at.Owner)
	if err != nil {
		return nil, err
	}
	plain, err := box.Open(sealed, at)
	if err != nil { // including *WrongKeyError, whose message would blame the master key
		return nil, ErrDamaged
	}
	return plain, nil
}

// fetches is the number of keys that Fetch reads concurrently. For a folder, pending is the upper limit.
const fetches = 16

// Fetch reads the keys of owners into memory, several concurrently. A caller that then opens data of each owner within
// KeyLifetime does not wait for the store once per owner. Fetch returns only ErrAway; other errors of a key are
// returned when the key is used.
func (o *Owners) Fetch(ctx context.Context, owners []string) error {
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(fetches)
	for _, owner := range owners {
		group.Go(func() error {
			// The store does not answer or the caller has left: another read would only wait for the same.
			if reading.Err() != nil {
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

// KeyID returns the id of an owner's key, even after the key was destroyed.
func (o *Owners) KeyID(ctx context.Context, owner string) (string, error) {
	f, err := o.file(ctx, owner)
	if err != nil {
		return "", err
	}
	return f.KeyID, nil
}

// Discard removes the key of an owner that was never recorded, and leaves no trace. The caller must have created the
// key, and must know that nothing sealed with it is stored and that the owner's name will never be used. A missing key
// is not an error.
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
		if o.master.foreign { // the venue has the key
			return nil, ErrDestroyed
		}
		return nil, fmt.Errorf("%s: %w", owner, ErrMissing)
	}
	if err != nil {
		return nil, away("read the key of "+owner, err)
	}
	return decodeKeyFile(content, owner)
}

// away wraps an error in ErrAway, unless it is one already.
func away(doing string, err error) error {
	if errors.Is(err, ErrAway) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrAway, err)
}
