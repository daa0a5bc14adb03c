package admin

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestATailOfAFoldThatStartedLater gives a tail the records before the snapshot that its fold started from.
func TestATailOfAFoldThatStartedLater(t *testing.T) {
	entry := func(n int64) record.Entry {
		return record.Entry{Record: &record.Record{Sequence: n}, Position: record.Position{Offset: n, Sequence: n}, Journal: scalar.ID{1}, Value: []byte("{}")}
	}
	entries := func(from, to int64) (list []record.Entry) {
		for n := from; n <= to; n++ {
			list = append(list, entry(n))
		}
		return list
	}
	tail := NewTail("trading", 0)
	tail.Start(&record.Seed{Position: entry(5000).Position, Journal: scalar.ID{1}})
	if out, at, gone := tail.records(beforeAll, 10); len(out.Records) != 0 || at != 5000 || gone || out.JournalID == nil {
		t.Errorf("at the start: %+v at %d, %t", out, at, gone)
	}
	if _, _, gone := tail.records(4990, 10); !gone {
		t.Error("what it does not hold is not told to be gone")
	}
	if out, _, gone := tail.records(5000, 10); len(out.Records) != 0 || gone {
		t.Error("at its tip something is gone")
	}
	tail.Observe(entry(5001), nil)
	if from, to := tail.Missing(); from != 4002 || to != 5000 {
		t.Errorf("%d to %d are missing", from, to)
	}
	tail.Precede(entries(4500, 4998)) // which do not lead up to it
	if n := len(tail.recent); n != 1 {
		t.Errorf("with a gap, %d are kept", n)
	}
	tail.Precede(entries(3900, 5001))
	if n := len(tail.recent); n != tailRecords || tail.recent[0].at.Sequence != 4002 || tail.recent[n-1].at.Sequence != 5001 {
		t.Errorf("%d are kept from %d", n, tail.recent[0].at.Sequence)
	}
	if from, to := tail.Missing(); from <= to {
		t.Errorf("%d to %d are still missing", from, to)
	}
	if out, _, gone := tail.records(4990, 20); gone || len(out.Records) != 11 || out.Records[0].Sequence != 4991 {
		t.Errorf("%d records, gone %t", len(out.Records), gone)
	}
}
