package journal

import (
	"fmt"
	"time"
)

// The error codes that clients and operators see.
const (
	CodeRecordTooLarge = "RECORD_TOO_LARGE"
	CodeClockOff       = "CLOCK_OFF"
)

// ForeignTermError reports that another process took the partition while this process owned it or was about to own it.
// The owner leaves the partition, and may return when it is assigned again.
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

// ClockError reports that this node must not take a term because its clock is more than a minute behind the log's last
// record, or more than a minute off a reference clock. The owner leaves the partition to other nodes.
type ClockError struct {
	Journal   string
	Partition int32
	Wall      time.Time // this node's time
	Of        string    // the clock that it was compared with
	Other     time.Time // the time of that clock
}

// Error names the code, the journal and both times.
func (e *ClockError) Error() string {
	return fmt.Sprintf("%s: no term of %s/%d is taken: this node's clock says %v, %s says %v", CodeClockOff, e.Journal, e.Partition,
		e.Wall.UTC().Format(time.RFC3339), e.Of, e.Other.UTC().Format(time.RFC3339))
}
