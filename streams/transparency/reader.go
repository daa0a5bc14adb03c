package transparency

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"
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
	origin Origin
	store  *Store
	heads  Heads

	mu   sync.Mutex
	last Checkpoint
	at   time.Time
}

// NewReader returns a reader of a log.
func NewReader(origin Origin, store *Store, heads Heads) *Reader {
	return &Reader{origin: origin, store: store, heads: heads}
}

// Checkpoint returns the last published checkpoint.
func (r *Reader) Checkpoint(ctx context.Context) (Checkpoint, error) {
	c, err := r.checkpoint(ctx, fresh)
	if err == nil && c.Size == 0 {
		err = fmt.Errorf("%v has no checkpoint yet: %w", r.origin, fs.ErrNotExist)
	}
	return c, err
}

// checkpoint returns the last checkpoint, or one that was read at most age ago.
func (r *Reader) checkpoint(ctx context.Context, age time.Duration) (Checkpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) < age {
		return r.last, nil
	}
	c, err := r.heads.Published(ctx, r.origin)
	if err != nil {
		return c, err
	}
	r.last, r.at = c, time.Now()
	return c, nil
}

// Tile returns a tile or bundle of the published tree, or of a smaller one.
func (r *Reader) Tile(ctx context.Context, t tlog.Tile) ([]byte, error) {
	// Published trees only grow, so an old checkpoint suffices for the tiles that it covers.
	c, err := r.checkpoint(ctx, time.Hour)
	if err == nil && widthAt(t.L, t.N, c.Size) < t.W {
		c, err = r.checkpoint(ctx, unseen)
	}
	switch {
	case err != nil:
		return nil, err
	case widthAt(t.L, t.N, c.Size) < t.W:
		return nil, fmt.Errorf("the tree of size %d has no %s: %w", c.Size, TilePath(t), fs.ErrNotExist)
	}
	return r.store.Read(ctx, t)
}
