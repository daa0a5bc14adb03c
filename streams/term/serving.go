package term

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// idle is the longest time to the next Tick, so that the driver's metrics stay current.
const idle = 10 * time.Second

// overdue is the interval for checking due work that the rules hold back.
const overdue = 20 * time.Millisecond

// beginServing opens the intake of commands.
func (m *Machine) beginServing() error {
	if m.phase != Taken {
		return fmt.Errorf("journal: a term can't serve in phase %d", m.phase)
	}
	if err := m.observe(m.t.readAhead, m.t.flight.next); err != nil {
		return err
	}
	m.t.readAhead = nil
	m.settleCarried()
	m.phase = Serving
	return nil
}

// tick processes the passing of time. In the phase Serving it decides one unit of work.
func (m *Machine) tick() error {
	m.expire()
	switch m.phase {
	case Taking:
		return m.checkVanished()
	case Draining:
		return m.checkDrainTime()
	case Serving:
	default:
		return nil
	}
	if err := m.checkStall(); err != nil {
		return err
	}
	decided, urgency, err := m.work()
	if err != nil {
		return err
	}
	q := &m.requests
	if m.t.batch.ready(m.now.Mono, decided && (urgency != decide.Nothing || q.retry.len() > 0 || q.queue.len() > 0)) {
		m.flush()
	}
	m.out.More = decided
	return nil
}

// checkStall stops the intake when acknowledgements take too long, and ends the term when a gap does.
func (m *Machine) checkStall() error {
	t, limits := &m.t, &m.cfg.Limits
	since, waiting := t.flight.waitingSince()
	stalled := waiting && m.now.Mono-since > limits.Stall
	if stalled != t.stalled {
		t.stalled = stalled
		if stalled {
			m.note(slog.LevelWarn, "nothing is being acknowledged: no intake", "unacknowledged", t.flight.inFlight.len())
			m.abandonQueue("nothing has been acknowledged for two seconds")
		}
	}
	if waiting && t.flight.gap && m.now.Mono-since > limits.Gap {
		return errors.New("journal: an acknowledged record was not seen in the log")
	}
	return nil
}

// work decides one unit of work: a due step or the next command.
func (m *Machine) work() (decided bool, urgency decide.Urgency, err error) {
	if !m.windowOpen() {
		return false, decide.Nothing, nil
	}
	t, now := &m.t, m.recordTime()
	m.out.Time = now
	if urgency, err = m.due(now); err != nil {
		return false, urgency, err
	}
	throttled := urgency == decide.Alternate && m.stepsThrottled()
	if urgency == decide.Blocking || urgency == decide.Alternate && !t.stepped && !throttled {
		t.stepped = true
		return true, urgency, m.step(now, urgency)
	}
	if r := m.nextRequest(); r != nil {
		t.stepped = t.stepped && urgency != decide.Alternate
		return true, urgency, m.decide(now, r)
	}
	if urgency == decide.Alternate && !throttled {
		return true, urgency, m.step(now, urgency)
	}
	return false, urgency, nil
}

// windowOpen reports whether the window has room for another record of the largest size.
func (m *Machine) windowOpen() bool {
	t, f, limits := &m.t, &m.t.flight, &m.cfg.Limits
	return !t.stalled && t.unbatched == nil && f.inFlight.len() < limits.WindowRecords &&
		f.bytes+m.cfg.Rules.Limit() <= limits.WindowBytes && f.unseen.len() < limits.UnseenRecords && f.unseenBytes < limits.UnseenBytes
}

// stepsThrottled reports whether alternating steps must wait until some of them are acknowledged.
//
// A step's record may have the maximum size, and steps are decided faster than a log accepts them. If only the window
// limited them, they would fill it, and a command between them would be acknowledged only after its sixteen megabytes.
func (m *Machine) stepsThrottled() bool { return m.t.flight.alternating >= m.cfg.Rules.Limit()/2 }

// onAcked processes results of the producer. Those of an earlier producer say nothing: its records are settled by the log.
func (m *Machine) onAcked(in Acked) error {
	if in.Producer != m.producers {
		return nil
	}
	for i, a := range in.Acks {
		if err := m.ack(a); err != nil {
			m.noteTooLarge(in.Acks[i:])
			return err
		}
	}
	m.checkDrained()
	return nil
}

func (m *Machine) ack(a Ack) error {
	t := &m.t
	if o := t.taking.record; o != nil && a.Sequence == o.Position.Sequence {
		if m.phase == Taking {
			return m.ackTaking(a)
		}
		return nil // the reader was faster
	}
	s := t.flight.find(a.Sequence)
	if s == nil {
		return nil
	}
	t.batch.inFlight--
	if a.Err != nil {
		return fmt.Errorf("journal: appending record %d: %w", a.Sequence, a.Err)
	}
	t.flight.lastAck = m.now.Mono
	if t.flight.acknowledge(s, a.Offset) {
		m.complete(a.Offset)
		return nil
	}
	return m.resolve()
}

// onRead processes what the owner's reader has found.
func (m *Machine) onRead(in Read) error {
	switch m.phase {
	case Taking:
		return m.readTaking(in)
	case Taken:
		m.t.readAhead = append(m.t.readAhead, in.Entries...)
		m.t.flight.next = in.Next
	case Serving, Draining:
		if err := m.observe(in.Entries, in.Next); err != nil {
			return err
		}
		m.checkDrained()
	}
	return nil
}

func (m *Machine) observe(entries []record.Entry, next int64) error {
	m.t.flight.next = next
	for _, e := range entries {
		if !m.t.flight.observe(e.Position) {
			return m.unexpectedRecord(e)
		}
	}
	if err := m.resolve(); err != nil {
		return err
	}
	m.release() // replies that waited for the reader
	return nil
}

// unexpectedRecord returns the error for a valid record that this term did not append. It ends the term.
func (m *Machine) unexpectedRecord(e record.Entry) error {
	if started, ok := m.startedElsewhere(e); ok {
		return m.foreign(started)
	}
	return fmt.Errorf("journal: the log holds a %s as record %d that this term did not append", e.Record.Command.Type, e.Record.Sequence)
}

// resolve completes the records that a gap has delayed.
func (m *Machine) resolve() error {
	for {
		offset, ok := m.t.flight.resolved()
		if !ok {
			break
		}
		m.complete(offset)
	}
	if m.t.flight.lost() {
		return errors.New("journal: an acknowledged record is not valid")
	}
	return nil
}

// complete removes the oldest record from flight and releases the replies that were decided on it.
func (m *Machine) complete(offset int64) {
	t := &m.t
	s := t.flight.complete(offset)
	m.out.Completed = append(m.out.Completed, Completed{Entry: &s.entry, Request: s.request, At: s.at})
	m.acknowledged = s.entry.Position
	if t.unbatched == s {
		t.unbatched = nil
	}
	m.anchors.Note(s.entry.Position)
	m.recent.add(s.entry)
	m.release()
}

// drain stops the decisions. Until everything in flight is complete, or for Limits.Drain, the machine still processes
// acknowledgements and confirmations of refusals.
//
// A held refusal has changed nothing and could be answered NOT_ACCEPTED. But it was decided, and a client is better served
// with the refusal than with a retry elsewhere.
func (m *Machine) drain() {
	if m.phase != Serving {
		return
	}
	m.phase = Draining
	m.abandonQueue("this node is stopping")
	m.flush()
	m.t.drainBy = m.now.Mono + m.cfg.Limits.Drain
}

func (m *Machine) checkDrained() {
	if t := &m.t; m.phase == Draining && t.flight.inFlight.len() == 0 && t.index.held.len() == 0 {
		m.out.Done = true
	}
}

func (m *Machine) checkDrainTime() error {
	if m.checkDrained(); !m.out.Done && m.now.Mono >= m.t.drainBy {
		return errors.New("journal: stopped before everything was acknowledged")
	}
	return nil
}

// wakeAt returns the time of the next internal event: an expired request, a stall, due work, or a timeout.
func (m *Machine) wakeAt() (time.Duration, error) {
	wake := m.now.Mono + idle
	if at, ok := m.expiresAt(); ok {
		wake = min(wake, at)
	}
	switch m.phase {
	case Taking:
		if m.t.taking.acked {
			wake = min(wake, m.t.taking.vanishes)
		}
	case Draining:
		wake = min(wake, m.t.drainBy)
	case Serving:
		wait, err := m.untilNext()
		if err != nil {
			return 0, err
		}
		wake = min(wake, m.now.Mono+wait)
		if b := m.t.batch.records; len(b) > 0 {
			wake = min(wake, b[0].at+batchFor)
		}
	}
	return max(wake, m.now.Mono), nil
}

// untilNext returns the time until the next stall or due work.
func (m *Machine) untilNext() (time.Duration, error) {
	wait, limits := idle, &m.cfg.Limits
	if since, waiting := m.t.flight.waitingSince(); waiting {
		if left := limits.Stall - (m.now.Mono - since); left > 0 {
			wait = min(wait, left)
		} else {
			wait = min(wait, time.Second) // stalled, or with a gap that may time out
		}
	}
	due, ok, err := m.nextDue()
	if err != nil {
		return 0, err
	}
	if ok && m.windowOpen() {
		switch now := m.recordTime(); {
		case due <= now:
			wait = min(wait, overdue)
		case due-now < scalar.Time(wait.Microseconds()):
			wait = time.Duration(due-now) * time.Microsecond
		}
	}
	return max(wait, time.Millisecond), nil
}
