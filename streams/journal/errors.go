package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The codes that clients and operators see.
const (
	CodeNotAccepted    = "NOT_ACCEPTED"
	CodeOutcomeUnknown = "OUTCOME_UNKNOWN"
	CodeRecordTooLarge = "RECORD_TOO_LARGE"
	CodeClockOff       = "CLOCK_OFF"
)

// ForeignTermError says that another process took the partition while this one owned it or was about to. The owner
// leaves it; it may come back when it is assigned anew.
type ForeignTermError struct {
	Journal   string
	Partition int32
	Term      int64
	Node      string
}

// Error names the journal, the term and its node.
func (e *ForeignTermError) Error() string {
	return fmt.Sprintf("journal %s/%d was taken by node %s in term %d", e.Journal, e.Partition, e.Node, e.Term)
}

// ClockError says that this node takes no term with its clock, which is more than a minute behind the log's last record or
// off another clock. The owner leaves the partition to others.
type ClockError struct {
	Journal   string
	Partition int32
	Wall      time.Time // of this node
	Of        string    // what it was compared with …
	Other     time.Time // … and that time
}

// Error names the code, the journal and both times.
func (e *ClockError) Error() string {
	return fmt.Sprintf("%s: no term of %s/%d is taken: this node's clock says %v, %s says %v", CodeClockOff, e.Journal, e.Partition,
		e.Wall.UTC().Format(time.RFC3339), e.Of, e.Other.UTC().Format(time.RFC3339))
}

// RefusedError answers a command that changes nothing and left no record, as of the position that it names.
type RefusedError struct {
	Refusal *decide.Refusal
	AsOf    record.LogPosition
}

// Error returns the refusal's code and message.
func (e *RefusedError) Error() string { return e.Refusal.Error() }

// Unwrap returns the refusal.
func (e *RefusedError) Unwrap() error { return e.Refusal }

// NotAcceptedError says that the command was never decided: there is no owner, its window is full, something blocks
// clients, or nothing has been acknowledged for two seconds. It may be sent again as it is.
type NotAcceptedError struct {
	RetryAfter time.Duration
	Reason     string
	Unowned    bool // this node has no term of the journal and names nobody who has: another node may know the owner
}

// Error returns the code and the reason.
func (e *NotAcceptedError) Error() string { return CodeNotAccepted + ": " + e.Reason }

// OutcomeUnknownError says that the command was, or may have been, put into a record whose fate isn't known. It may
// still take effect; sending it again with the same key or reference gives its one outcome.
type OutcomeUnknownError struct{ CommandID scalar.ID }

// Error returns the code and the command's id.
func (e *OutcomeUnknownError) Error() string {
	return CodeOutcomeUnknown + ": command " + e.CommandID.String() + " may still take effect"
}

// ElsewhereError says which node owns the partition: the request should be proxied to it.
type ElsewhereError struct {
	URL string
	// Next looks for the owner again after the node at URL has said that it does not own the partition, or could not be
	// reached. It waits for a short time, may return the same node again, and returns nil if it finds no owner. Next is nil if
	// no other owner can be found.
	Next func(context.Context) *ElsewhereError
	// Superseded is closed when the log names a later owner. The node at URL appends no more records then. It may be nil.
	Superseded <-chan struct{}
}

// Error names the node.
func (e *ElsewhereError) Error() string { return "the partition is owned by " + e.URL }

// DecideError says that the rules failed on a command: they panicked, or returned something that is no decision.
// Nothing was appended and nothing changed. It is a fault of the program, 500 to a client.
type DecideError struct {
	CommandID scalar.ID
	Cause     error
}

// Error names the command and the cause.
func (e *DecideError) Error() string {
	return fmt.Sprintf("deciding command %v: %v", e.CommandID, e.Cause)
}

// Unwrap returns the cause.
func (e *DecideError) Unwrap() error { return e.Cause }
