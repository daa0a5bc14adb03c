package ownership

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The times by which an owner is judged that listens and does not work: a process that was stopped, a machine that hangs.
// The group would notice only after its session of six seconds, and the brokers allow no shorter one.
const (
	pingEvery   = 250 * time.Millisecond
	silentAfter = 1500 * time.Millisecond // without an answer or a new record the owner is removed from the group …
	removeEvery = 30 * time.Second        // … at most this often: a node that is slow for long must not be removed again and again
	retryRemove = time.Second             // after the coordinator did not take the removal
	provenAfter = 3 * time.Second         // that a removed node is silent for: its removal was right and limits no later one
)

// pulseKey names one owner's work on one partition.
type pulseKey struct {
	member string // the membership's id
	place  place
}

// pulses checks the terms of the other members, in one goroutine for each partition that another member is assigned. Its
// methods MUST be called only from the watch's goroutine.
type pulses struct {
	node    *Node
	running map[pulseKey]context.CancelFunc
	done    *sync.WaitGroup
}

// follow listens to the partitions that others are assigned now, and to no other.
func (ps *pulses) follow(ctx context.Context, members []member) {
	n := ps.node
	if n.cfg.Neighbors == nil {
		return
	}
	assigned := make(map[pulseKey]member)
	for _, m := range members {
		if !n.other(m) {
			continue
		}
		for _, p := range n.find.owned(m) {
			assigned[pulseKey{m.id, p}] = m
		}
	}
	for key, stop := range ps.running {
		if _, still := assigned[key]; !still {
			stop()
			delete(ps.running, key)
		}
	}
	for key, m := range assigned {
		if ps.running[key] != nil {
			continue
		}
		listening, stop := context.WithCancel(ctx)
		ps.running[key] = stop
		ps.done.Go(func() { n.listen(listening, ctx, m, key.place) })
	}
}

// listen asks a member's term goroutine for a sign of life every pingEvery, and removes the member from the group when it has
// been silent for silentAfter. A new record in the log is also a sign of life. It returns when the context ends.
//
// Any answer counts, even that the member has no valid term yet: it may be folding a long log. If a member's build does not
// support the question, only the group's session timeout removes it.
//
// The watch's own context lasts longer than ctx, which ends with the membership: the removed node is asked once more.
func (n *Node) listen(ctx, watch context.Context, m member, p place) {
	var pinging sync.WaitGroup
	defer pinging.Wait()
	heard := make(chan struct{}, 1)
	pinging.Go(func() { n.ping(ctx, m.url, p, heard) })
	s := silence{observed: -1, last: time.Now()}
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-heard:
			s.quiet = 0
		case now := <-ticker.C:
			observed, _ := n.Observed(p.journal, p.partition)
			if s.tick(now, observed) >= silentAfter && n.mayRemove(*m.instance, now) {
				removed := n.remove(watch, m, silent) == nil // ctx may end before the answer is here
				n.noteRemoved(*m.instance, now, removed)
				if removed {
					n.checkRemoval(watch, m, p)
					return
				}
			}
		}
	}
}

// checkRemoval asks a removed node once more. If it stays silent, the removal was right, and the node may be removed again
// without delay. If it answers, it was only slow, and is not removed again within removeEvery.
func (n *Node) checkRemoval(ctx context.Context, m member, p place) {
	asking, cancel := context.WithTimeout(ctx, provenAfter)
	defer cancel()
	_, err := n.cfg.Neighbors.Term(asking, m.url, p.journal, p.partition)
	if err == nil || errors.Is(err, ErrNoSuchQuestion) || ctx.Err() != nil {
		return
	}
	n.removing.Lock()
	defer n.removing.Unlock()
	delete(n.removable, *m.instance)
}

// ping asks a node for its term every pingEvery until the context ends, and sends to heard after each answer.
func (n *Node) ping(ctx context.Context, url string, p place, heard chan<- struct{}) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, silentAfter)
		_, err := n.cfg.Neighbors.Term(asking, url, p.journal, p.partition)
		cancel()
		if err == nil || errors.Is(err, ErrNoSuchQuestion) {
			select {
			case heard <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// silence measures for how long an owner has shown no sign of life.
type silence struct {
	quiet    time.Duration
	last     time.Time // when quiet was last increased
	observed int64     // the end of the log as this node has read it
}

// tick adds the time since the last tick, unless the log has grown. Time in which this node itself did not run counts for
// two ticks at most: it could not hear anything.
func (s *silence) tick(now time.Time, observed int64) time.Duration {
	s.quiet += min(now.Sub(s.last), 2*pingEvery)
	s.last = now
	if observed != s.observed {
		s.quiet, s.observed = 0, observed
	}
	return s.quiet
}

// mayRemove reports whether a node may be removed from the group for its silence.
func (n *Node) mayRemove(instance string, now time.Time) bool {
	n.removing.Lock()
	defer n.removing.Unlock()
	return now.After(n.removable[instance])
}

// noteRemoved sets when a node may be removed again, depending on whether the coordinator has removed it.
func (n *Node) noteRemoved(instance string, now time.Time, removed bool) {
	n.removing.Lock()
	defer n.removing.Unlock()
	pause := retryRemove
	if removed {
		pause = removeEvery
	}
	n.removable[instance] = now.Add(pause)
}
