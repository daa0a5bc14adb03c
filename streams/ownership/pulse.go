package ownership

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// The times that determine when an owner that accepts connections but does not work is removed: a stopped process or a
// machine that hangs. The group would notice only after its session of six seconds, and the brokers do not allow a
// shorter one.
const (
	pingEvery = 250 * time.Millisecond
	// An owner is removed from the group after silentAfter without an answer or a new record, if also unanswered
	// questions in a row have failed.
	silentAfter = 1500 * time.Millisecond
	unanswered  = 3
	askWithin   = (silentAfter - pingEvery) / unanswered
	cutOffAfter = time.Second      // without an answer from any broker, this node is cut off itself
	removeEvery = 30 * time.Second // how often one node is removed at most
	retryRemove = time.Second      // after an attempt to end the same membership
)

// pulseKey identifies one owner and one partition.
type pulseKey struct {
	member string // id of the membership
	shard  submit.Shard
}

// pulses checks the terms of the other members, in one goroutine for each partition that another member is assigned. Its
// methods MUST be called only from the watch's goroutine.
type pulses struct {
	node    *Node
	running map[pulseKey]context.CancelFunc
	owned   map[string]*atomic.Pointer[[]submit.Shard] // assignment of each membership, by its id
	done    *sync.WaitGroup
}

func newPulses(n *Node, done *sync.WaitGroup) *pulses {
	return &pulses{node: n, done: done, running: make(map[pulseKey]context.CancelFunc),
		owned: make(map[string]*atomic.Pointer[[]submit.Shard])}
}

// follow starts a listener for each partition that another member is assigned, and stops all others. During a rebalance
// the group does not list the assignments, so the last ones remain in effect.
func (ps *pulses) follow(ctx context.Context, members []member) {
	n := ps.node
	if n.cfg.Neighbors == nil {
		return
	}
	assigned := make(map[pulseKey]bool)
	owned := make(map[string]*atomic.Pointer[[]submit.Shard])
	for _, m := range members {
		if !n.other(m) {
			continue
		}
		shards := n.find.owned(m)
		at := ps.owned[m.id]
		switch {
		case at == nil:
			at = new(atomic.Pointer[[]submit.Shard])
			at.Store(&shards)
		case m.topics == nil:
			shards = *at.Load()
		default:
			at.Store(&shards)
		}
		owned[m.id] = at
		for _, p := range shards {
			key := pulseKey{m.id, p}
			assigned[key] = true
			if ps.running[key] != nil {
				continue
			}
			listening, stop := context.WithCancel(ctx)
			ps.running[key] = stop
			l := n.newListener(ctx, m, p, at)
			ps.done.Go(func() { l.run(listening) })
		}
	}
	for key, stop := range ps.running {
		if !assigned[key] {
			stop()
			delete(ps.running, key)
		}
	}
	ps.owned = owned
}

// listener asks a member's term goroutine for a sign of life, and has the member removed from the group when it is silent.
//
// A new record in the log is a sign of life: of the goroutine if it is in its journal, of the node if it is in any journal
// that the member is assigned. So is any answer, even that the member has no valid term yet: it may be folding a long log.
// If a member's build does not support the question, only the group's session timeout removes it.
//
// Silence counts once the membership has answered. Otherwise a network that lets this node reach the brokers but not the
// member would have it removed again and again: each time it joins, and works. While no broker answers this node, silence does not
// count either: then it is this node that is cut off, and when it is back, it would remove the owner that works.
type listener struct {
	ask      func(context.Context, Question) (Term, error)
	observed func(p submit.Shard) int64 // end of the log as this node has read it
	owned    func() []submit.Shard      // partitions assigned to the member
	remove   func(reason) bool
	cutOff   func() bool // reports whether this node reaches no broker

	shard    submit.Shard
	question Question
	answered bool
	node     silence // no sign of life from the node
	term     silence // no sign of life from the term's goroutine; a failure is an answer of the node that the goroutine is silent
}

// newListener returns a listener to a member's term of a partition. A removal uses the context of the watch, because
// the listening may end before the coordinator has confirmed the removal.
func (n *Node) newListener(watch context.Context, m member, p submit.Shard, owned *atomic.Pointer[[]submit.Shard]) *listener {
	now := time.Now()
	return &listener{
		ask: func(ctx context.Context, q Question) (Term, error) { return n.cfg.Neighbors.Term(ctx, m.url, q) },
		observed: func(p submit.Shard) int64 {
			end, _ := n.Observed(p.Journal, p.Partition)
			return end
		},
		owned:    func() []submit.Shard { return *owned.Load() },
		remove:   func(why reason) bool { return n.mayRemove(m, time.Now()) && n.remove(watch, m, why) == nil },
		cutOff:   func() bool { return n.cfg.Client.Unanswered() > cutOffAfter },
		shard:    p,
		question: Question{Journal: p.Journal, Partition: p.Partition, Engine: n.cfg.NodeID},
		node:     silence{observed: -1, last: now},
		term:     silence{observed: -1, last: now},
	}
}

// run asks every pingEvery. It returns when the context ends or the member was removed.
func (l *listener) run(ctx context.Context) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		answer, err := l.ask(asking, l.question)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			l.question.LastAnswer = answer.Stamp
		}
		if why := l.judge(time.Now(), err); why != "" && l.remove(why) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// judge processes the outcome of a question and returns the reason to remove the member, or "".
func (l *listener) judge(now time.Time, err error) (why reason) {
	all := int64(0)
	for _, p := range l.owned() {
		all += l.observed(p)
	}
	l.node.tick(now, all)
	l.term.tick(now, l.observed(l.shard))
	switch {
	case err == nil || errors.Is(err, ErrNoSuchQuestion):
		l.answered = true
		l.node.end()
		l.term.end()
	case errors.Is(err, ErrSilent):
		l.node.end()
		l.term.failed++
	default:
		l.node.failed++
	}
	switch {
	case !l.answered:
		return ""
	case l.cutOff():
		l.node.end()
		l.term.end()
	case l.node.long():
		return silent
	case l.term.long():
		return hung
	}
	return ""
}

// silence measures the time without a sign of life.
type silence struct {
	quiet    time.Duration
	failed   int       // questions that failed in a row
	last     time.Time // time at which quiet was last increased
	observed int64     // end of the log as this node has read it
}

// tick adds the time since the last tick, unless the log has grown. It adds at most two intervals: in a longer gap this
// node did not run, so it could not receive answers.
func (s *silence) tick(now time.Time, observed int64) {
	s.quiet += min(now.Sub(s.last), 2*pingEvery)
	s.last = now
	if observed != s.observed {
		s.observed = observed
		s.end()
	}
}

// end records a sign of life at the last tick.
func (s *silence) end() { s.quiet, s.failed = 0, 0 }

func (s *silence) long() bool { return s.quiet >= silentAfter && s.failed >= unanswered }

// removal is the last attempt to remove a node from the group for its silence.
type removal struct {
	member string // id of the membership
	at     time.Time
}

// mayRemove reports whether a node may be removed from the group for its silence, and if so, counts that as a removal. An
// attempt that failed counts too, because the coordinator may have carried it out: within removeEvery, only the same
// membership may be tried again.
func (n *Node) mayRemove(m member, now time.Time) bool {
	n.removing.Lock()
	defer n.removing.Unlock()
	last, before := n.removed[*m.instance]
	wait := removeEvery
	if last.member == m.id {
		wait = retryRemove
	}
	if before && now.Sub(last.at) < wait {
		return false
	}
	n.removed[*m.instance] = removal{m.id, now}
	return true
}
