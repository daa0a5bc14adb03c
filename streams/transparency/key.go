package transparency

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Keys are the keys of one log. An implementation MUST be safe for concurrent use.
type Keys interface {
	// Signing returns the keys that sign the tree of a size, the newest first. They MUST depend on the records of that tree only,
	// so that all nodes sign alike. The records are acknowledged.
	Signing(ctx context.Context, size int64) ([]*Key, error)
	// Known returns all keys that sign the log or have signed it, as far as records or the key store name them.
	Known(ctx context.Context) ([]note.Verifier, error)
}

// Key signs the checkpoints of one log. A Key implements Keys for a log before its first rotation.
type Key struct {
	signer   note.Signer
	verifier string
}

var _ Keys = (*Key)(nil)

// algEd25519 is the type of Ed25519 keys in package note.
const algEd25519 = 1

// NewKey returns the Ed25519 key of a log with a seed.
func NewKey(origin Origin, seed []byte) (*Key, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("transparency: a seed of %d bytes", len(seed))
	}
	verifier, err := note.NewEd25519VerifierKey(origin.String(), ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
	if err != nil {
		return nil, fmt.Errorf("transparency: the key of %v: %w", origin, err)
	}
	// The text of a signer's key differs from its verifier's in the prefix and in the seed instead of the public key.
	hash := strings.SplitN(verifier, "+", 3)[1]
	secret := base64.StdEncoding.EncodeToString(append([]byte{algEd25519}, seed...))
	signer, err := note.NewSigner("PRIVATE+KEY+" + origin.String() + "+" + hash + "+" + secret)
	if err != nil {
		return nil, errors.New("transparency: the signing key is not accepted") // the cause may quote the key
	}
	return &Key{signer, verifier}, nil
}

// Verifier returns the key that verifies the checkpoints, in the form of package note.
func (k *Key) Verifier() string { return k.verifier }

// Signing implements Keys.
func (k *Key) Signing(context.Context, int64) ([]*Key, error) { return []*Key{k}, nil }

// Known implements Keys.
func (k *Key) Known(context.Context) ([]note.Verifier, error) {
	v, err := note.NewVerifier(k.verifier)
	if err != nil {
		return nil, fmt.Errorf("transparency: %w", err)
	}
	return []note.Verifier{v}, nil
}
