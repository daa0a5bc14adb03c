package journal

import (
	"fmt"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// InTerm sets the term of a tail's position, as in a Seed, so that the tail can check the next term. A tail that starts
// at genesis does not need it. It must be called before the tail is polled.
func (t *Tail) InTerm(term int64) { t.term = term }

// followTerms returns the entries before the first that opens a term out of sequence, and sets the error of the tail if
// there is one. The reader below, which may be shared, may not have had the term at its start.
func (t *Tail) followTerms(entries []record.Entry, next int64) ([]record.Entry, int64) {
	for i, e := range entries {
		taken, ok := e.Record.Events[0].(*record.TermStarted)
		if !ok {
			continue
		}
		if t.term != record.UnknownTerm && taken.Term != t.term+1 {
			t.err = &record.BrokenRecordError{Journal: t.shard.Journal, Partition: t.shard.Partition, Offset: e.Position.Offset,
				Sequence: e.Position.Sequence, Reason: fmt.Sprintf("it opens term %d after term %d", taken.Term, t.term)}
			t.client.cfg.Metrics.countFinal(t.shard.Journal, t.err)
			t.Close()
			return entries[:i], e.Position.Offset
		}
		t.term = taken.Term
	}
	return entries, next
}
