package journal

import (
	"fmt"
	"time"
)

// The codes that clients and operators see.
const (
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
