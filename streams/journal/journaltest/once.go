package journaltest

import (
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Once records the sequence at which each command was accepted. The zero Once is empty.
type Once struct{ accepted map[scalar.ID]int64 }

// Add adds a valid record. It returns an error if an earlier record accepted the same command: the command has then
// taken effect twice.
func (o *Once) Add(id scalar.ID, outcome decide.Outcome, sequence int64) error {
	if outcome != decide.Accepted {
		return nil
	}
	if o.accepted == nil {
		o.accepted = make(map[scalar.ID]int64)
	}
	if first, twice := o.accepted[id]; twice {
		return fmt.Errorf("command %v was accepted in record %d and again in record %d", id, first, sequence)
	}
	o.accepted[id] = sequence
	return nil
}

// CommandsOnce returns an error that names every command of a log that was accepted more than once.
func CommandsOnce(log []record.Entry) error {
	var once Once
	var all error
	for _, e := range log {
		all = errors.Join(all, once.Add(e.Record.Command.ID, e.Record.Outcome, e.Record.Sequence))
	}
	return all
}
