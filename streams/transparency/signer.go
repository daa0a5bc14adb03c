package transparency

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	origin Origin
	heads  Heads
	keys   Keys
}

// NewSigner returns a signer of a log.
func NewSigner(origin Origin, heads Heads, keys Keys) *Signer { return &Signer{origin, heads, keys} }

// Sign records that next replaces old, and returns its checkpoint. old is the last head that the caller knows. hashes are those
// of the tree of next, from which Sign proves that it extends the tree of old. It returns ErrInconsistent if that fails, and
// ErrMoved if old is not the last head.
func (s *Signer) Sign(ctx context.Context, old, next Head, hashes tlog.HashReader) (Checkpoint, error) {
	if err := extends(old, next, hashes); err != nil {
		return Checkpoint{}, err
	}
	keys, err := s.keys.Signing(ctx, next.Size) // before the head is recorded, which nothing else could replace without the keys
	if err != nil {
		return Checkpoint{}, fmt.Errorf("transparency: the keys that sign a tree of size %d: %w", next.Size, err)
	}
	if next.Size > old.Size {
		// The record comes first: a process that is killed after it has signed leaves a head that no other tree replaces.
		if err := s.heads.Advance(ctx, s.origin, old, next); err != nil {
			return Checkpoint{}, err
		}
	}
	signers, names := make([]note.Signer, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		signers[i], names[i] = k.signer, k.verifier
	}
	text := checkpointText(s.origin.String(), next.Size, next.Root)
	signed, err := note.Sign(&note.Note{Text: text}, signers...)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("transparency: sign a checkpoint: %w", err)
	}
	return Checkpoint{next.Size, signed, strings.Join(names, "\n")}, nil
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

// errUnknownKey says that a checkpoint is signed in the name of the log by a key that neither its records nor the key store name.
var errUnknownKey = errors.New("it is signed by a key of this log that no record names")

// known returns the policy of checkpoints that any key of the log has signed, also a retired one.
func (s *Signer) known(ctx context.Context) (*Policy, error) {
	keys, err := s.keys.Known(ctx)
	if err != nil {
		return nil, fmt.Errorf("transparency: the keys of %v: %w", s.origin, err)
	}
	return NewPolicy(keys...), nil
}

// open verifies a checkpoint of this log under the policy that known returns. The error is errUnknownKey if the log's name is that of
// another key only.
func (s *Signer) open(known *Policy, signed []byte) (*Opened, error) {
	o, err := known.OpenSigned(signed)
	var unverified *note.UnverifiedNoteError
	if errors.As(err, &unverified) && slices.ContainsFunc(unverified.Note.UnverifiedSigs, func(n note.Signature) bool { return n.Name == s.origin.String() }) {
		return nil, errUnknownKey
	}
	return o, err
}
