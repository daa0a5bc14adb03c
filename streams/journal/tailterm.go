package journal

import (
	"fmt"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// InTerm tells a tail which term its position is in, as a Seed does, so that the next one is held against it. A tail that
// begins with genesis knows. It is called before the tail is polled.
func (t *Tail) InTerm(term int64) { t.term = term }

// followTerms returns the entries up to the first that opens a term which can't follow the one before it, and then has the
// tail end with that. The reader below, which others may share, need not have known the term when it began.
func (t *Tail) followTerms(entries []record.Entry, next int64) ([]record.Entry, int64) {
	for i, e := range entries {
		taken, ok := e.Record.Events[0].(*record.TermStarted)
		if !ok {
			continue
		}
		if t.term != record.UnknownTerm && taken.Term != t.term+1 {
			t.err = &record.BrokenRecordError{Journal: t.shard.Journal, Partition: t.shard.Partition, Offset: e.Position.Offset,
				Sequence: e.Position.Sequence, Reason: fmt.Sprintf("it opens term %d after term %d", taken.Term, t.term)}
			t.client.cfg.Metrics.Alarms.WithLabelValues(t.shard.Journal, alarmBroken).Inc()
			t.Close()
			return entries[:i], e.Position.Offset
		}
		t.term = taken.Term
	}
	return entries, next
}
