package seal

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
)

// Environment is the environment variable that may hold the master key, in base64.
const Environment = "PERPETUA_MASTER_KEY"

const (
	// File is the name of the master key in the key store, in base64.
	File = "master.key"
	// WrappedFile is the name of the master key encrypted by a key management service, in base64.
	WrappedFile = "master.key.wrapped"
)

// ErrNoKey reports that a master key is needed to read sealed values, and there is none.
var ErrNoKey = errors.New("there is no master key, and the log holds values sealed with one: restore " + File +
	" in the key store (--key-url, by default the folder keys in the data folder) or set " + Environment)

// Options configure where the master key is stored.
type Options struct {
	// URL is the URL of the key store.
	URL string
	// Value is the value of the environment variable, in base64. It is empty if the variable is not set.
	Value string
	// KMS is the URL of the key with which a key management service encrypts the master key, in the form of
	// gocloud.dev/secrets. Empty means none.
	KMS string
	// Create allows Open to create a key in the store if there is none. It must be false once an identity journal
	// exists: a new key could not open the values in it.
	Create bool
	// Former is the file in which older versions stored the key. With Move, Open moves that key into the store, which
	// only the owner of the data folder may do. Without Move, it only reads the file.
	Former string
	Move   bool
}

// Open returns a box with the master key. If none exists, it creates one if Create allows that. If both the environment
// and the store have a key, the two must be the same.
func Open(ctx context.Context, o Options) (*Box, error) {
	given, err := o.given()
	if err != nil {
		return nil, err
	}
	s, err := openStore(ctx, o.URL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.close() }()
	stored, err := o.stored(ctx, s)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("master key: %w", err)
	case err == nil && given != nil && !bytes.Equal(stored, given):
		return nil, fmt.Errorf("%s and the key store hold different master keys: remove the wrong one", Environment)
	case given != nil:
		return New(given)
	case err == nil:
		return New(stored)
	case !o.Create:
		return nil, ErrNoKey
	}
	if stored, err = o.create(ctx, s); err != nil {
		return nil, fmt.Errorf("make a master key: %w", err)
	}
	return New(stored)
}

// Check validates the options without opening the key store.
func (o *Options) Check() error {
	_, err := o.given()
	return err
}

// given returns the key from the environment, or nil.
func (o *Options) given() ([]byte, error) {
	if o.Value == "" {
		return nil, nil
	}
	if o.KMS != "" {
		return nil, fmt.Errorf("%s is set, and so is the URL of a key management service: one of the two may be", Environment)
	}
	key, err := decode([]byte(o.Value))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Environment, err)
	}
	return key, nil
}

// stored returns the key in the store, after moving the key of an older version there. It returns fs.ErrNotExist if there
// is none.
func (o *Options) stored(ctx context.Context, s store) ([]byte, error) {
	if o.Move {
		if err := moveFormer(ctx, s, o.Former); err != nil {
			return nil, err
		}
	}
	if o.KMS != "" {
		return unwrap(ctx, s, o.KMS)
	}
	if _, err := s.read(ctx, WrappedFile); err == nil {
		return nil, fmt.Errorf("the key store holds a master key that a key management service has encrypted: name it with --kms-url")
	}
	key, err := read(ctx, s)
	if errors.Is(err, fs.ErrNotExist) && o.Former != "" {
		return readFormer(o.Former)
	}
	return key, err
}

// create generates a key and stores it. The key is durable before anything is sealed with it. If another process was
// first, create returns the key of that process.
func (o *Options) create(ctx context.Context, s store) ([]byte, error) {
	key := make([]byte, KeySize)
	rand.Read(key) // never fails
	if o.KMS != "" {
		return wrap(ctx, s, o.KMS, key)
	}
	err := s.create(ctx, File, encode(key))
	if errors.Is(err, fs.ErrExist) {
		return read(ctx, s)
	}
	return key, err
}

func read(ctx context.Context, s store) ([]byte, error) {
	text, err := s.read(ctx, File)
	if err != nil {
		return nil, err
	}
	key, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	return key, nil
}

func encode(key []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(key) + "\n") }

func decode(text []byte) ([]byte, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("the master key must be %d bytes in padded base64", KeySize)
	}
	return key, nil
}
