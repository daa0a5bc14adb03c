package ownership

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// clockEvery is how often a node whose clock is off looks whether it still is.
const clockEvery = time.Second

// awaitClock returns once this node's clock keeps it from no term, or when the context ends. A node that joined before
// would be assigned partitions that it must leave again, and that others served meanwhile.
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

// clockOff returns why this node would take no term of one of its journals, by the last records that it knows of.
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
