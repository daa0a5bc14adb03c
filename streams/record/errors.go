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

// DivergedError says that the log does not hold a position that was read from it before: it was truncated,
// recreated or edited. It is final.
type DivergedError struct {
	Journal   string
	Partition int32
	Have      Position // what is known
	Found     Position // what the log holds at that offset or, where it ends before it, its last offset
	Reason    string
}

// Error names the code, the journal and both positions.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("%s: journal %s/%d does not hold %v: %s (found %v)",
		CodeDiverged, e.Journal, e.Partition, e.Have, e.Reason, e.Found)
}

// BrokenRecordError says that a record which continues the chain can't be applied: it has the wrong sequence or a
// shape that this build doesn't know. It is final.
type BrokenRecordError struct {
	Journal   string
	Partition int32
	Offset    int64
	Sequence  int64 // as the record has it
	Reason    string
	Cause     error
}

// Error names the record and the reason.
func (e *BrokenRecordError) Error() string {
	return fmt.Sprintf("%s: journal %s/%d: the record at offset %d with sequence %d can't be applied: %s",
		CodeBroken, e.Journal, e.Partition, e.Offset, e.Sequence, e.Reason)
}

// Unwrap returns the cause, if there is one.
func (e *BrokenRecordError) Unwrap() error { return e.Cause }

// Final reports whether err says that the log itself is at fault, so that trying again is of no use.
func Final(err error) bool {
	var diverged *DivergedError
	var broken *BrokenRecordError
	return errors.As(err, &diverged) || errors.As(err, &broken)
}
