package journal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// raws reads all records after a position up to the tip and returns their offsets.
func (r *rig) raws(from record.Position) (located record.Position, offsets []int64, err error) {
	reader := journal.NewRawReader(r.client, r.rules, 0, from)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
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
