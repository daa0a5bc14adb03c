package transparency

import (
	"context"
	"fmt"
	"io/fs"

	"golang.org/x/mod/sumdb/tlog"
)

// Past is a published log cut to its first records. It is safe for concurrent use.
type Past struct {
	reader    *Reader
	published tlog.Tree // extends the tree of the past
	signed    Checkpoint
}

// Past signs the tree of the first records of a published log, with the keys of a tree of that size. It records no head, because the
// published tree extends that tree: it was proven before that one was signed. It returns fs.ErrNotExist if the published tree has fewer
// records. No witness cosigns the checkpoint.
func (s *Signer) Past(ctx context.Context, r *Reader, size int64) (*Past, error) {
	last, err := r.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	known, err := s.known(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := known.Open(last.Note)
	if err != nil {
		return nil, err
	}
	if opened.Size < size {
		return nil, fmt.Errorf("the tree of size %d of %v has no beginning of size %d: %w", opened.Size, s.origin, size, fs.ErrNotExist)
	}
	p := &Past{reader: r, published: opened.Tree()}
	root, err := tlog.TreeHash(size, p.hashes(ctx))
	if err != nil {
		return nil, fmt.Errorf("transparency: the tree of size %d of %v: %w", size, s.origin, err)
	}
	head := Head{Size: size, Root: root}
	p.signed, err = s.Sign(ctx, head, head, nil)
	return p, err
}

// hashes returns the hashes of the published tree. The store may have no partial tiles of a smaller one.
func (p *Past) hashes(ctx context.Context) tlog.HashReader {
	return tlog.TileHashReader(p.published, &tileReader{ctx: ctx, store: p.reader.store})
}

// Checkpoint returns the checkpoint of the past.
func (p *Past) Checkpoint(context.Context) (Checkpoint, error) { return p.signed, nil }

// Cosigned returns fs.ErrNotExist: no witness is asked for a tree of the past.
func (p *Past) Cosigned(context.Context) (Checkpoint, error) {
	return Checkpoint{}, fmt.Errorf("a tree of the past is not cosigned: %w", fs.ErrNotExist)
}

// Prove returns the path that proves the record with a sequence in a tree that the published one extends.
func (p *Past) Prove(ctx context.Context, tree tlog.Tree, sequence int64) (tlog.RecordProof, error) {
	path, err := tlog.ProveRecord(tree.N, sequence, p.hashes(ctx))
	if err != nil {
		return nil, fmt.Errorf("transparency: prove record %d in the tree of size %d of %v: %w", sequence, tree.N, p.reader.origin, err)
	}
	return path, nil
}
