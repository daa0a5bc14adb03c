package journal

import (
	"fmt"
	"runtime/debug"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Apply applies a valid record to a state that follows the partition. Evolve is total by contract. Where it panics all
// the same the state is void, so the panic is the end of whoever follows, a *record.BrokenRecordError that names the record,
// and an alarm: never a record that was left out, and never the end of the process without a word.
func (c *Client) Apply(name string, partition int32, s decide.State, e record.Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.cfg.Metrics.Alarms.WithLabelValues(name, "evolve").Inc()
			c.cfg.Logger.Error("the rules panicked on applying a record", "alarm", "evolve", "journal", name, "partition", partition,
				"sequence", e.Position.Sequence, "panic", p, "stack", string(debug.Stack()))
			err = &record.BrokenRecordError{Journal: name, Partition: partition, Offset: e.Position.Offset, Sequence: e.Position.Sequence,
				Reason: fmt.Sprintf("the rules panicked on it: %v", p)}
		}
	}()
	s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	return nil
}
