package transparency

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// ErrInconsistent says that a tree is smaller than one that may have been signed, or not an extension of it. The log was cut or
// changed, or the venue's secrets of record roots are others. Nothing is signed.
var ErrInconsistent = errors.New("transparency: the log does not extend what was signed")

// errUnproven says that the hashes of the new tree give no proof, so that nothing is known about the old one.
var errUnproven = errors.New("transparency: the stored tiles do not prove that the tree is an extension")

// Signer signs the checkpoints of one log. It records a tree before it signs it, so that Signers on several nodes, and a process
// that was killed, never sign two roots of one size, or a tree that another one signed does not extend.
type Signer struct {
	origin   Origin
	heads    Heads
	signer   note.Signer
	verifier string
}

// algEd25519 is the type of Ed25519 keys in package note.
const algEd25519 = 1

// NewSigner returns a signer of a log with the Ed25519 key of a seed.
func NewSigner(origin Origin, heads Heads, seed []byte) (*Signer, error) {
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
	return &Signer{origin, heads, signer, verifier}, nil
}

// Verifier returns the key that verifies the checkpoints.
func (s *Signer) Verifier() string { return s.verifier }

// Sign records that next replaces old, and returns its checkpoint. old is the last head that the caller knows. hashes are those
// of the tree of next, from which Sign proves that it extends the tree of old. It returns ErrInconsistent if that fails, and
// ErrMoved if old is not the last head.
func (s *Signer) Sign(ctx context.Context, old, next Head, hashes tlog.HashReader) (Checkpoint, error) {
	if err := extends(old, next, hashes); err != nil {
		return Checkpoint{}, err
	}
	if next.Size > old.Size {
		// The record comes first: a process that is killed after it has signed leaves a head that no other tree replaces.
		if err := s.heads.Advance(ctx, s.origin, old, next); err != nil {
			return Checkpoint{}, err
		}
	}
	text := checkpointText(s.origin.String(), next.Size, next.Root)
	signed, err := note.Sign(&note.Note{Text: text}, s.signer)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("transparency: sign a checkpoint: %w", err)
	}
	return Checkpoint{next.Size, signed, s.verifier}, nil
}

// extends returns nil if a tree extends an earlier one.
func extends(old, next Head, hashes tlog.HashReader) error {
	switch {
	case next.Size <= 0:
		return errors.New("transparency: an empty tree is not signed")
	case next.Size < old.Size, next.Size == old.Size && next.Root != old.Root:
		return fmt.Errorf("%w: a tree of size %d with root %v follows one of size %d with root %v", ErrInconsistent, next.Size, next.Root, old.Size, old.Root)
	case old.Size == 0, next.Size == old.Size:
		return nil
	}
	proof, err := tlog.ProveTree(next.Size, old.Size, hashes)
	if err != nil {
		return fmt.Errorf("%w: from size %d to %d: %w", errUnproven, old.Size, next.Size, err)
	}
	if err := tlog.CheckTree(proof, next.Size, next.Root, old.Size, old.Root); err != nil {
		return fmt.Errorf("%w: from size %d to %d: %w", ErrInconsistent, old.Size, next.Size, err)
	}
	return nil
}

// checkpointText returns the text of a checkpoint.
func checkpointText(origin string, size int64, root tlog.Hash) string {
	return origin + "\n" + strconv.FormatInt(size, 10) + "\n" + root.String() + "\n"
}

// Open verifies a checkpoint of this log and returns its size and root.
func (s *Signer) Open(signed []byte) (size int64, root tlog.Hash, err error) {
	verifier, err := note.NewVerifier(s.verifier)
	if err != nil {
		return 0, root, fmt.Errorf("transparency: %w", err)
	}
	return OpenCheckpoint(signed, verifier)
}

// OpenCheckpoint verifies a checkpoint of the log that the verifier names, and returns its size and root.
func OpenCheckpoint(signed []byte, verifier note.Verifier) (size int64, root tlog.Hash, err error) {
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return 0, root, fmt.Errorf("transparency: checkpoint: %w", err)
	}
	return parseCheckpoint(verifier.Name(), n.Text)
}
