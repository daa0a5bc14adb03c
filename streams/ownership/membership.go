package ownership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// The group's times. Unless the watch notices the death of a node, the group notices it after the session timeout; a
// node that stops leaves the group. The other members learn of a change with their next heartbeat. Before that, a
// partition that moves has no owner.
const (
	session   = 6 * time.Second
	heartbeat = 300 * time.Millisecond
	rebalance = 10 * time.Second
	leaving   = 5 * time.Second // limit for leaving the group
	away      = 2 * time.Second // time for which a node stays out of the group after it met a foreign term
)

// run is a running owner.
type run struct {
	stop context.CancelFunc
	done chan struct{}
}

// Run is a member of the group until the context ends, and owns the partitions assigned to it. It returns nil after a
// clean stop, when its owners have drained and it has left the group, and an error when a log is invalid.
func (n *Node) Run(ctx context.Context) error {
	following, stop := context.WithCancel(ctx)
	defer n.standDown()
	var watching sync.WaitGroup
	watching.Go(func() { n.watch(following) })
	defer watching.Wait()
	defer stop()
	for {
		n.standBy(following)
		// A node is assigned its partitions as soon as it joins, and they have no working owner until it has folded
		// them. So it folds first.
		for _, s := range n.standbys() {
			s.atTip(ctx)
		}
		n.awaitClock(ctx)
		if ctx.Err() != nil {
			return nil
		}
		err := n.member(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var foreign *term.ForeignTermError
		var clock *term.ClockError
		if !errors.As(err, &foreign) && !errors.As(err, &clock) {
			return err
		}
		// If this node owned the partition again immediately, the two nodes would fence each other forever. And a node
		// with a wrong clock gives up its partitions to the nodes with correct clocks.
		n.log.Warn("left the group of engines for a while", "error", err)
		n.standBy(following)
		timer := time.NewTimer(away)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// member is one membership, from joining to leaving. It returns the reason for its end.
func (n *Node) member(ctx context.Context) error {
	failed := make(chan error, 1)
	working, stop := context.WithCancel(ctx)
	defer stop()
	kc, err := n.join(ctx, working, failed)
	if err != nil {
		return err
	}
	n.setMembership(kc)
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	// The order matters. First, no new run can start that would outlive this membership, and the watch gets no client
	// to rebalance that is about to close. Then the owners drain while the partitions still belong to this node: once
	// another node is assigned one, it takes a term, and records that this node has in flight could no longer become
	// valid. Only then this node leaves the group.
	stop()
	n.setMembership(nil)
	n.endAll()
	n.leave(kc)
	n.endAll() // partitions assigned while leaving
	return err
}

// join creates a member of the group. Its owners run in the context working and report the reason for their end in
// failed.
func (n *Node) join(ctx, working context.Context, failed chan<- error) (*kgo.Client, error) {
	topics := make([]string, 0, len(n.rules))
	journals := make(map[string]string)
	for name := range n.rules {
		topics = append(topics, n.cfg.Client.Topic(name))
		journals[n.cfg.Client.Topic(name)] = name
	}
	each := func(do func(submit.Shard)) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			for topic, ps := range partitions {
				for _, p := range ps {
					do(submit.Shard{Journal: journals[topic], Partition: p})
				}
			}
		}
	}
	away := func(reason string) func(context.Context, *kgo.Client, map[string][]int32) {
		return each(func(p submit.Shard) {
			n.log.Info("no longer assigned", "journal", p.Journal, "partition", p.Partition, "reason", reason)
			n.end(p)
			n.standBy(ctx)
		})
	}
	kc, err := n.cfg.Client.KafkaFor(journal.ForGroup,
		kgo.ClientID(n.cfg.URL),
		kgo.ConsumerGroup(n.find.group.name),
		kgo.InstanceID(n.cfg.NodeID),
		kgo.ConsumeTopics(topics...),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(heartbeat),
		kgo.RebalanceTimeout(rebalance),
		kgo.DisableAutoCommit(),
		kgo.WithHooks(n.lease),
		kgo.OnPartitionsAssigned(each(func(p submit.Shard) { n.begin(working, p, failed) })),
		kgo.OnPartitionsRevoked(away("the group assigns it to another node, or this one leaves")),
		kgo.OnPartitionsLost(away("the session with the group has ended")),
	)
	if err != nil {
		return nil, err
	}
	// From here on, partitions may be assigned and owners may fail. The client must not fetch: the group only assigns
	// partitions, and other clients read the journals.
	kc.PauseFetchTopics(topics...)
	return kc, nil
}

// setMembership sets the client through which the node is a member of the group.
func (n *Node) setMembership(kc *kgo.Client) {
	n.joined.Lock()
	defer n.joined.Unlock()
	n.membership = kc
}

// standBy starts the fold of every partition that the node does not own, so that a later term starts at the tip.
func (n *Node) standBy(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for p, s := range n.ready {
		if n.runs[p] == nil && ctx.Err() == nil {
			s.begin(ctx)
		}
	}
}

// standbys returns the current standbys. An assignment may add one at any time.
func (n *Node) standbys() []*standby {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.ready))
}

// standDown ends all folds.
func (n *Node) standDown() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.ready {
		s.take()
	}
}

// begin starts to own a partition. A journal has only partition 0. The group also assigns partitions that were added to its topic
// later, and a genesis there would begin another journal with the same name.
func (n *Node) begin(ctx context.Context, p submit.Shard, failed chan<- error) {
	if p.Partition != 0 {
		n.log.Error("the topic has a partition that no journal has: nothing is written to it", "journal", p.Journal, "partition", p.Partition)
		return
	}
	o, err := n.owner(p)
	if err != nil {
		select {
		case failed <- err:
		default:
		}
		return
	}
	// A partition may be lost and assigned again without a revocation in between. Two runs of one owner would wait for
	// each other.
	n.end(p)
	ctx, stop := context.WithCancel(ctx)
	r := &run{stop: stop, done: make(chan struct{})}
	n.mu.Lock()
	n.runs[p] = r
	n.mu.Unlock()
	n.log.Info("assigned", "journal", p.Journal, "partition", p.Partition)
	go func() {
		defer close(r.done)
		defer stop()
		if err := o.Run(ctx); err != nil {
			select {
			case failed <- err:
			default: // another partition's owner has already ended the membership
			}
		}
	}()
}

// end stops owning a partition and waits until the records in flight are drained.
func (n *Node) end(p submit.Shard) {
	// The run is removed first: from here on commands are redirected instead of being submitted to an owner that stops.
	// Draining happens without the lock, because the owner's remaining commands need it.
	n.mu.Lock()
	r := n.runs[p]
	delete(n.runs, p)
	n.mu.Unlock()
	if r != nil {
		r.stop()
		<-r.done
		n.askers.forget(p)
	}
}

func (n *Node) endAll() {
	n.mu.Lock()
	runs := n.runs
	n.runs = make(map[submit.Shard]*run)
	n.mu.Unlock()
	for _, r := range runs {
		r.stop()
	}
	for p, r := range runs {
		<-r.done
		n.askers.forget(p)
	}
}

// leave ends the membership so that the other nodes need not wait for the session to expire. The client of a static
// member does not leave the group when it is closed, and an open client would join again. So it is closed first, and
// then the group is asked to remove this member.
func (n *Node) leave(kc *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	if n.cfg.Client.Gone() { // no broker answers any more
		cancel()
	}
	if err := kc.LeaveGroupContext(ctx); err != nil {
		n.log.Debug("ending the group session", "error", err)
	}
	kc.Close()
	if err := n.find.group.leave(ctx, n.cfg.NodeID); err != nil {
		n.log.Info("leaving the group of engines", "error", err)
	}
}
