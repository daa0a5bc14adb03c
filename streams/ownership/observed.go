package ownership

import (
	"time"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Stalled reports whether this node's owner of a partition has stopped accepting commands because the brokers have not
// acknowledged its records for too long. since is the start of that time.
func (n *Node) Stalled(name string, partition int32) (since time.Time, stalled bool) {
	n.mu.Lock()
	o := n.owners[submit.Shard{Journal: name, Partition: partition}]
	n.mu.Unlock()
	if o == nil {
		return time.Time{}, false
	}
	return o.Stalled()
}

// Observed returns the offset after the last record that this node has read while it folds a partition as a standby.
// standing is false if it does not: it owns the partition, or the fold was not started.
func (n *Node) Observed(name string, partition int32) (offset int64, standing bool) {
	p := submit.Shard{Journal: name, Partition: partition}
	n.mu.Lock()
	s := n.ready[p]
	owning := n.runs[p] != nil
	n.mu.Unlock()
	if s == nil || owning {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.observed, s.stop != nil
}

// ClockRefused reports whether this node's clock prevents it from taking a term of a partition.
func (n *Node) ClockRefused(name string, partition int32) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.owners[submit.Shard{Journal: name, Partition: partition}]
	return o != nil && o.ClockRefused()
}
