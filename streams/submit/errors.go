package submit

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
)

// RefusedError says that the rules refused the command. It changed nothing and left no record.
type RefusedError struct {
	Refusal *decide.Refusal
	AsOf    record.LogPosition // of the last record before the decision
}

// Error returns the refusal's code and message.
func (e *RefusedError) Error() string { return e.Refusal.Error() }

// Unwrap returns the refusal.
func (e *RefusedError) Unwrap() error { return e.Refusal }

// NotAcceptedError says that the command has had no effect and never will. For example, the journal has no owner at the moment,
// the owner's window or queue is full, due work blocks clients, or the log has acknowledged nothing for two seconds. The same
// command may be submitted again.
type NotAcceptedError struct {
	RetryAfter time.Duration // after which to submit it again
	Reason     string
	// Unowned says that this node does not own the journal and knows no owner, or not in the term of InTerm. Another node, or
	// another search for the owner, may find it.
	Unowned bool
}

// Error returns the code and the reason.
func (e *NotAcceptedError) Error() string { return CodeNotAccepted + ": " + e.Reason }

// OutcomeUnknownError says that the command is in a record, or may be, and that it is not known whether that record is in
// the log or will be. The command may still take effect. Submitting it again with the same idempotency key or reference
// returns its one outcome.
type OutcomeUnknownError struct{ CommandID scalar.ID }

// Error returns the code and the command's id.
func (e *OutcomeUnknownError) Error() string {
	return CodeOutcomeUnknown + ": command " + e.CommandID.String() + " may still take effect"
}

// ElsewhereError says that another node owns the journal. The command should be sent there. Package peer does so, and its
// Router never returns this error.
type ElsewhereError struct {
	URL string // of the owner
	// Next looks for the owner again after the node at URL has said that it does not own the journal, or could not be
	// reached. It waits for a short time, may return the same node again, and returns nil if it finds no owner. Next is nil if
	// no other owner can be found.
	Next func(context.Context) *ElsewhereError
}

// Error names the node.
func (e *ElsewhereError) Error() string { return "the partition is owned by " + e.URL }

// DecideError says that the rules failed on the command: they panicked, or their decision was invalid. Nothing was recorded
// and nothing changed. It is an error of the program, 500 to a client.
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
