package journal_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// raws reads all records after a position up to the tip and returns their offsets.
func (r *rig) raws(from record.Position) (located record.Position, offsets []int64, err error) {
	reader := journal.NewRawReader(r.client, r.rules, 0, from)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if located, err = reader.Locate(ctx); err != nil {
		return located, nil, err
	}
	end := must(r.client.Tip(ctx, "trading", 0))
	for reader.NextOffset() < end {
		records, err := reader.Poll(ctx)
		if err != nil {
			return located, offsets, err
		}
		for _, k := range records {
			offsets = append(offsets, k.Offset)
		}
	}
	if !reader.AtTip() {
		r.t.Error("the reader is not at the tip")
	}
	return located, offsets, nil
}

// TestARawReaderSkipsNothing: it returns each record once, from any position, wherever that is in the log now.
func TestARawReaderSkipsNothing(t *testing.T) {
	r := newRig(t)
	all := r.written(4)
	v := values(all)
	r.recreate(v[0], []byte("garbage"), v[0], v[1], v[2], v[1], v[2], nil, []byte("{"), v[4], v[3], v[4], v[5], v[4])
	at := map[int64]int64{0: 0, 1: 3, 2: 4, 3: 10, 4: 11, 5: 12}
	check := func(from record.Position, found int64) {
		t.Helper()
		var want []int64
		for n := found + 1; n < 14; n++ {
			want = append(want, n)
		}
		located, got, err := r.raws(from)
		if err != nil || !located.Equal(from) || located.Offset != found {
			t.Errorf("%v is at %v: %v", from, located, err)
		}
		equal(t, "offsets", got, want)
	}
	check(record.Before, -1)
	for _, e := range all {
		p := e.Position
		p.Offset = at[p.Sequence]
		check(p, p.Offset)
	}
	check(all[2].Position, 4) // its offset was 2
	var diverged *record.DivergedError
	if _, _, err := r.raws(record.Position{Offset: 3, Sequence: 1, Hash: record.Hash{1}}); !errors.As(err, &diverged) {
		t.Errorf("of another log: %v", err)
	}
}

// wholeHistory has every record of a log.
type wholeHistory struct{ *history }

func (h wholeHistory) Holds(context.Context, record.Base) error { return nil }

func (h wholeHistory) Records(_ context.Context, _ string, _ int32, from, to int64) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		for _, e := range h.valid[from:to] {
			if !yield(h.kafka[e.Position.Offset], nil) {
				return
			}
		}
	}
}

func (h wholeHistory) Stored(_ context.Context, _ string, _ int32, from, to int64) iter.Seq2[journal.Stored, error] {
	return func(yield func(journal.Stored, error) bool) {
		for _, e := range h.valid[from:to] {
			if !yield(journal.Stored{Record: h.kafka[e.Position.Offset], Sequence: e.Position.Sequence, Hash: e.Position.Hash}, nil) {
				return
			}
		}
	}
}

// TestARawReaderStaysInTheTopic: before the base, it says so and passes over no record, although other readers get those from the
// history. So it does if the log is trimmed while it reads.
func TestARawReaderStaysInTheTopic(t *testing.T) {
	const n, at = 300, 200
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(3, 1)))
	b.client.SetHistory(wholeHistory{b.history})
	ahead := journal.NewRawReader(b.client, b.rules, 0, b.valid[20].Position)
	defer ahead.Close()
	if _, err := ahead.Locate(b.context()); err != nil {
		t.Fatal(err)
	}
	ahead.Close() // its connection breaks
	b.trim(at)
	var trimmed *record.TrimmedError
	for _, from := range []record.Position{record.Before, b.valid[20].Position} {
		if got, err := b.from(b.client, from); err != nil || !slices.Equal(got, b.hashes(from.Sequence)) {
			t.Errorf("another reader after %v: %d records, %v", from, len(got), err)
		}
		if _, got, err := b.raws(from); !errors.As(err, &trimmed) || trimmed.Base != b.base(at) || len(got) > 0 {
			t.Errorf("after %v: %d records, %v", from, len(got), err)
		}
	}
	next := ahead.Position().Sequence + 1
	for {
		records, err := ahead.Poll(b.context())
		if err != nil {
			if !errors.As(err, &trimmed) {
				t.Error(err)
			}
			break
		}
		for _, k := range records {
			if _, sequence, ok := record.PrevOf(k.Value); ok && sequence > next {
				t.Fatalf("record %d comes after %d", sequence, next-1)
			} else if sequence == next {
				next++
			}
		}
	}
	if _, got, err := b.raws(b.valid[at-1].Position); err != nil || len(got) != len(b.kafka)-int(b.valid[at].Position.Offset) {
		t.Errorf("from the base on: %d records, %v", len(got), err)
	}
}
