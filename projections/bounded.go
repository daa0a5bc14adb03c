package projections

import (
	"context"
	"sort"
	"sync"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Bounded is a log of which nothing after a sequence is read until the bound is raised: for rows that are to stand where
// others do.
type Bounded struct {
	log Log

	mu     sync.Mutex
	last   int64
	raised chan struct{} // closed and replaced when last is raised
}

// NewBounded returns a log of which nothing is read yet.
func NewBounded(log Log) *Bounded {
	return &Bounded{log: log, last: record.Before.Sequence, raised: make(chan struct{})}
}

// Raise lets records be read up to the sequence. It is never lowered.
func (b *Bounded) Raise(sequence int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sequence > b.last {
		b.last = sequence
		close(b.raised)
		b.raised = make(chan struct{})
	}
}

// From implements Log.
func (b *Bounded) From(at record.Position) Reader {
	return &boundedReader{Reader: b.log.From(at), bound: b}
}

// Tip implements Log: that of the log itself.
func (b *Bounded) Tip(ctx context.Context) (int64, error) { return b.log.Tip(ctx) }

// boundedReader holds back what lies beyond the bound.
type boundedReader struct {
	Reader
	bound *Bounded
	ahead []record.Entry
}

// Poll implements Reader.
func (r *boundedReader) Poll(ctx context.Context) ([]record.Entry, error) {
	for {
		if len(r.ahead) == 0 {
			entries, err := r.Reader.Poll(ctx)
			if err != nil {
				return nil, err
			}
			r.ahead = entries
		}
		r.bound.mu.Lock()
		last, raised := r.bound.last, r.bound.raised
		r.bound.mu.Unlock()
		within := sort.Search(len(r.ahead), func(i int) bool { return r.ahead[i].Position.Sequence > last })
		if within > 0 {
			entries := r.ahead[:within:within]
			r.ahead = r.ahead[within:]
			return entries, nil
		}
		select {
		case <-raised:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
