package follow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Marks are positions of a journal that a checked fold has verified. Other readers of the log compare what they read with them, so
// brokers that serve other records to them than to the fold are found out. The number of marks is bounded. Marks is safe for
// concurrent use.
type Marks struct {
	journal string

	mu    sync.Mutex
	marks []record.Position // ascending; the newest ones are complete
	gap   int64             // the largest distance, in records, that dropping a mark may leave
	err   error             // why no record follows
	moved chan struct{}     // closed and replaced when a mark is added or err is set
}

const (
	// maxMarks is the number of marks from which some are dropped, and denseMarks is the number of the newest ones that stay.
	maxMarks   = 1 << 16
	denseMarks = maxMarks / 2
)

// NewMarks returns the marks of a journal. verified are positions that were verified before, in any order.
func NewMarks(journal string, verified ...record.Position) *Marks {
	marks := slices.Clone(verified)
	slices.SortStableFunc(marks, func(p, q record.Position) int { return cmp.Compare(p.Sequence, q.Sequence) })
	marks = slices.CompactFunc(marks, func(p, q record.Position) bool { return p.Sequence == q.Sequence })
	return &Marks{journal: journal, marks: marks, gap: 1, moved: make(chan struct{})}
}

// Note says that the records up to a position are verified. It is called in the order of the log.
func (m *Marks) Note(p record.Position) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.marks) >= maxMarks {
		m.thin()
	}
	m.marks = append(m.marks, p)
	m.wake()
}

// thin drops marks before the newest ones, so that those that stay are about evenly spaced.
func (m *Marks) thin() {
	n := len(m.marks) - denseMarks
	old, dense := m.marks[:n], m.marks[n:]
	for {
		old = spaced(old, m.gap)
		if len(old) <= denseMarks/2 {
			break
		}
		m.gap *= 2
	}
	m.marks = append(old, dense...)
}

// spaced drops positions in place, each only if the distance between its neighbors is at most gap then.
func spaced(all []record.Position, gap int64) []record.Position {
	marks := all[:0]
	for i, p := range all {
		if i > 0 && i+1 < len(all) && all[i+1].Sequence-marks[len(marks)-1].Sequence <= gap {
			continue
		}
		marks = append(marks, p)
	}
	return marks
}

// Stop says that no record after those that were noted will be verified. Readers get the error after them.
func (m *Marks) Stop(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	m.wake()
}

// wake wakes all readers. The caller holds the lock.
func (m *Marks) wake() {
	close(m.moved)
	m.moved = make(chan struct{})
}

// Held holds the entries of one reader back until they are proven to be those that the fold has verified. It is not safe for
// concurrent use.
type Held struct {
	marks *Marks
	ahead []record.Entry
}

// Hold returns a Held for a new reader.
func (m *Marks) Hold() *Held { return &Held{marks: m} }

// Next returns the next entries that are proven: at least one. It calls read for more; to is the sequence of a record that the log
// has and that proves the entries read so far, or -1 for any. Next waits for the fold if necessary. The error is that of
// read, of the context, of Stop, or a *record.DivergedError.
func (h *Held) Next(ctx context.Context, read func(ctx context.Context, to int64) ([]record.Entry, error)) ([]record.Entry, error) {
	to := int64(-1)
	for {
		if len(h.ahead) == 0 || to >= 0 {
			entries, err := read(ctx, to)
			if err != nil {
				return nil, err
			}
			if h.ahead = append(h.ahead, entries...); len(h.ahead) == 0 {
				continue
			}
		}
		p := h.marks.prove(h.ahead)
		switch to = p.to; {
		case p.n > 0:
			entries := h.ahead[:p.n:p.n]
			h.ahead = h.ahead[p.n:]
			return entries, nil
		case p.err != nil:
			return nil, p.err
		case to >= 0:
			continue
		}
		select {
		case <-p.moved:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lead splits entries into those that lead to a mark, or come after the last one, and those that may prove not to. The error is about
// the latter. m may be nil.
func (m *Marks) lead(entries []record.Entry) (proven, held []record.Entry, err error) {
	if m == nil || len(m.marks) == 0 || len(entries) == 0 || entries[0].Position.Sequence > m.marks[len(m.marks)-1].Sequence {
		return entries, nil, nil
	}
	last, n := m.marks[len(m.marks)-1].Sequence, 0
	for n < len(entries) {
		p := m.prove(entries[n:])
		if p.n == 0 {
			return entries[:n:n], entries[n:], p.err
		}
		if n += p.n; entries[n-1].Position.Sequence == last {
			n = len(entries)
		}
	}
	return entries, nil, nil
}

// Prove returns an error unless all of the entries are proven.
func (m *Marks) Prove(entries []record.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	switch p := m.prove(entries); {
	case p.err != nil:
		return p.err
	case p.n < len(entries):
		return fmt.Errorf("follow: no mark proves the last of %d records of the journal %s", len(entries), m.journal)
	}
	return nil
}

// proof says how many entries are proven. If there are none, to is the sequence of the record that proves them, or -1 if
// that is not known before moved is closed.
type proof struct {
	n     int
	to    int64
	moved <-chan struct{}
	err   error
}

func (m *Marks) prove(entries []record.Entry) proof {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, last := entries[0].Position.Sequence, entries[len(entries)-1].Position.Sequence
	after := sort.Search(len(m.marks), func(i int) bool { return m.marks[i].Sequence > last })
	wrong := error(nil)
	for i := after - 1; i >= 0 && m.marks[i].Sequence >= first; i-- {
		n := int(m.marks[i].Sequence-first) + 1
		found := entries[n-1].Position
		if found.Hash == m.marks[i].Hash {
			return proof{n: n, to: -1}
		}
		wrong = &record.DivergedError{Journal: m.journal, Have: m.marks[i], Found: found,
			Reason: "the brokers served another record than the one that was verified"}
	}
	switch {
	case wrong != nil:
		return proof{to: -1, err: wrong}
	case after < len(m.marks):
		return proof{to: m.marks[after].Sequence}
	}
	return proof{to: -1, moved: m.moved, err: m.err}
}
