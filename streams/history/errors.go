package history

import (
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// ErrBefore says that there is no state to return: the sequence is before the first record, or no rules decided the record.
var ErrBefore = errors.New("history: it is before the first record")

// AfterError says that a sequence is after the last record that this node has read.
type AfterError struct{ Tip record.Position }

// Error names the last record.
func (e *AfterError) Error() string {
	return fmt.Sprintf("history: the last record is %d", e.Tip.Sequence)
}

// BusyError says that the limit of states that are made at the same time is reached.
type BusyError struct{ RetryAfter time.Duration }

// Error says when to ask again.
func (e *BusyError) Error() string {
	return fmt.Sprintf("history: too many states are being made; ask again in %v", e.RetryAfter)
}
