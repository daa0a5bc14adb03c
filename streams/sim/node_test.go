package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
	"github.com/perpetua-exchange/perpetua/streams/term/termtest"
)

// node is one process that may own the shard. It drives a machine as package journal does.
type node struct {
	w       *world
	name    string
	machine *term.Machine
	out     term.Output

	started time.Duration // the true time at which its monotonic clock began
	offset  time.Duration // of its wall clock
	drift   int64         // of its wall clock, in parts per million
	paused  time.Duration // until then it does nothing
	blind   time.Duration // until then its reader gets nothing
	boot    int           // how many processes there were

	assigned  bool
	end       int64            // where its replay ends
	plan      term.Plan        // of Begin
	known     int64            // the lowest known position that its term was begun with; -1 for none
	kept      *record.Seed     // what an interrupted replay has applied
	begun     bool             // its term was begun after the log was cut
	unleased  bool             // it has lost its lease in this term
	overtaken bool             // it has decided something after another term had begun
	position  record.Position  // the last record that its reader has passed
	next      int64            // the offset after it
	sent      []*produced      // on the way to the log
	acks      []term.Ack       // on the way back
	producer  uint64           // the number of its producer
	stale     []term.Acked     // of earlier producers
	asked     []uint64         // questions for the log's end
	ends      []term.LogEnd    // their answers
	oldEnds   []term.LogEnd    // answers to questions of earlier terms
	finds     []term.ReadAt    // old records to read
	open      []*clientRequest // submitted here, in order; some have an answer
}

func newNode(w *world, i int) *node {
	n := &node{w: w, name: fmt.Sprint("n", i)}
	n.start()
	return n
}

// start starts the process.
func (n *node) start() {
	w := n.w
	n.boot++
	n.started = w.now - time.Duration(w.random.IntN(1000))*time.Second - time.Second
	n.offset, n.drift = time.Duration(w.random.IntN(20_000)-10_000)*time.Millisecond, w.random.Int64N(2000)-1000
	limits := term.DefaultLimits()
	limits.WindowRecords, limits.WindowBytes, limits.UnseenRecords, limits.Queue = 12, 16*termtest.Limit, 24, 10
	n.machine = term.New(term.Config{Rules: termtest.Rules{}, Shard: submit.Shard{Journal: "trading"}, Node: n.name, NewID: w.id, Limits: limits}, n.clock())
	n.assigned, n.known, n.begun, n.overtaken, n.unleased = false, -1, false, false, false
	n.sent, n.acks, n.producer, n.stale, n.asked, n.ends, n.oldEnds, n.finds, n.open = nil, nil, 0, nil, nil, nil, nil, nil, nil
	n.kept = nil
}

// crash ends the process. Its clients get no answers, and what it has sent may still arrive.
func (n *node) crash() {
	n.w.note("%s crashes", n.name)
	n.release()
	if n.isolated() {
		n.w.isolated = isolation{}
	}
	n.start()
}

func (n *node) clock() term.Clock {
	elapsed := n.w.now - n.started
	return term.Clock{Wall: n.w.base.Add(n.w.now + n.offset + elapsed*time.Duration(n.drift)/1_000_000), Mono: elapsed}
}

// step passes an input to the machine and does what it says. It returns false if the process is gone or the term has ended.
func (n *node) step(in term.Input) bool {
	n.out.Reset()
	err := n.machine.Step(n.clock(), in, &n.out)
	n.plan = n.out.Plan
	if n.out.Decided != nil {
		n.decided(n.out.Decided.Ref.(*clientRequest))
	}
	if !n.perform() {
		n.crash()
		return false
	}
	if err != nil {
		n.endTerm(err)
		return false
	}
	if n.out.Done {
		n.endTerm(nil)
		return false
	}
	if n.begun && n.machine.Phase() == term.Taken {
		n.w.fail("%s has taken a term of a log that has lost its end", n.name)
	}
	return true
}

// perform does what the machine says. It returns false if the process crashes in between.
func (n *node) perform() bool {
	w, out := n.w, &n.out
	steps := -1
	if !w.calm && w.chance(4000) {
		steps = w.random.IntN(1 + len(out.Append) + len(out.Replies))
	}
	goesOn := func() bool { steps--; return steps != -1 }
	if out.Producer != 0 {
		n.release()
		n.producer = out.Producer
	}
	for _, a := range out.Append {
		if !goesOn() {
			return false
		}
		w.cache.Add(*a.Entry)
		n.sent = append(n.sent, &produced{a.Entry, n.producer, n, n.boot})
	}
	for _, r := range out.Replies {
		if !goesOn() {
			return false
		}
		n.answered(r)
	}
	if out.AskEnd != 0 {
		n.asked = append(n.asked, out.AskEnd)
	}
	n.finds = append(n.finds, out.ReadAt...)
	return steps != 0
}

// release closes the producer. What it has sent may arrive at any later time, and its results say nothing any more.
func (n *node) release() {
	for _, p := range n.sent {
		if !n.w.chance(4) {
			n.w.late = append(n.w.late, p)
		}
	}
	if len(n.acks) > 0 {
		n.stale = append(n.stale, term.Acked{Producer: n.producer, Acks: n.acks})
	}
	n.sent, n.acks = nil, nil
}

// endTerm ends the term after an error, or nil when it is drained.
func (n *node) endTerm(err error) {
	w := n.w
	w.note("%s ends its term: %v", n.name, err)
	for _, asked := range n.asked {
		n.ends = append(n.ends, term.LogEnd{Question: asked, Offset: int64(len(w.log))})
	}
	n.oldEnds, n.ends, n.asked = append(n.oldEnds, n.ends...), nil, nil
	rest := n.acks
	n.release()
	n.known, n.overtaken, n.unleased = -1, false, false
	n.kept = n.machine.Interrupted()
	n.step(term.End{Acks: rest})
	var foreign *term.ForeignTermError
	var clock *term.ClockError
	switch {
	case errors.As(err, &foreign), errors.As(err, &clock):
		n.assigned = false
	case err == nil, record.Final(err), errors.Is(err, term.ErrRules):
		n.assigned = false
		n.step(term.GiveUp{})
	}
	if errors.As(err, &clock) {
		n.offset, n.drift = 0, 0
	}
}

// begin begins a term, with any snapshot.
func (n *node) begin() {
	w := n.w
	if w.isolated.node != nil && w.now < w.isolated.leased {
		return // the group gives the shard to nobody before
	}
	if !n.assigned {
		n.assigned = true
		if !n.step(term.Assigned{}) {
			return
		}
	}
	in := term.Begin{Known: []record.Position{w.witness}, End: int64(len(w.log))}
	n.known, n.begun = w.witness.Sequence, w.cut
	n.position, n.next = record.Before, 0
	if s := n.seed(); s != nil {
		if !w.holds(s.Position) {
			n.endTerm(n.diverged(s.Position))
			return
		}
		s.Position = w.position(s.Position.Sequence) // its present offset
		in.Seed = s
		n.position, n.next = s.Position, s.Position.Offset+1
	}
	n.end = in.End
	w.note("%s begins a term at %d of %d", n.name, n.position.Sequence, len(w.valid))
	if !n.step(in) {
		return
	}
	hold := n.plan.Hold
	if s := n.plan.Scan; s != nil {
		if !w.holds(s.From) {
			n.endTerm(n.diverged(s.From))
			return
		}
		if !n.step(term.Scanned{Entries: w.entries(w.offsetAfter(s.From), s.To)}) {
			return
		}
	}
	for _, p := range hold {
		if !w.holds(p) {
			n.endTerm(n.diverged(p))
			return
		}
	}
}

// seed returns what a replay starts from: what an interrupted one has applied, any snapshot, or nothing.
func (n *node) seed() *record.Seed {
	w := n.w
	if kept := n.kept; kept != nil {
		n.kept = nil
		return kept
	}
	if len(w.snapshots) == 0 || w.chance(3) {
		return nil
	}
	s := w.snapshots[len(w.snapshots)-1]
	if w.chance(2) {
		s = w.snapshots[w.random.IntN(len(w.snapshots))]
	}
	s.State = s.State.(*termtest.Ledger).Clone()
	return &s
}

func (n *node) diverged(p record.Position) error {
	return &record.DivergedError{Journal: "trading", Have: p, Reason: "the log is cut"}
}

// offsetAfter returns the offset after a position that the log holds.
func (w *world) offsetAfter(p record.Position) int64 {
	if p.IsBefore() {
		return 0
	}
	return w.valid[p.Sequence] + 1
}

// entries returns the valid records at a range of offsets.
func (w *world) entries(from, to int64) (entries []record.Entry) {
	for _, s := range w.log[from:min(to, int64(len(w.log)))] {
		if s.valid {
			entries = append(entries, s.entry)
		}
	}
	return entries
}

// replay replays some records, and takes the term at the end.
func (n *node) replay() {
	end := min(n.end, int64(len(n.w.log))) // the log may have lost its end
	if n.next < end {
		to := min(end, n.next+1+n.w.random.Int64N(200))
		n.read(to, func(entries []record.Entry) term.Input { return term.Replayed{Entries: entries} })
		return
	}
	if n.step(term.ReplayEnded{}) && n.step(term.SetClock{}) {
		n.step(term.Take{})
	}
}

// read passes the records up to an offset to the machine, as some input. A reader checks first that the log holds its position.
func (n *node) read(to int64, input func([]record.Entry) term.Input) {
	if !n.w.holds(n.position) || n.next > int64(len(n.w.log)) {
		n.endTerm(n.diverged(n.position))
		return
	}
	entries := n.w.entries(n.next, to)
	n.next = max(n.next, to)
	if k := len(entries); k > 0 {
		n.position = entries[k-1].Position
	}
	n.step(input(entries))
}
