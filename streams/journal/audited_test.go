package journal_test

import (
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestAnAuditPassesOverWhatIsNotDecoded: a client of which every reader is that of an audit, as a follower's, looks for a record by
// its sequence, and for a position that the log has lost. Neither decodes the records on the way.
func TestAnAuditPassesOverWhatIsNotDecoded(t *testing.T) {
	r := newRig(t)
	all := r.written(4)
	c, err := journal.NewClient(journal.Config{Brokers: r.brokers, Prefix: r.prefix, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	want := all[4]
	if got, err := c.ReadAt(r.context(), r.rules, 0, record.Before, want.Position.Sequence); err != nil || !got.Position.Equal(want.Position) || got.Record == nil {
		t.Errorf("record %d is %v, %v", want.Position.Sequence, got.Position, err)
	}
	lost := want.Position
	lost.Hash[0]++
	var diverged *record.DivergedError
	if err := c.Holds(r.context(), r.rules, 0, lost); !errors.As(err, &diverged) {
		t.Errorf("of a position that the log has lost, Holds says %v", err)
	}
}
