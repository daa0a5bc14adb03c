package ownership

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// clockEvery is the interval at which a node with a wrong clock checks it again.
const clockEvery = time.Second

// awaitClock returns once this node's clock is good enough for every term, or when the context ends. If the node joined
// the group before that, it would be assigned partitions that other nodes serve and that it would have to give up
// again.
func (n *Node) awaitClock(ctx context.Context) {
	ticker := time.NewTicker(clockEvery)
	defer ticker.Stop()
	for n.clockOff(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// clockOff returns the reason why this node's clock prevents it from taking a term of any journal that it may own,
// according to the last records that it has read.
func (n *Node) clockOff(ctx context.Context) error {
	var asking errgroup.Group
	n.mu.Lock()
	for p, o := range n.owners {
		s := n.ready[p]
		asking.Go(func() error { return o.ClockOff(ctx, s.lastTime()) })
	}
	n.mu.Unlock()
	return asking.Wait()
}
