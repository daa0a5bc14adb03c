package ownership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// A refusal leaves no record that could lose its place in the log. The owner asks the brokers for the end of the log after
// the decision, but a broker that lost the partition and does not know it yet confirms too much. So a refusal also needs a
// lease: proof that at some moment after the decision no other node could own the partition. Another node can own it after
// one of two events, and the lease has a part for each:
//
//   - The group dropped this member, at least a session after its last heartbeat (lease).
//   - Another engine removed this member for its silence, at least silentAfter after the last answer that it received (askers).
//     This part also protects against a coordinator that was replaced and still answers heartbeats: the engines on the far
//     side of the broken network no longer ask.
//
// A record needs no lease.

const (
	leasePatience = time.Second           // time that a refusal waits for the lease
	leasePoll     = 20 * time.Millisecond // interval between two checks of it
)

var errUnleased = &submit.NotAcceptedError{RetryAfter: time.Second,
	Reason: "this node may own the journal no more, and what it refuses may be good"}

func refused(err error) bool {
	var r *submit.RefusedError
	return err != nil && errors.As(err, &r)
}

// leased reports whether the node holds the lease after a refusal. It waits up to leasePatience, because a question of
// another engine may just be late. A later term proves nothing about a refusal of an earlier one.
func (n *Node) leased(ctx context.Context, o *journal.Owner) bool {
	holds := func() bool { return n.lease.holds() && n.askers.hold(n.owned()) }
	if holds() {
		return true
	}
	term, _ := o.Serving()
	late := time.NewTimer(leasePatience)
	defer late.Stop()
	ticker := time.NewTicker(leasePoll)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return false
		case <-late.C:
			return false
		case <-ticker.C:
		}
	}
	now, serving := o.Serving()
	return serving && now == term
}

// owned returns the partitions assigned to this node.
func (n *Node) owned() []submit.Shard {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.runs))
}

// lease tracks the time before which the group cannot have dropped this member for missing heartbeats. Its clock also runs
// while this machine is suspended, because the group counts that time.
type lease struct {
	now func() time.Duration // that of journal.Client.Elapsed

	mu        sync.Mutex
	ahead     time.Duration // of now relative to Go's monotonic clock, at the latest heartbeat or SyncGroup
	last      time.Duration // time at which the latest heartbeat was sent
	confirmed time.Duration // time at which the latest heartbeat known to be successful was sent; 0 for none
}

var _ kgo.HookBrokerE2E = (*lease)(nil)

func newLease(now func() time.Duration) *lease {
	l := &lease{now: now}
	_, l.ahead = l.read()
	return l
}

// started is the zero of Go's monotonic clock in this file.
var started = time.Now()

// read returns Go's monotonic clock, and by how much the lease's clock is ahead of it.
func (l *lease) read() (monotonic, ahead time.Duration) {
	now := l.now() // first, so that a pause between the two does not add to ahead
	monotonic = time.Since(started)
	return monotonic, now - monotonic
}

// OnBrokerE2E records the time at which an answered heartbeat was sent. This hook does not see whether the answer was
// an error. A heartbeat was successful if another one follows, because an error ends the heartbeats. A SyncGroup counts
// as successful immediately: without an assignment, no partition is owned.
func (l *lease) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	// Other requests of the client are answered while a heartbeat is under way.
	if e.Err() != nil || key != kmsg.Heartbeat.Int16() && key != kmsg.SyncGroup.Int16() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The duration leaves out a suspension. One since the latest answer may have been after this heartbeat was sent, so the
	// heartbeat counts as sent before the suspension.
	monotonic, ahead := l.read()
	sent := monotonic - e.DurationE2E() + min(l.ahead, ahead)
	l.ahead = ahead
	if key == kmsg.SyncGroup.Int16() {
		l.last = sent
	}
	l.confirmed, l.last = l.last, sent
}

// holds reports whether the membership cannot have expired yet.
func (l *lease) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.confirmed != 0 && l.now()-l.confirmed < session
}
