package node

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

const (
	// thinFirst is the wait before old tiles are deleted after a start, when a node has other work.
	thinFirst = time.Minute
	// thinEvery is the time between two looks for old tiles.
	thinEvery = 10 * time.Minute
)

// archivedRoots computes the record roots of a journal from its archive. It implements transparency.Archive.
type archivedRoots struct {
	log *transparencyLog
	id  scalar.ID

	mu   sync.Mutex
	root func(context.Context, record.Entry) (commitment.Hash, error) // nil until the first root; guarded by mu
}

// open reads the manifests of the archive.
func (a *archivedRoots) open(ctx context.Context) (*archive.Archive, error) {
	return archive.OpenRanges(ctx, a.log.archive())
}

// Roots implements transparency.Archive.
func (a *archivedRoots) Roots(ctx context.Context, from, to int64) ([]commitment.Hash, error) {
	archived, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	if b := archived.Base(); b == nil || b.Sequence < to {
		return nil, fmt.Errorf("the archive of %s does not reach record %d: %w", a.log.Name(), to-1, fs.ErrNotExist)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.root == nil {
		if a.root, err = a.log.roots(ctx, a.id, true); err != nil {
			return nil, err
		}
	}
	roots := make([]commitment.Hash, 0, to-from)
	for value, err := range archived.Values(ctx, from, to) {
		if err != nil {
			return nil, err
		}
		root, err := a.root(ctx, record.Entry{Position: record.Position{Sequence: from + int64(len(roots))}, Value: value})
		if err != nil {
			return nil, err
		}
		if roots = append(roots, root); len(roots)%256 == 0 {
			runtime.Gosched() // a span of tiles takes seconds
		}
	}
	return roots, nil
}

// Before implements transparency.Archive.
func (a *archivedRoots) Before(ctx context.Context, t time.Time) (records int64, err error) {
	archived, err := a.open(ctx)
	if err != nil {
		return 0, err
	}
	for _, s := range archived.Sealed() {
		if s.LastTime >= scalar.TimeOf(t) {
			break
		}
		records = s.Base.Sequence
	}
	return records, nil
}

// store returns the store of a log's tiles.
func (l *transparencyLog) store(o transparency.Origin) *transparency.Store {
	s := transparency.NewStore(l.blobs, o)
	if l.archive == nil {
		return s
	}
	return s.WithArchive(&archivedRoots{log: l, id: o.ID})
}

// thin deletes the leaf tiles and entry bundles that are old enough, until the context ends. Nothing depends on it, so errors are
// logged and tried again.
func (l *transparencyLog) thin(ctx context.Context, f *transparency.Follower) error {
	for wait := thinFirst; l.tiles > 0; wait = thinEvery {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		if err := f.Thin(ctx, time.Now().Add(-l.tiles)); err != nil && ctx.Err() == nil {
			l.logger.Warn("old tiles are not deleted", "error", err)
		}
	}
	return nil
}
