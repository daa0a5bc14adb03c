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
	probeEvery = 250 * time.Millisecond // interval between probes of the other members
	dialWithin = time.Second
	refusals   = 2 // number of refused connections in a row after which a member that was reached before counts as dead
)

// reason is the reason for removing a node from the group. It is the label of a metric.
type reason string

// The reasons.
const (
	closed reason = "closed" // its port is closed
	silent reason = "silent" // the node does not answer
	hung   reason = "hung"   // the node answers, but the goroutine of its term does not
)

func newRemovals() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "perpetua_engine_removals_total",
		Help: "Other engines that this one has removed from the group, because their port was closed, or they or their terms were silent.",
	}, []string{"reason"})
	for _, r := range []reason{closed, silent, hung} {
		c.WithLabelValues(string(r)) // creates the series before the first removal
	}
	return c
}

// Collectors returns the metrics of a node.
func (n *Node) Collectors() []prometheus.Collector { return []prometheus.Collector{n.removals} }

// peer is the state of another member in the watch.
type peer struct {
	reached bool // it has accepted a connection, so its URL is correct
	refused int  // refused connections in a row since then
}

// watch removes dead members from the group, which would notice them only after their sessions expire. It starts before
// the node joins, so that it has already reached a member that dies right afterwards. A member is dead if its host
// answers but refuses connections at the member's address: a stopping node closes its port last. A member that accepts
// connections but does not work is found by asking for its terms (see pulses).
//
// If the watch is wrong, for example because only the member's port was closed, the member keeps serving for a while as
// an owner with a valid lease. That costs only time: the log decides whether its records count, and its refusals wait
// for the brokers.
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
		if err != nil { // the terms of the last known members are still monitored
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

// other reports whether a member is another engine.
func (n *Node) other(m member) bool { return m.instance != nil && *m.instance != n.cfg.NodeID }

// probeAll probes each of the other members once and returns their new states.
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
		p.probe(ctx, n.cfg.Dial, m.url)
		if p.dead() && n.remove(ctx, m, closed) == nil {
			continue
		}
		now[m.id] = p
	}
	return now
}

func (p *peer) dead() bool { return p.reached && p.refused >= refusals }

// dialer opens a connection, like net.Dialer.DialContext.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// probe tries to connect to a member.
func (p *peer) probe(ctx context.Context, dial dialer, at string) {
	u, err := url.Parse(at)
	if err != nil || u.Port() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	c, err := dial(ctx, "tcp", u.Host)
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
	// The other members learn of the rebalance with their next heartbeat. This one rejoins now. The lock keeps the
	// client open.
	n.joined.Lock()
	defer n.joined.Unlock()
	if n.membership != nil {
		n.membership.ForceRebalance()
	}
	return nil
}
