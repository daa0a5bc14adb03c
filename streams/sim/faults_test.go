package sim

import (
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// act does one thing, drawn at random.
func (w *world) act() {
	w.pass()
	if w.now >= w.isolated.until && w.isolated.node != nil {
		w.isolated.node.unleased = true // whatever it learns now, its term may have been over
		w.isolated = isolation{}
	}
	if !w.calm && w.chance(80) {
		w.disturb()
		return
	}
	switch {
	case w.chance(25):
		w.deliverLate()
		return
	case w.chance(3):
		w.deliverWorst()
	}
	n := w.nodes[w.random.IntN(len(w.nodes))]
	if n.machine.Phase() == term.Idle && !w.chance(4) { // a node without a term has little to do
		n = w.nodes[w.random.IntN(len(w.nodes))]
	}
	if n.paused > w.now {
		return
	}
	switch n.machine.Phase() {
	case term.Idle:
		n.idle()
	case term.Replaying:
		n.replay()
	case term.Taken:
		n.taken()
	default:
		n.work()
	}
}

// pass lets time pass: mostly a little, at times so much that something times out.
func (w *world) pass() {
	switch k := w.random.IntN(1000); {
	case k < 700:
		w.now += time.Duration(w.random.IntN(400)) * time.Microsecond
	case k < 990:
		w.now += time.Duration(w.random.IntN(4000)) * time.Microsecond
	case k < 998:
		w.now += time.Duration(w.random.IntN(300)) * time.Millisecond
	case !w.calm:
		w.now += time.Duration(w.random.IntN(3000)) * time.Millisecond
	}
}

// idle is what a node without a term does: it joins the race for one at times.
func (n *node) idle() {
	if n.step(term.Expire{}) {
		n.checkDeadlines()
	}
	owned := false
	for _, other := range n.w.nodes {
		owned = owned || other.machine.Phase() != term.Idle && !other.isolated()
	}
	if !owned && n.w.chance(3) || n.w.chance(n.w.rivalry) && !n.w.calm || n.w.cut {
		n.begin()
	}
}

// taken is what a node does whose term record is valid. At times its term ends before it serves.
func (n *node) taken() {
	switch w := n.w; {
	case w.chance(2) && n.blind <= w.now && !n.isolated():
		n.follow()
	case !w.calm && w.chance(4):
		n.endTerm(errors.New("a client of Kafka could not be made"))
	default:
		n.step(term.Serve{})
	}
}

// work is what a node with a term does next.
func (n *node) work() {
	w := n.w
	if !w.calm && w.chance(w.failures) {
		n.endTerm(errors.New("the reader failed"))
		return
	}
	switch k := w.random.IntN(100); {
	case k < 38:
		if n.step(term.Tick{}) {
			n.checkDeadlines()
		}
	case k < 52:
		if n.machine.Phase() == term.Serving || w.chance(8) {
			n.submit()
		}
	case k < 66:
		n.deliver()
	case k < 80:
		n.acknowledge()
	case k < 88:
		if n.blind <= w.now && !n.isolated() && w.chance(w.lag) {
			n.follow()
		}
	case k < 96:
		n.brokersAnswer()
	case k < 97:
		n.withdraw()
	case k < 98 && !w.calm && w.chance(15):
		if n.machine.Phase() == term.Serving {
			n.step(term.Drain{})
		}
	}
}

// deliver has the log receive some of what the node has sent. The order stays.
func (n *node) deliver() {
	w := n.w
	if len(n.sent) == 0 || n.isolated() || !w.calm && !w.chance(w.delay) {
		return
	}
	some := n.sent[:1+w.random.IntN(len(n.sent))]
	n.sent = n.sent[len(some):]
	if !w.calm && w.chance(60) {
		n.refuse(some)
		return
	}
	for _, p := range some {
		offset := w.append(p.entry.Value)
		if !w.calm {
			if w.chance(100) { // stored twice, because an acknowledgement was lost
				w.append(p.entry.Value)
			}
			if w.chance(100) { // the repetition was answered as a duplicate, which names no offset
				offset = -1
			}
		}
		n.acks = append(n.acks, term.Ack{Sequence: p.entry.Position.Sequence, Offset: offset})
	}
}

// refuse fails a batch, and with it all that follows in the same producer. Unless it is too large, it may be in the log, or be
// there later.
func (n *node) refuse(batch []*produced) {
	w := n.w
	tooLarge := w.chance(3)
	w.note("a batch of %s is refused, too large: %v", n.name, tooLarge)
	for i, p := range append(batch[:len(batch):len(batch)], n.sent...) {
		a := term.Ack{Sequence: p.entry.Position.Sequence, Offset: -1, Err: errors.New("refused"), TooLarge: tooLarge && i < len(batch)}
		switch {
		case a.TooLarge:
		case w.chance(3): // applied and not acknowledged
			w.append(p.entry.Value)
		case w.chance(2):
			w.late = append(w.late, p)
		}
		n.acks = append(n.acks, a)
	}
	n.sent = nil
}

// acknowledge passes results of the producer to the machine, or of an earlier one.
func (n *node) acknowledge() {
	w := n.w
	if len(n.stale) > 0 && w.chance(2) {
		in := n.stale[0]
		n.stale = n.stale[1:]
		n.step(in)
		return
	}
	if len(n.acks) == 0 {
		return
	}
	some := n.acks[:1+w.random.IntN(len(n.acks))]
	n.acks = n.acks[len(some):]
	n.step(term.Acked{Producer: n.producer, Acks: some})
}

// follow passes what the node's reader finds to the machine.
func (n *node) follow() {
	to := int64(len(n.w.log))
	if n.next < to && n.w.chance(2) {
		to = n.next + 1 + n.w.random.Int64N(to-n.next)
	}
	n.read(to, func(entries []record.Entry) term.Input { return term.Read{Entries: entries, Next: n.next} })
}

// brokersAnswer has the brokers answer a question, or passes an answer to the machine. Both take their time.
func (n *node) brokersAnswer() {
	w := n.w
	switch {
	case len(n.finds) > 0 && w.chance(2):
		q := n.finds[0]
		n.finds = n.finds[1:]
		in := term.Found{Request: q.Request}
		if !w.chance(10) && q.Sequence < int64(len(w.valid)) {
			in.Entry = &w.log[w.valid[q.Sequence]].entry
		}
		n.step(in)
	case len(n.oldEnds) > 0 && (n.overtaken || w.chance(300)):
		in := n.oldEnds[0]
		n.oldEnds = n.oldEnds[1:]
		n.step(in)
	case len(n.asked) > 0 && w.chance(2):
		end := int64(len(w.log))
		if n.isolated() {
			end = w.isolated.end // a broker that has lost the shard and does not know it yet
		}
		n.ends = append(n.ends, term.LogEnd{Question: n.asked[0], Offset: end})
		n.asked = n.asked[1:]
	case len(n.ends) > 0 && w.chance(2):
		i := w.random.IntN(len(n.ends))
		in := n.ends[i]
		n.ends = append(n.ends[:i], n.ends[i+1:]...)
		n.step(in)
	}
}

// withdraw has a client go away.
func (n *node) withdraw() {
	if k := len(n.open); k > 0 {
		n.step(term.Withdraw{Requests: []*term.Request{&n.open[k-1-n.w.random.IntN(min(k, 6))].Request}})
	}
}

// disturb injects a fault.
func (w *world) disturb() {
	n := w.nodes[w.random.IntN(len(w.nodes))]
	switch k := w.random.IntN(100); {
	case k < 12:
		n.crash()
	case k < 20:
		w.isolate(n)
	case k < 34:
		n.blind = w.now + time.Duration(w.random.IntN(1000))*time.Millisecond
	case k < 52:
		n.paused = w.now + time.Duration(w.random.IntN(8000))*time.Millisecond
	case k < 55:
		n.paused = w.now + time.Duration(w.random.IntN(180))*time.Second
		w.now += time.Duration(w.random.IntN(60)) * time.Second
	case k < 62:
		n.offset += time.Duration(w.random.IntN(6000)-3000) * time.Millisecond
	case k < 64:
		n.offset += time.Duration(w.random.IntN(600)-300) * time.Second
	case k < 70:
		n.drift = w.random.Int64N(300_000) - 150_000
	default:
		if n.machine.Phase() == term.Idle && n.paused <= w.now {
			n.begin()
		}
	}
}
