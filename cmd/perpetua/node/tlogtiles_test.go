package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestArchivedRoots computes roots from the values of archived records, and finds out how old they are.
func TestArchivedRoots(t *testing.T) {
	const ranged, records = 32, 80 // two full ranges and a tail
	ctx, id := t.Context(), scalar.ID{7}
	bucket, err := blob.Open(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	cfg := archive.Config{Store: blob.NewStore(bucket), Box: box, Journal: "trading"}.WithRangeRecords(ranged)
	rootOf := func(_ context.Context, e record.Entry) (commitment.Hash, error) {
		return sha256.Sum256(strconv.AppendInt(e.Value, e.Position.Sequence, 10)), nil
	}
	l := &transparencyLog{follower: &follower{Journal: journals.Journal{Rules: journaltest.Words{Name: "trading"}}}, archive: func() archive.Config { return cfg }}
	a := &archivedRoots{log: l, id: id, root: rootOf}
	if n, err := a.Before(ctx, time.Now()); n != 0 || err != nil {
		t.Errorf("an empty archive has %d old records: %v", n, err)
	}
	begin := time.Unix(1_700_000_000, 0)
	var want []commitment.Hash
	w, err := archive.NewWriter(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	prev := record.Hash{}
	for n := range int64(records) {
		r := &record.Record{Sequence: n, Prev: prev, Time: scalar.TimeOf(begin.Add(time.Duration(n) * time.Second)), Outcome: decide.Accepted,
			Command: decide.Recorded{ID: record.NewCommandID(begin), Type: "test.say", Actor: decide.Actor{Sub: "u"}},
			Events:  []decide.Event{&journaltest.WordAdded{Word: strconv.FormatInt(n, 10)}}}
		if n == 0 {
			r.Command.Type, r.Command.Actor = record.TypeGenesis, decide.Engine
			r.Events = []decide.Event{&record.Genesis{Journal: "trading", JournalID: id, Partitions: 1}}
		}
		value, err := record.Encode(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		k := journal.KafkaRecord("trading", "trading", 0, id, r, value)
		k.Offset = n
		if err := w.Add(ctx, k); err != nil {
			t.Fatal(err)
		}
		root, _ := rootOf(ctx, record.Entry{Position: record.Position{Sequence: n}, Value: value})
		want, prev = append(want, root), sha256.Sum256(value)
	}
	if err := w.Tail(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]int64{{0, 64}, {0, 1}, {31, 33}, {40, 64}} {
		if got, err := a.Roots(ctx, c[0], c[1]); err != nil || !slices.Equal(got, want[c[0]:c[1]]) {
			t.Errorf("%v: %d roots, %v", c, len(got), err)
		}
	}
	// The tail may be replaced, so nothing is made from it.
	if got, err := a.Roots(ctx, 60, 65); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%d roots are made from the tail: %v", len(got), err)
	}
	for second, records := range map[int64]int64{0: 0, 31: 0, 32: 32, 63: 32, 64: 64, 1000: 64} {
		if got, err := a.Before(ctx, begin.Add(time.Duration(second)*time.Second)); err != nil || got != records {
			t.Errorf("after %d seconds %d records are old, not %d: %v", second, got, records, err)
		}
	}
}
