package ownership

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestAnAddedPartitionIsNotOwned: the group assigns partitions that somebody has added to a topic like the first one.
func TestAnAddedPartitionIsNotOwned(t *testing.T) {
	n := standbyIn(t, newCluster(t), newTown())
	n.begin(t.Context(), submit.Shard{Journal: "trading", Partition: 1}, make(chan error, 1))
	defer n.endAll()
	n.mu.Lock()
	owned := len(n.runs)
	n.mu.Unlock()
	if owned != 0 {
		t.Errorf("%d partitions are owned", owned)
	}
}
