package journal_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// asked is a history that remembers which records it was asked for. change, if it is not nil, changes the records.
type asked struct {
	wholeHistory
	change func(*journal.Stored)

	mu    sync.Mutex
	spans [][2]int64
}

func (a *asked) Stored(ctx context.Context, name string, partition int32, from, to int64) iter.Seq2[journal.Stored, error] {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spans = append(a.spans, [2]int64{from, to})
	return func(yield func(journal.Stored, error) bool) {
		for r, err := range a.wholeHistory.Stored(ctx, name, partition, from, to) {
			if a.change != nil {
				a.change(&r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// take returns the spans since the last call.
func (a *asked) take() [][2]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.spans = nil }()
	return a.spans
}

// TestTheHistoryIsReadUpToWhatIsNeeded: a reader that needs one record asks for the records from its position to that one, once. If
// it needs more, it continues.
func TestTheHistoryIsReadUpToWhatIsNeeded(t *testing.T) {
	const n, at = 300, 200
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(4, 1)))
	h := &asked{wholeHistory: wholeHistory{b.history}}
	b.client.SetHistory(h)
	b.trim(at)
	r := journal.NewReader(b.client, b.rules, 0, b.valid[20].Position)
	defer r.Close()
	next := int64(21)
	for _, c := range []struct {
		to    int64
		spans [][2]int64
	}{
		{50, [][2]int64{{20, 51}}},
		{60, [][2]int64{{50, 61}}},
		{n - 1, [][2]int64{{60, at}}},
	} {
		for next <= c.to {
			entries, err := r.PollFor(b.context(), c.to)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if !e.Position.Equal(b.valid[next].Position) || e.Record == nil {
					t.Fatalf("%v comes in the place of record %d", e.Position, next)
				}
				next++
			}
		}
		if spans := h.take(); !slices.Equal(spans, c.spans) {
			t.Errorf("for record %d, it has asked for %v, and not for %v", c.to, spans, c.spans)
		}
	}
	if e, err := b.client.ReadAt(b.context(), b.rules, 0, b.valid[20].Position, 30); err != nil || !e.Position.Equal(b.valid[30].Position) {
		t.Error(e.Position, err)
	}
	if spans := h.take(); !slices.Equal(spans, [][2]int64{{20, 31}}) {
		t.Errorf("for a single record, it has asked for %v", spans)
	}
}

// TestTheHistoryIsReadOnceFromTheBeginning: a reader that begins before the genesis, and expects no certain record, asks for all
// records before the base, once.
func TestTheHistoryIsReadOnceFromTheBeginning(t *testing.T) {
	const n, at = 300, 200
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(7, 1)))
	h := &asked{wholeHistory: wholeHistory{b.history}}
	b.client.SetHistory(h)
	b.trim(at)
	r := journal.NewReader(b.client, b.rules, 0, record.Before)
	defer r.Close()
	if err := r.ToTip(b.context(), func([]record.Entry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if spans := h.take(); !slices.Equal(spans, [][2]int64{{0, at}}) {
		t.Errorf("it has asked for %v", spans)
	}
	if e, err := b.client.ReadAt(b.context(), b.rules, 0, record.Before, 0); err != nil || e.Position.Sequence != 0 {
		t.Error(e.Position, err)
	}
	if spans := h.take(); !slices.Equal(spans, [][2]int64{{0, 1}}) {
		t.Errorf("for the genesis, it has asked for %v", spans)
	}
}

// TestAnAuditChecksWhatTheHistoryStores: the key of a record that is not plain. A plain record has none.
func TestAnAuditChecksWhatTheHistoryStores(t *testing.T) {
	const n, at, odd = 300, 200, 120
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(5, 1)))
	plain := true
	h := &asked{wholeHistory: wholeHistory{b.history}, change: func(s *journal.Stored) {
		if s.Sequence == odd {
			changed := *s.Record
			changed.Key = nil
			s.Record, s.Plain = &changed, plain
		}
	}}
	b.client.SetHistory(h)
	b.trim(at)
	for _, plain = range []bool{true, false} {
		r := journal.NewReader(b.client, b.rules, 0, record.Before)
		r.Audit()
		var broken *record.BrokenRecordError
		err := r.ToTip(b.context(), func([]record.Entry) error { return nil })
		if plain && err != nil || !plain && (!errors.As(err, &broken) || broken.Sequence != odd) {
			t.Errorf("plain: %t: %v", plain, err)
		}
		r.Close()
	}
}

// TestTheHistoryHasAnotherRecord: a reader whose position the history contradicts or lacks does not begin.
func TestTheHistoryHasAnotherRecord(t *testing.T) {
	const n, at = 300, 200
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(6, 1)))
	b.client.SetHistory(wholeHistory{b.history})
	b.trim(at)
	have := b.valid[20].Position
	have.Hash = record.Hash{1}
	r := journal.NewReader(b.client, b.rules, 0, have)
	defer r.Close()
	var diverged *record.DivergedError
	if _, err := r.Poll(b.context()); !errors.As(err, &diverged) || !diverged.Found.Equal(b.valid[20].Position) {
		t.Error(err)
	}
}
