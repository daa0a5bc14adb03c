package term

import (
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Config configures a Machine.
type Config struct {
	Rules decide.Rules
	Shard submit.Shard
	Node  string // the names in the record that opens a term
	URL   string
	Build string

	AcceptClock bool                           // take terms even if this node's clock is off
	NewID       func(at scalar.Time) scalar.ID // makes the ids of the engine's records, which differ
	Limits      Limits
}

// Limits bound what a term keeps and how long anything waits.
type Limits struct {
	WindowRecords int // decided and not acknowledged
	WindowBytes   int // the total size of their values
	UnseenRecords int // decided and not yet passed by the owner's reader
	UnseenBytes   int
	Queue         int // requests that wait for their decision

	Deadline      time.Duration // for the answer to a request
	DecideTimeout time.Duration // the longest wait of a request for its first decision
	Stall         time.Duration // without an acknowledgement, intake stops
	Gap           time.Duration // for which a gap may stay open before the term ends
	Drain         time.Duration // the longest wait of a stopping owner for acknowledgements
}

// DefaultLimits returns the limits of a node.
func DefaultLimits() Limits {
	return Limits{WindowRecords: 4096, WindowBytes: 16 << 20, UnseenRecords: 4 * 4096, UnseenBytes: 64 << 20, Queue: 8192,
		Deadline: 10 * time.Second, DecideTimeout: time.Second, Stall: 2 * time.Second, Gap: 10 * time.Second, Drain: 5 * time.Second}
}

// Phase is the state of a Machine.
type Phase int

// The phases, in the order of a term.
const (
	Idle      Phase = iota // no term
	Replaying              // after Begin
	Taking                 // after Take: the record that opens the term is on its way
	Taken                  // that record is valid
	Serving                // after Serve: commands are decided
	Draining               // after Drain: nothing more is decided
	Failed                 // after an error: only End goes on
)

// Machine is the protocol of one owner. It outlives terms, and holds the requests that a term left unanswered. It is not
// safe for concurrent use.
type Machine struct {
	cfg   Config
	phase Phase
	clock monotonicClock
	now   Clock   // of the present Step
	out   *Output // of the present Step

	requests requests
	carried  []carriedRequest // unanswered when their term ended, in the order of their submission
	// behind is a position before every record that a carried request may have. A later replay that starts beyond it must
	// read from there, or the request would be decided again although its record is valid.
	behind record.Position

	// acknowledged is the last position known to this process to be acknowledged. The log must hold it: an owner must not
	// append to a log that has lost what it has answered for.
	acknowledged record.Position
	// sent holds the command ids of this process's term records. A term record that is not in it is foreign.
	sent map[scalar.ID]struct{}
	// met is the highest term that was applied since Assigned, or record.UnknownTerm before the first replay. A higher one
	// that is not in sent belongs to another process that has been assigned the shard since.
	met int64

	size    refusedSize
	anchors record.Anchors
	recent  recent
	t       state

	producers uint64 // numbers the producers of all terms
	questions uint64 // numbers the questions for the log's end
	scratch   []byte // the buffer for encoding records
}

// state is the part of a Machine that belongs to one term.
type state struct {
	number int64
	taken  record.Hash // of the record that opened the term
	state  decide.State
	id     scalar.ID
	// tip is the last record decided or applied; its offset is known only on completion. The state is that after tip, and the
	// next record names its hash.
	tip    record.Position
	last   scalar.Time // of tip; the time of records never decreases
	inTerm int64       // the term of the last term record applied

	opening  opening
	taking   taking
	flight   flight
	batch    batch
	deferred fifo[deferredReply]         // answers that need a record
	index    readIndex                   // answers that do not
	pending  map[scalar.ID]pending       // requests whose work continues in steps
	awaited  map[scalar.ID]*record.Entry // the records that carried requests wait for; nil until the replay meets them

	folded    bool            // the replay has reached the end that the log had
	readAhead []record.Entry  // read before Serve
	unbatched *inflightRecord // no other record may be in flight together with it
	resumed   bool            // the carried requests have been answered or queued
	stalled   bool            // nothing has been acknowledged for too long: no intake
	stepped   bool            // the last decision was a step: a command is next
	drainBy   time.Duration

	jumped   bool          // the wall clock has jumped and is not followed
	ahead    bool          // the log's time is ahead of the wall clock
	clockOff time.Duration // by which the log's time is ahead of it
}

// New returns a machine without a term. Its clock follows the wall clock from now.
func New(cfg Config, now Clock) *Machine {
	m := &Machine{cfg: cfg, acknowledged: record.Before, behind: record.Before, met: record.UnknownTerm,
		sent: make(map[scalar.ID]struct{})}
	m.clock.follow(now)
	return m
}

// Step processes one input and fills out, which the driver has reset. An error ends the term: the driver still performs out,
// and then passes End. The error is a *ForeignTermError if another process owns the shard, a
// *ClockError if this node's clock is off, wraps ErrRules if the rules can't continue, and is final as in record.Final if the
// log is wrong. After any other error the next term may do better.
func (m *Machine) Step(now Clock, in Input, out *Output) error {
	m.now, m.out = now, out
	err := m.handle(in)
	if err != nil && m.phase != Idle {
		m.phase = Failed
	}
	if _, tick := in.(Tick); err == nil && (m.phase != Serving || tick && !out.More) {
		if out.WakeAt, err = m.wakeAt(); err != nil {
			m.phase = Failed
		}
	}
	m.out = nil
	return err
}

func (m *Machine) handle(in Input) error {
	switch in := in.(type) {
	case Tick:
		return m.tick()
	case Submit:
		for _, r := range in.Requests {
			m.admit(r)
		}
	case Acked:
		return m.onAcked(in)
	case Read:
		return m.onRead(in)
	case LogEnd:
		m.onLogEnd(in)
	case Withdraw:
		for _, r := range in.Requests {
			m.abandon(r, "the client went away before the command was decided")
		}
	case Found:
		m.onFound(in)
	case Expire:
		m.expire()
	case Drain:
		m.drain()
	case Fail:
		if m.phase != Idle {
			m.phase = Failed
		}
	default:
		return m.open(in)
	}
	m.checkDrained()
	return nil
}

// open handles the inputs that begin and end a term.
func (m *Machine) open(in Input) error {
	switch in := in.(type) {
	case Assigned:
		m.met = record.UnknownTerm
	case Begin:
		m.begin(in)
	case Scanned:
		return m.onScanned(in)
	case Replayed:
		return m.onReplayed(in)
	case ReplayEnded:
		return m.onReplayEnded()
	case SetClock:
		return m.setClock(in.Reference)
	case Take:
		return m.take()
	case Serve:
		return m.beginServing()
	case End:
		m.end(in)
	case GiveUp:
		m.giveUp("this node no longer owns the journal")
	default:
		return fmt.Errorf("journal: a term has no input %T", in)
	}
	return nil
}

// Phase returns the phase.
func (m *Machine) Phase() Phase { return m.phase }

// Standing describes a valid term.
type Standing struct {
	Term    int64
	Taken   record.Hash // of the record that opened the term
	Journal scalar.ID   // the journal's identity
}

// Standing describes the term. It is zero before the phase Taken.
func (m *Machine) Standing() Standing {
	return Standing{Term: m.t.number, Taken: m.t.taken, Journal: m.t.id}
}

// Tip returns the last record that was decided or applied in the term.
func (m *Machine) Tip() record.Position { return m.t.tip }

// Acknowledged returns the last position known to this process to be acknowledged.
func (m *Machine) Acknowledged() record.Position { return m.acknowledged }

// Anchors returns the positions that the machine has passed. They are safe for concurrent use.
func (m *Machine) Anchors() *record.Anchors { return &m.anchors }

// Accepting reports whether a request would be queued if there is room.
func (m *Machine) Accepting() bool { return m.phase == Serving && !m.t.stalled }

// Stalled returns since when acknowledgements are missing, on the monotonic clock. ok is false unless that has stopped the
// intake.
func (m *Machine) Stalled() (since time.Duration, ok bool) {
	if !m.t.stalled {
		return 0, false
	}
	return m.t.flight.waitingSince()
}

// Unanswered reports whether a request has no answer yet.
func (m *Machine) Unanswered() bool {
	m.requests.dropAnswered()
	return m.requests.open.len() > 0
}

// Stats are figures for metrics.
type Stats struct {
	InFlight, InFlightBytes int
	Deferred                int // answers that wait
	Unseen                  int // records that the owner's reader has not passed
	Queue                   int // requests that wait for their decision
	Acknowledged            int64
	ClockOff                time.Duration // by which the log's time is ahead of the wall clock
}

// Stats returns the figures of the present term.
func (m *Machine) Stats() Stats {
	t := &m.t
	return Stats{InFlight: t.flight.inFlight.len(), InFlightBytes: t.flight.bytes, Deferred: t.deferred.len() + t.index.held.len(),
		Unseen: t.flight.unseen.len(), Queue: m.requests.queue.len(), Acknowledged: t.flight.last.Sequence, ClockOff: t.clockOff}
}

func (m *Machine) position(sequence int64) record.LogPosition {
	return record.LogPosition{Journal: m.cfg.Shard.Journal, Partition: m.cfg.Shard.Partition, Sequence: sequence}
}

func (m *Machine) diverged(have, found record.Position, reason string) error {
	return &record.DivergedError{Journal: m.cfg.Shard.Journal, Partition: m.cfg.Shard.Partition, Have: have, Found: found, Reason: reason}
}

func (m *Machine) foreign(started *record.TermStarted) error {
	return &ForeignTermError{Journal: m.cfg.Shard.Journal, Partition: m.cfg.Shard.Partition, Term: started.Term, Node: started.Node}
}
