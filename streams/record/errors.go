package record

import (
	"errors"
	"fmt"
)

// The codes that clients and operators see.
const (
	CodeDiverged = "LOG_DIVERGED"
	CodeBroken   = "LOG_BROKEN"
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

// Final reports whether err is a *DivergedError or a *BrokenRecordError: the log itself is wrong, and retrying does not help.
func Final(err error) bool {
	var diverged *DivergedError
	var broken *BrokenRecordError
	return errors.As(err, &diverged) || errors.As(err, &broken)
}
