package term

import (
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The error codes that clients and operators see.
const (
	CodeRecordTooLarge = "RECORD_TOO_LARGE"
	CodeClockOff       = "CLOCK_OFF"
)

// ErrRules reports that the rules cannot continue. It is final.
var ErrRules = errors.New("the rules failed")

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

// ShortReplayError reports that a replay ended before known positions. Either the log has lost its end, or a broker that has
// just lost the partition reported an older end: the driver checks again whether the log holds the positions.
type ShortReplayError struct {
	Tip     record.Position   // where the replay ended
	Missing []record.Position // ascending
}

// Error names the end of the replay and the first position beyond it.
func (e *ShortReplayError) Error() string {
	return fmt.Sprintf("journal: the replay ended at %v, before %v, which the log holds", e.Tip, e.Missing[0])
}
