package transparency

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

const (
	// fresh is the time for which a Reader returns the same checkpoint without asking again.
	fresh = 250 * time.Millisecond
	// unseen is that time for a tile beyond the checkpoint: another node may have returned a later one to the client.
	unseen = 10 * time.Millisecond
)

// Reader reads the published tree of one log. It is safe for concurrent use. It returns fs.ErrNotExist for a tile that the tree
// does not have.
type Reader struct {
	origin   Origin
	store    *Store
	signed   cached
	cosigned cached
}

// cached is a checkpoint that is read again when it is old.
type cached struct {
	read func(context.Context, Origin) (Checkpoint, error)

	mu   sync.Mutex
	last Checkpoint
	at   time.Time
}

// NewReader returns a reader of a log.
func NewReader(origin Origin, store *Store, heads Heads, cosigned CosignedTrees) *Reader {
	return &Reader{origin: origin, store: store, signed: cached{read: heads.Published}, cosigned: cached{read: cosigned.Cosigned}}
}

// Origin returns the origin of the log.
func (r *Reader) Origin() Origin { return r.origin }

// Checkpoint returns the last published checkpoint, with the cosignatures that it has.
func (r *Reader) Checkpoint(ctx context.Context) (Checkpoint, error) {
	c, err := r.signed.within(ctx, r.origin, fresh)
	if err != nil {
		return c, err
	}
	if c.Size == 0 {
		return c, fmt.Errorf("%v has no checkpoint yet: %w", r.origin, fs.ErrNotExist)
	}
	if more, err := r.cosigned.within(ctx, r.origin, fresh); err == nil && more.Size == c.Size {
		c = more
	}
	return c, nil
}

// Cosigned returns the last checkpoint that met the quorum of the policy.
func (r *Reader) Cosigned(ctx context.Context) (Checkpoint, error) {
	c, err := r.cosigned.within(ctx, r.origin, fresh)
	if err == nil && c.Size == 0 {
		err = fmt.Errorf("no witness has cosigned %v yet: %w", r.origin, fs.ErrNotExist)
	}
	return c, err
}

// within returns the last checkpoint, or one that was read at most age ago.
func (c *cached) within(ctx context.Context, of Origin, age time.Duration) (Checkpoint, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < age {
		return c.last, nil
	}
	last, err := c.read(ctx, of)
	if err != nil {
		return last, err
	}
	c.last, c.at = last, time.Now()
	return last, nil
}

// Prove returns the path that proves the record with a sequence in a tree that was published.
func (r *Reader) Prove(ctx context.Context, tree tlog.Tree, sequence int64) (tlog.RecordProof, error) {
	path, err := tlog.ProveRecord(tree.N, sequence, tlog.TileHashReader(tree, &tileReader{ctx: ctx, store: r.store}))
	if err != nil {
		return nil, fmt.Errorf("transparency: prove record %d in the tree of size %d of %v: %w", sequence, tree.N, r.origin, err)
	}
	return path, nil
}

// Has reports whether the record with a sequence has a root in the published tree. It returns fs.ErrNotExist if the tree does not
// cover the record. Tiles that contradict the checkpoint are an error.
func (r *Reader) Has(ctx context.Context, sequence int64, root commitment.Hash) (bool, error) {
	c, err := r.signed.within(ctx, r.origin, fresh)
	if err == nil && c.Size <= sequence {
		c, err = r.signed.within(ctx, r.origin, unseen)
	}
	switch {
	case err != nil:
		return false, err
	case c.Size <= sequence:
		return false, fmt.Errorf("the tree of size %d of %v has no record %d: %w", c.Size, r.origin, sequence, fs.ErrNotExist)
	}
	policy, err := NewPolicy().ForLog(c.Verifier)
	if err != nil {
		return false, err
	}
	opened, err := policy.Open(c.Note)
	if err != nil {
		return false, err
	}
	path, err := r.Prove(ctx, opened.Tree(), sequence)
	if err != nil {
		return false, err
	}
	entry := Entry(root)
	return tlog.CheckRecord(path, opened.Size, opened.Root, sequence, tlog.RecordHash(entry[:])) == nil, nil
}

// Rotation returns the proof of the rotation to the key of a generation.
func (r *Reader) Rotation(ctx context.Context, generation int) ([]byte, error) {
	return r.store.Rotation(ctx, generation)
}

// Tile returns a tile or bundle of the published tree, or of a smaller one. One that the tree has and that cannot be read is not
// fs.ErrNotExist.
func (r *Reader) Tile(ctx context.Context, t tlog.Tile) ([]byte, error) {
	// Published trees only grow, so an old checkpoint suffices for the tiles that it covers.
	c, err := r.signed.within(ctx, r.origin, time.Hour)
	if err == nil && widthAt(t.L, t.N, c.Size) < t.W {
		c, err = r.signed.within(ctx, r.origin, unseen)
	}
	switch {
	case err != nil:
		return nil, err
	case widthAt(t.L, t.N, c.Size) < t.W:
		return nil, fmt.Errorf("the tree of size %d has no %s: %w", c.Size, TilePath(t), fs.ErrNotExist)
	}
	data, err := r.store.read(ctx, t, true)
	// Only trees that were published have partial tiles.
	if errors.Is(err, fs.ErrNotExist) && (t.W == width || widthAt(t.L, t.N, c.Size) == width) {
		err = fmt.Errorf("the tree of size %d has a tile that is lost: %v", c.Size, err) //nolint:errorlint // it is not ErrNotExist to the caller
	}
	return data, err
}
