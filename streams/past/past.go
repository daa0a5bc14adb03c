// Package past has what a question about a past record gets: the record, the state that it was decided on, and the errors. It is
// apart from package history, which answers, so that those who ask do not import Kafka.
package past

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Met holds a record and the state before it.
type Met struct {
	State  decide.State
	Before record.Position // of the record before
	Time   scalar.Time     // of the record before
	Entry  record.Entry    // the record that was decided
	// Build is the build that opened the term of the record, or "" if unknown: the snapshot may be later than that
	// record.
	Build string
}

// Decisions finds what the decisions of records met.
type Decisions interface {
	// Deciding calls look with the record with a sequence and the state that it was decided on. look may decide on the state,
	// which fills caches of the state, so calls with one state run one after the other. It MUST NOT keep the state, and MUST NOT apply the
	// record.
	//
	// The errors are ErrBefore and *AfterError for a sequence that the journal does not have, *BusyError if too many states are
	// asked for, a *record.TrimmedError if the records are neither in the log nor in an archive, a *ForeignError for a record
	// that this build can't apply, and those of look, of the log, of the bucket, and of the context.
	Deciding(ctx context.Context, journal string, partition int32, sequence int64, look func(Met) error) error
}

// States finds whole states.
type States interface {
	// StateAt returns the state after the record with a sequence, and that record's position. The caller MUST only read the
	// state, and MUST NOT decide anything on it: others read it at the same time. The errors are those of Decisions.
	StateAt(ctx context.Context, journal string, partition int32, sequence int64) (decide.State, record.Position, error)
}

// ErrBefore is the error for a sequence before the first record, and for a record that no rules decided.
var ErrBefore = errors.New("past: it is before the first record")

// AfterError says that a sequence is after the last record that this node has read.
type AfterError struct{ Tip record.Position }

// Error names the last record.
func (e *AfterError) Error() string {
	return fmt.Sprintf("past: the last record is %d", e.Tip.Sequence)
}

// BusyError says that the limit of states that are made at the same time is reached, or that a state takes long to make.
type BusyError struct {
	RetryAfter time.Duration
	Underway   bool // the state is being made, and will be kept for the next question
}

// Error says when to ask again.
func (e *BusyError) Error() string {
	if e.Underway {
		return fmt.Sprintf("past: the state is being made; ask again in %v", e.RetryAfter)
	}
	return fmt.Sprintf("past: too many states are being made; ask again in %v", e.RetryAfter)
}

// ForeignError says that this build can't apply a record, because another build has its rules. It wraps the
// *record.BrokenRecordError.
type ForeignError struct {
	Build string // that opened the term of the record; "" if unknown
	Err   error
}

// Error says which record it is.
func (e *ForeignError) Error() string { return e.Err.Error() }

// Unwrap returns the error about the record.
func (e *ForeignError) Unwrap() error { return e.Err }
