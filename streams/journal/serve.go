package journal

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// idle is the longest that a term sleeps, so that its metrics stay current.
const idle = 10 * time.Second

// overdue is the interval for checking due work that the rules hold back.
const overdue = 20 * time.Millisecond

// gapLasts is how long a gap may stay open before the term ends.
const gapLasts = 10 * time.Second

// serve decides commands until the context ends, after which it drains, or until an error ends the term.
func (t *term) serve(ctx context.Context) error {
	if err := t.observe(t.early, t.flight.next); err != nil {
		return err
	}
	t.resume()
	t.beginServing()
	defer t.endServing()
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		// Process pending results before the next decision: they may end the term, and they free space in the window.
		for more := true; more; {
			var err error
			if more, err = t.poll(); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return t.drain()
		}
		decided, urgency, err := t.work()
		if err != nil {
			return err
		}
		if t.gathered.ready(decided && (urgency != decide.Nothing || t.again.len() > 0 || len(t.o.queue) > 0)) {
			t.flush()
		}
		if decided {
			continue
		}
		t.report()
		t.o.logRepeated(t.now())
		if err := t.wait(ctx, timer, urgency); err != nil {
			return err
		}
	}
}

// beginServing opens the intake of commands.
func (t *term) beginServing() {
	t.o.accepting.Store(true) // first: a caller that observes the owner serving may submit
	t.o.serving.Store(t.number)
	t.o.meters.serving.Set(1)
	t.o.meters.term.Set(float64(t.number))
}

// endServing closes the intake. Queued commands stay in the queue for the next term, or until the owner gives up.
func (t *term) endServing() {
	t.o.serving.Store(0)
	t.o.accepting.Store(false)
	t.o.stalled.Store(0)
	m := &t.o.meters
	for _, gauge := range []prometheus.Gauge{m.serving, m.term, m.stalled, m.window, m.windowBytes, m.held, m.unseen, m.clockOff} {
		gauge.Set(0)
	}
}

// wait sleeps until a result arrives, a command arrives or work is due.
func (t *term) wait(ctx context.Context, timer *time.Timer, urgency decide.Urgency) error {
	// Blocking work precedes every command, and nothing can be decided while the window is full. Leave commands in the
	// queue in those cases, where their clients can still withdraw them.
	commands := t.o.queue
	if urgency == decide.Blocking || !t.roomy() {
		commands = nil
	}
	sleep, err := t.untilNext()
	if err != nil {
		return err
	}
	if left, ok := t.gathered.left(); ok {
		sleep = min(sleep, max(left, 0))
	}
	timer.Reset(sleep)
	select {
	case <-t.acks.some:
		return t.acknowledgeAll()
	case b := <-t.tail:
		return t.fetched(b)
	case end := <-t.barrier.answers:
		t.told(end)
	case err := <-t.lost:
		return err
	case reply := <-t.o.probes:
		reply <- t.standing()
	case r := <-commands:
		r.share.leave()
		t.again.push(r)
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// poll processes one pending acknowledgement or batch of the reader. It stops intake when acknowledgements take too
// long.
func (t *term) poll() (more bool, err error) {
	// These checks cost less than a select.
	if len(t.acks.some) > 0 || len(t.tail) > 0 || len(t.barrier.answers) > 0 || len(t.lost) > 0 || len(t.o.probes) > 0 {
		select {
		case <-t.acks.some:
			return true, t.acknowledgeAll()
		case b := <-t.tail:
			return true, t.fetched(b)
		case end := <-t.barrier.answers:
			t.told(end)
			return true, nil
		case err := <-t.lost:
			return false, err
		case reply := <-t.o.probes:
			reply <- t.standing()
			return true, nil
		default:
		}
	}
	since, waiting := t.flight.waitingSince()
	stalled := waiting && time.Since(since) > stallAfter
	if stalled != t.stalled {
		t.stalled = stalled
		t.o.accepting.Store(!stalled)
		t.o.meters.stalled.Set(0)
		t.o.stalled.Store(0)
		if stalled {
			t.o.meters.stalled.Set(1)
			t.o.stalled.Store(since.UnixMilli())
			t.o.log.Warn("nothing is being acknowledged: no intake", "unacknowledged", t.flight.inFlight.len())
			t.o.refuse("nothing has been acknowledged for two seconds")
		}
	}
	if waiting && t.flight.gap && time.Since(since) > gapLasts {
		return false, errors.New("journal: an acknowledged record was not seen in the log")
	}
	return false, nil
}

// acknowledgeAll processes the producer's results. After an error it leaves the rest in t.unread, for Owner.close.
func (t *term) acknowledgeAll() error {
	said := t.acks.take(t.unread)
	t.gathered.inFlight -= len(said)
	now := time.Now()
	for i, a := range said {
		if err := t.acknowledge(now, a); err != nil {
			t.unread = said[i+1:]
			return err
		}
	}
	clear(said)
	t.unread = said[:0]
	return nil
}

func (t *term) acknowledge(now time.Time, a ack) error {
	if a.err != nil {
		a.slot.tooLarge = errors.Is(a.err, kerr.MessageTooLarge)
		return fmt.Errorf("journal: appending record %d: %w", a.slot.entry.Position.Sequence, a.err)
	}
	t.flight.lastAck = now
	t.o.meters.appends.Inc()
	t.o.meters.appendTime.Observe(t.flight.lastAck.Sub(a.slot.at).Seconds())
	if t.flight.acknowledge(a) {
		t.complete(a.offset)
		return nil
	}
	return t.resolve()
}

// fetched processes a batch of the owner's reader.
func (t *term) fetched(b batch) error {
	if err := t.observe(b.entries, b.next); err != nil {
		return err
	}
	return b.err
}

func (t *term) observe(entries []record.Entry, next int64) error {
	t.flight.next = next
	for _, e := range entries {
		if !t.flight.observe(e.Position) {
			return t.intruder(e)
		}
	}
	if err := t.resolve(); err != nil {
		return err
	}
	t.release() // replies that waited for the reader
	return nil
}

// intruder returns the error for a valid record that this term did not append. It ends the term.
func (t *term) intruder(e record.Entry) error {
	if taken, ok := e.Record.Events[0].(*record.TermStarted); ok {
		if _, own := t.o.sent[e.Record.Command.ID]; !own {
			return t.foreign(taken)
		}
	}
	return fmt.Errorf("journal: the log holds a %s as record %d that this term did not append", e.Record.Command.Type, e.Record.Sequence)
}

// resolve completes the records that a gap has delayed.
func (t *term) resolve() error {
	for {
		offset, ok := t.flight.resolved()
		if !ok {
			break
		}
		t.complete(offset)
	}
	if t.flight.lost() {
		return errors.New("journal: an acknowledged record is not valid")
	}
	return nil
}

// complete removes the oldest record from flight and releases the replies that were decided on it.
func (t *term) complete(offset int64) {
	s := t.flight.complete(offset)
	if t.o.tracer != nil {
		t.trace(s)
	}
	t.o.acknowledged = s.entry.Position
	if t.alone == s {
		t.alone = nil
	}
	t.o.anchors.Note(s.entry.Position)
	t.o.recent.add(s.entry)
	t.release()
}

// trace reports a complete record to the tracer.
func (t *term) trace(s *slot) {
	var traced *trace.Command
	if s.request != nil {
		traced = s.request.traced
	}
	t.o.tracer.Appended(traced, trace.RecordOf(t.o.journal, s.entry), s.at, time.Now())
}

// roomy reports whether the window has room for another record of the largest size.
func (t *term) roomy() bool {
	f := &t.flight
	return !t.stalled && t.alone == nil && f.inFlight.len() < windowRecords && f.bytes+t.o.cfg.Rules.Limit() <= windowBytes &&
		f.unseen.len() < maxUnseen && f.unseenBytes < maxUnseenBytes
}

// work decides one unit of work: a due step or the next command.
func (t *term) work() (decided bool, urgency decide.Urgency, err error) {
	if !t.roomy() {
		return false, decide.Nothing, nil
	}
	now := t.now()
	if urgency, err = t.due(now); err != nil {
		return false, urgency, err
	}
	crowded := urgency == decide.Alternate && t.crowded()
	if urgency == decide.Blocking || urgency == decide.Alternate && !t.stepped && !crowded {
		t.stepped = true
		return true, urgency, t.step(now, urgency)
	}
	if r := t.nextRequest(); r != nil {
		t.stepped = t.stepped && urgency != decide.Alternate
		return true, urgency, t.decide(now, r)
	}
	if urgency == decide.Alternate && !crowded {
		return true, urgency, t.step(now, urgency)
	}
	return false, urgency, nil
}

// crowded reports whether alternating steps must wait until some of them are acknowledged.
//
// A step's record may have the maximum size, and steps are decided faster than a log accepts them. If only the window
// limited them, they would fill it, and a command between them would be acknowledged only after its sixteen megabytes.
func (t *term) crowded() bool { return t.flight.aside >= t.o.cfg.Rules.Limit()/2 }

// due asks the rules for the urgency of due work. A panic of the rules ends the owner, because it would occur again on
// every call.
func (t *term) due(now scalar.Time) (urgency decide.Urgency, err error) {
	defer t.failed("saying what is due", &err)
	return t.state.Due(now), nil
}

// nextDue asks the rules for the next time at which work is due.
func (t *term) nextDue() (at scalar.Time, ok bool, err error) {
	defer t.failed("saying when something is due", &err)
	at, ok = t.state.NextDue()
	return at, ok, nil
}

// failed is deferred. It turns a panic of the rules into an error that ends the owner.
func (t *term) failed(doing string, err *error) {
	if p := recover(); p != nil {
		t.o.alarm("due", "the rules panicked on "+doing, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%w on %s: panic: %v", errRules, doing, p)
	}
}

// nextRequest returns the next command that a client still waits for, or nil.
func (t *term) nextRequest() *request {
	for {
		var r *request
		if t.again.len() > 0 {
			if t.again.peek().alone && t.flight.inFlight.len() > 0 {
				return nil
			}
			r = t.again.pop()
		} else {
			select {
			case r = <-t.o.queue:
				r.share.leave()
			default:
				return nil
			}
		}
		if r.orphaned() {
			r.refuse(afterUndecided)
		} else if r.term != 0 && r.term != t.number {
			r.refuse(ofAnotherTerm)
		} else if r.fate.CompareAndSwap(queued, uncertain) {
			return r
		}
	}
}

// untilNext returns the time until the next internal event: a stall, due work or a report.
func (t *term) untilNext() (time.Duration, error) {
	wait := idle
	if since, waiting := t.flight.waitingSince(); waiting {
		if left := stallAfter - time.Since(since); left > 0 {
			wait = min(wait, left)
		} else {
			wait = min(wait, time.Second) // stalled, or with a gap that may time out
		}
	}
	due, ok, err := t.nextDue()
	if err != nil {
		return 0, err
	}
	if ok && t.roomy() {
		switch now := t.now(); {
		case due <= now:
			wait = min(wait, overdue)
		case due-now < scalar.Time(wait.Microseconds()):
			wait = time.Duration(due-now) * time.Microsecond
		}
	}
	return max(wait, time.Millisecond), nil
}

func (t *term) report() {
	t.o.meters.window.Set(float64(t.flight.inFlight.len()))
	t.o.meters.windowBytes.Set(float64(t.flight.bytes))
	t.o.meters.held.Set(float64(t.held.len() + t.barrier.held.len()))
	t.o.meters.unseen.Set(float64(t.flight.unseen.len()))
	t.o.meters.queue.Set(float64(len(t.o.queue)))
	t.o.meters.acknowledged.Set(float64(t.flight.last.Sequence))
	t.o.meters.clockOff.Set(t.off.Seconds())
}

// drain waits, for drainFor at most, for the records in flight and for the brokers' confirmation of held refusals. It
// decides nothing more.
//
// A held refusal has changed nothing and could be answered NOT_ACCEPTED. But it was decided, and a client is better
// served with the refusal than with a retry elsewhere.
func (t *term) drain() error {
	t.o.accepting.Store(false)
	t.o.refuse("this node is stopping")
	t.flush()
	limit := time.NewTimer(drainFor)
	defer limit.Stop()
	for t.flight.inFlight.len() > 0 || t.barrier.held.len() > 0 {
		if t.o.cfg.Client.Gone() { // results not processed yet stay unknown
			return errors.New("journal: stopped, and the brokers will acknowledge nothing more")
		}
		var err error
		select {
		case <-t.acks.some:
			err = t.acknowledgeAll()
		case b := <-t.tail:
			err = t.fetched(b)
		case end := <-t.barrier.answers:
			t.told(end)
		case reply := <-t.o.probes:
			reply <- t.standing()
		case <-limit.C:
			return errors.New("journal: stopped before everything was acknowledged")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refuse answers the queued commands with NOT_ACCEPTED.
func (o *Owner) refuse(reason string) {
	for {
		select {
		case r := <-o.queue:
			r.share.leave()
			r.refuse(reason)
		default:
			return
		}
	}
}
