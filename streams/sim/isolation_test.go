package sim

import (
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// isolation is a node that reaches only a broker which has lost the shard and does not know it yet. What the node sends stays
// there, its reader gets nothing, and the broker reports an obsolete end of the log. Only the lease, which package ownership
// holds, keeps the node's refusals right: the group gives the shard to no other node before the lease is over.
type isolation struct {
	node   *node
	end    int64         // of the log at the beginning
	leased time.Duration // until then the node holds its lease
	until  time.Duration
}

// isolate isolates a serving node, if no other one has the shard or is about to have it.
func (w *world) isolate(n *node) {
	if w.isolated.node != nil || n.machine.Phase() != term.Serving || w.chain.Term() != n.machine.Standing().Term {
		return
	}
	for _, other := range w.nodes {
		if other != n && other.machine.Phase() != term.Idle {
			return
		}
	}
	var late []*produced
	for _, p := range w.late {
		if p.entry.Record.Command.Type != record.TypeTermStarted {
			late = append(late, p)
		}
	}
	w.late = late
	for _, p := range n.sent { // what is on its way arrives
		n.acks = append(n.acks, term.Ack{Sequence: p.entry.Position.Sequence, Offset: w.append(p.entry.Value)})
	}
	n.sent = nil
	leased := w.now + time.Duration(w.random.IntN(100))*time.Millisecond
	w.isolated = isolation{node: n, end: int64(len(w.log)), leased: leased, until: leased + time.Duration(w.random.IntN(1000))*time.Millisecond}
	w.note("%s is isolated", n.name)
}

// isolated reports whether the node is isolated.
func (n *node) isolated() bool { return n.w.isolated.node == n }

// leased reports whether the node holds its lease.
func (n *node) leased() bool {
	return !n.unleased && (!n.isolated() || n.w.now < n.w.isolated.leased)
}
