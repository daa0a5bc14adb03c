package projections

import (
	"context"
	"sort"
	"sync"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Verified is a log of which only the records can be read that were verified elsewhere. A reader of it compares hashes, so brokers
// that serve other records to it than to the verifier are found out.
type Verified struct {
	log  Log
	name string // of the journal

	mu    sync.Mutex
	marks []record.Position // verified ones, ascending; some are left out if there are many
	begun bool              // the first mark is that of a seed: earlier records were verified before
	err   error             // why no record follows
	moved chan struct{}     // closed and replaced when a mark is added or err is set
}

// maxMarks is the number of marks from which every second one is dropped.
const maxMarks = 1 << 16

// NewVerified returns a log of which nothing can be read yet. from is the position of the seed that the verifier begins with, or
// record.Before: the records up to it are compared with its hash when a reader passes it.
func NewVerified(log Log, journal string, from record.Position) *Verified {
	v := &Verified{log: log, name: journal, moved: make(chan struct{})}
	if !from.IsBefore() {
		v.marks, v.begun = []record.Position{from}, true
	}
	return v
}

// Note says that the records up to a position are verified. It is called in the order of the log.
func (v *Verified) Note(p record.Position) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.marks) >= maxMarks {
		v.thin()
	}
	v.marks = append(v.marks, p)
	v.wake()
}

// thin drops every second mark, but not the first one.
func (v *Verified) thin() {
	kept := v.marks[:0]
	for i, p := range v.marks {
		if i%2 == 0 {
			kept = append(kept, p)
		}
	}
	v.marks = kept
}

// Stop says that no record after those that were noted will be verified. Readers return the error after them.
func (v *Verified) Stop(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
	v.wake()
}

// wake wakes all readers. The caller holds the lock.
func (v *Verified) wake() {
	close(v.moved)
	v.moved = make(chan struct{})
}

// From implements Log.
func (v *Verified) From(at record.Position) Reader {
	return &verifiedReader{Reader: v.log.From(at), of: v}
}

// Tip implements Log. It returns the end of the log, verified or not.
func (v *Verified) Tip(ctx context.Context) (int64, error) { return v.log.Tip(ctx) }

// verifiedReader holds entries back until they are verified.
type verifiedReader struct {
	Reader
	of    *Verified
	ahead []record.Entry
}

// Poll implements Reader.
func (r *verifiedReader) Poll(ctx context.Context) ([]record.Entry, error) {
	for {
		if len(r.ahead) == 0 {
			if err := r.read(ctx); err != nil {
				return nil, err
			}
		}
		n, beyond, moved, err := r.of.release(r.ahead)
		switch {
		case n > 0:
			entries := r.ahead[:n:n]
			r.ahead = r.ahead[n:]
			return entries, nil
		case err != nil:
			return nil, err
		case beyond: // the next mark is after the entries that were read
			if err := r.read(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *verifiedReader) read(ctx context.Context) error {
	entries, err := r.Reader.Poll(ctx)
	r.ahead = append(r.ahead, entries...)
	return err
}

// release returns how many of the entries are verified. beyond says that more entries must be read to tell; otherwise moved is
// closed when there may be more.
func (v *Verified) release(entries []record.Entry) (n int, beyond bool, moved <-chan struct{}, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	first, last := entries[0].Position.Sequence, entries[len(entries)-1].Position.Sequence
	// The last mark that is not after the entries.
	i := sort.Search(len(v.marks), func(i int) bool { return v.marks[i].Sequence > last }) - 1
	if i < 0 || v.marks[i].Sequence < first {
		switch {
		case i < 0 && v.begun: // all entries are before the seed
			return len(entries), false, nil, nil
		case i+1 < len(v.marks):
			return 0, true, nil, nil
		}
		return 0, false, v.moved, v.err
	}
	mark := v.marks[i]
	n = int(mark.Sequence-first) + 1
	if found := entries[n-1].Position; found.Hash != mark.Hash {
		return 0, false, nil, &record.DivergedError{Journal: v.name, Have: mark, Found: found, Reason: "the brokers served another record than the one that was verified"}
	}
	if i > 0 {
		v.marks, v.begun = v.marks[i:], false
	}
	return n, false, nil, nil
}
