package seal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// KeyStore stores small objects by name. An object is complete or absent, even after a power cut. Names are slash-separated
// paths. A KeyStore is safe for concurrent use.
//
// Read, Replace and Remove return fs.ErrNotExist if the object does not exist; Create returns fs.ErrExist if it does. All
// methods return ErrAway if the store does not answer. A write that failed with ErrAway may have happened or may still happen.
type KeyStore struct{ store store }

// OpenKeyStore opens the key store at a URL: the scheme file for a folder, mem for tests, and those of buckets. The caller
// closes it.
func OpenKeyStore(ctx context.Context, url string) (*KeyStore, error) {
	s, err := openStore(ctx, url)
	if err != nil {
		return nil, err
	}
	return &KeyStore{s}, nil
}

// Close closes the store.
func (k *KeyStore) Close() error { return k.store.close() }

// Read returns the content of an object.
func (k *KeyStore) Read(ctx context.Context, name string) ([]byte, error) {
	content, err := k.store.read(ctx, name)
	return content, answered("read "+name, err)
}

// Create creates an object. It returns fs.ErrExist if the object exists. Of two concurrent calls, one succeeds.
func (k *KeyStore) Create(ctx context.Context, name string, content []byte) error {
	return answered("create "+name, k.store.create(ctx, name, content))
}

// Replace replaces the content of an object. The old content may stay readable on the disk, so it MUST NOT be a secret.
func (k *KeyStore) Replace(ctx context.Context, name string, content []byte) error {
	return answered("replace "+name, k.store.replace(ctx, name, content))
}

// Remove removes an object.
func (k *KeyStore) Remove(ctx context.Context, name string) error {
	return answered("remove "+name, k.store.remove(ctx, name))
}

// List returns the names of the objects directly under a folder, without the folder's name, in no particular order.
func (k *KeyStore) List(ctx context.Context, folder string) ([]string, error) {
	names, err := k.store.list(ctx, folder)
	return names, answered("list "+folder, err)
}

// answered returns fs.ErrExist and fs.ErrNotExist unchanged, and wraps every other error in ErrAway.
func answered(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, ErrAway):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrAway, err)
}
