package record

import (
	"errors"
	"fmt"
)

// The codes that clients and operators see.
const (
	CodeDiverged = "LOG_DIVERGED"
	CodeBroken   = "LOG_BROKEN"
	CodeTrimmed  = "LOG_TRIMMED"
	CodeBase     = "LOG_BASE"
)

// DivergedError says that the log does not hold a position that was read from it earlier: the log was truncated, recreated
// or edited. It is final: retrying does not help.
type DivergedError struct {
	Journal   string
	Partition int32
	Have      Position // that was read earlier
	Found     Position // what the log holds at that offset; if it ends before, its last offset
	Reason    string
}

// Error names the code, the journal and both positions.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("%s: journal %s/%d does not hold %v: %s (found %v)",
		CodeDiverged, e.Journal, e.Partition, e.Have, e.Reason, e.Found)
}

// BrokenRecordError says that a record continues the chain but cannot be applied: it has the wrong sequence, or a form that
// this build does not know. It is final: retrying does not help.
type BrokenRecordError struct {
	Journal   string
	Partition int32
	Offset    int64
	Sequence  int64 // in the record; -1 if it has none
	Reason    string
	Cause     error // may be nil
}

// Error names the record and the reason.
func (e *BrokenRecordError) Error() string {
	return fmt.Sprintf("%s: journal %s/%d: the record at offset %d with sequence %d can't be applied: %s",
		CodeBroken, e.Journal, e.Partition, e.Offset, e.Sequence, e.Reason)
}

// Unwrap returns the cause, if there is one.
func (e *BrokenRecordError) Unwrap() error { return e.Cause }

// TrimmedError says that a reader asks for records that the log does not hold any more. It is final: only the archive has
// them.
type TrimmedError struct {
	Base Base     // where the log begins
	Have Position // whose record the log does not hold; Before for the beginning of the journal

	Archive error // why the archive does not help; nil if none was asked
}

// Unwrap returns why the archive does not help.
func (e *TrimmedError) Unwrap() error { return e.Archive }

// Error names the code, the journal, the position and the base.
func (e *TrimmedError) Error() string {
	what := fmt.Sprintf("the record with sequence %d", e.Have.Sequence)
	if e.Have.IsBefore() {
		what = "the genesis"
	}
	text := fmt.Sprintf("%s: journal %s/%d begins at record %d: %s is only in the archive, and a state needs a snapshot from record %d on",
		CodeTrimmed, e.Base.Journal, e.Base.Partition, e.Base.Sequence, what, e.Base.Sequence-1)
	if e.Archive != nil {
		text += ": " + e.Archive.Error()
	}
	return text
}

// BaseError says that it is not known for certain where a trimmed log begins: no copy of the base is left, two copies
// contradict each other, or the base belongs to another log. It is final: retrying does not help.
type BaseError struct {
	Journal   string
	Partition int32
	Reason    string
}

// Error names the code, the journal and the reason.
func (e *BaseError) Error() string {
	return fmt.Sprintf("%s: journal %s/%d: %s", CodeBase, e.Journal, e.Partition, e.Reason)
}

// Final reports whether err is a *DivergedError, a *BrokenRecordError, a *TrimmedError or a *BaseError: the log itself is
// wrong, or lacks what is asked for, and retrying does not help.
func Final(err error) bool {
	var diverged *DivergedError
	var broken *BrokenRecordError
	var trimmed *TrimmedError
	var base *BaseError
	return errors.As(err, &diverged) || errors.As(err, &broken) || errors.As(err, &trimmed) || errors.As(err, &base)
}
