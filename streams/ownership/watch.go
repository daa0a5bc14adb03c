package ownership

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	probeEvery = 250 * time.Millisecond // at the other members
	dialWithin = time.Second
	refusals   = 2 // in a row make a dead member of one that was reached before
)

// reason says why a node is removed from the group. It is a label of a metric.
type reason string

// The reasons.
const (
	closed reason = "closed" // its port
	silent reason = "silent" // the node gives no answer
	hung   reason = "hung"   // the node answers, and the goroutine of its term does not
)

func newRemovals() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "perpetua_engine_removals_total",
		Help: "Other engines that this one has removed from the group, because their port was closed, or they or their terms were silent.",
	}, []string{"reason"})
	for _, r := range []reason{closed, silent, hung} {
		c.WithLabelValues(string(r)) // is there before the first
	}
	return c
}

// Collectors returns the metrics of a node.
func (n *Node) Collectors() []prometheus.Collector { return []prometheus.Collector{n.removals} }

// peer is what the watch knows of another member.
type peer struct {
	reached bool // it accepted a connection once, so that its URL is good
	refused int  // connections in a row since
}

// watch names the members that have died to the group, which otherwise would miss them only after their sessions. It
// begins before the node joins: whoever dies right after that was reached already. Dead means that the member's host answers
// but refuses connections at the member's address: a stopping node closes its port last. A member that accepts connections
// but does not work is found by asking for its terms (see pulses).
//
// Where the watch errs, the member lives, serves, and believes itself the owner for a while, by a lease that counts: its port
// alone may be gone. Then nothing but time is lost. Its records do not count unless the log says so, and its refusals wait for
// the brokers.
func (n *Node) watch(ctx context.Context) {
	var listening sync.WaitGroup
	defer listening.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	peers := make(map[string]*peer) // by member id
	pulses := newPulses(n, &listening)
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		members, err := n.find.members(ctx)
		if err != nil { // of those who were there last, the terms are still listened to
			n.log.Debug("looking at the other engines", "error", err)
		} else {
			pulses.follow(ctx, members)
			n.askers.keep(members)
			peers = n.probeAll(ctx, members, peers)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// other reports whether a member is an engine, and not this one.
func (n *Node) other(m member) bool { return m.instance != nil && *m.instance != n.cfg.NodeID }

// probeAll tries to reach each of the other members once, and returns what is known of them now.
func (n *Node) probeAll(ctx context.Context, members []member, before map[string]*peer) map[string]*peer {
	now := make(map[string]*peer)
	for _, m := range members {
		if !n.other(m) {
			continue
		}
		p := before[m.id]
		if p == nil {
			p = new(peer)
		}
		p.probe(ctx, m.url)
		if p.dead() && n.remove(ctx, m, closed) == nil {
			continue
		}
		now[m.id] = p
	}
	return now
}

func (p *peer) dead() bool { return p.reached && p.refused >= refusals }

// probe tries to reach a member.
func (p *peer) probe(ctx context.Context, at string) {
	u, err := url.Parse(at)
	if err != nil || u.Port() == "" {
		return
	}
	c, err := (&net.Dialer{Timeout: dialWithin}).DialContext(ctx, "tcp", u.Host)
	switch {
	case err == nil:
		c.Close()
		p.reached, p.refused = true, 0
	case errors.Is(err, syscall.ECONNREFUSED):
		p.refused++
	default:
		p.refused = 0
	}
}

// remove ends the membership of a dead node and rejoins the group, so that the node's partitions are assigned immediately.
func (n *Node) remove(ctx context.Context, m member, why reason) error {
	ctx, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	if err := n.find.group.remove(ctx, m, string(why)); err != nil {
		n.log.Warn("removing another engine from the group", "member", *m.instance, "url", m.url, "reason", why, "error", err)
		return err
	}
	n.log.Warn("removed another engine from the group", "member", *m.instance, "url", m.url, "reason", why)
	n.removals.WithLabelValues(string(why)).Inc()
	// The other members see the rebalance with their next heartbeat. This one rejoins now. The lock keeps the client open.
	n.joined.Lock()
	defer n.joined.Unlock()
	if n.membership != nil {
		n.membership.ForceRebalance()
	}
	return nil
}
