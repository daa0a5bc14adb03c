package journal

import (
	"fmt"
	"runtime/debug"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Apply applies a valid record to a state that follows the partition. Evolve is total by contract. If it panics anyway,
// the state is unusable: Apply raises an alarm and returns a *record.BrokenRecordError that names the record, and the
// caller MUST stop following the partition. A record is never skipped, and the panic never ends the process silently.
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
