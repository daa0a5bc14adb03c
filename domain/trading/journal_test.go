package trading

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// fataler is what the journal below needs of a test, be it of testing or of rapid.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// testJournal plays the owner of a partition: it stamps, decides, encodes, and folds what it decided, and after every
// record it checks what must always hold.
type testJournal struct {
	t       fataler
	id      scalar.ID
	now     scalar.Time
	state   *State
	records []testRecord
	// The sums of all postings by account, to hold the balances in the postings against.
	sums map[string]fixed.Money
	// pause is how long each step of a pending command takes.
	pause scalar.Time
	// single makes every step take one entry only.
	single bool
	// twin, if there is one, is a state that was saved and read back, and must go on like the other (save_test.go).
	twin *State
	// follow, if it is set, is called after each record.
	follow func(c decide.Recorded, events []decide.Event)
	// alarms are the kinds of those that the records raised.
	alarms []string
	// amid, if it is set, is called before each step of a pending command.
	amid func()
	// triggered is when each stop fired.
	triggered map[scalar.ID]scalar.Time
}

// testRecord is a record as the log would hold it.
type testRecord struct {
	stamp   decide.Stamp
	command decide.Recorded
	outcome decide.Outcome
	events  []testEvent
	// built are the events as they were decided. Like an owner's they are folded as they are, by the owner and by whoever
	// follows it in its process, so they must never change (checkBuilt).
	built []decide.Event
}

type testEvent struct {
	kind    string
	version int
	data    []byte
}

// start is the time at which the journals of the tests begin.
const start = scalar.Time(1_800_000_000_000_000)

// newTestJournal begins a journal that follows the newest rules, as a new venue's does.
func newTestJournal(t fataler) *testJournal { return testJournalOf(t, rulesSupported) }

// testJournalOf begins a journal that follows the rules with a number.
func testJournalOf(t fataler, last int) *testJournal {
	j := oldTestJournal(t)
	for rules := 2; rules <= last; rules++ {
		if _, err := j.do(decide.Command{Actor: operator, Payload: &decide.ActivateRules{Rules: rules}}); err != nil {
			t.Fatalf("rules %d: %v", rules, err)
		}
	}
	return j
}

// oldTestJournal begins a journal that follows rules 1.
func oldTestJournal(t fataler) *testJournal {
	j := &testJournal{t: t, id: scalar.ID{1, 2, 3}, now: start, state: NewState(), sums: make(map[string]fixed.Money), triggered: make(map[scalar.ID]scalar.Time)}
	j.state.TrackBook()
	return j
}

func (j *testJournal) stamp() decide.Stamp {
	return decide.Stamp{Journal: j.id, Sequence: int64(len(j.records)) + 1, Time: j.now, Prev: sha256.Sum256([]byte{byte(len(j.records))})}
}

// do decides a command as the owner would, and then works off what it left running. It returns the events that answer
// the command: those of the record that finishes it.
func (j *testJournal) do(c decide.Command) (decide.Decision, error) {
	j.t.Helper()
	j.unblock()
	before := j.digest()
	c.ID = scalar.ID{0xc, byte(len(j.records) >> 16), byte(len(j.records) >> 8), byte(len(j.records))}
	c.Type = typeOf(c)
	d, err := j.state.Decide(j.stamp(), c)
	if err != nil || d.Repeated {
		j.checkUnchanged(before)
	}
	j.checkTwin(d, err, func(s *State) (decide.Decision, error) { return s.Decide(j.stamp(), c) })
	if err != nil {
		if refusal := new(decide.Refusal); !errors.As(err, &refusal) {
			j.t.Fatalf("Decide returned an error that is no refusal: %v", err)
		}
		return d, err
	}
	if d.Repeated {
		return d, nil
	}
	j.checkReconstructed(c, d)
	j.checkArithmetic(c, false, d)
	j.checkUnchanged(before)
	j.append(c.Recorded(), d)
	for d.Pending {
		if j.state.Due(j.now) != decide.Blocking {
			j.t.Fatalf("a pending command does not block")
		}
		j.now += j.pause
		if j.amid != nil {
			j.amid()
		}
		next := j.step(j.single)
		if next.Finishes == c.ID {
			return next, nil
		}
	}
	return d, nil
}

// digest returns the digest of the state before a decision. The digest walks the whole state: later in a long story, now and
// then is enough, and the result is zero at other times.
func (j *testJournal) digest() (digest [32]byte) {
	if len(j.records) < 50 || len(j.records)%16 == 0 {
		digest = j.state.Digest()
	}
	return digest
}

// checkUnchanged checks that neither a decision nor what follows from it before its record is applied, its reconstruction and
// its arithmetic, has changed the state, whose digest was before.
func (j *testJournal) checkUnchanged(before [32]byte) {
	j.t.Helper()
	if before != [32]byte{} && j.state.Digest() != before {
		j.t.Fatalf("Decide, Step or Arithmetic changed the state")
	}
}

// checkReconstructed decides the command again that follows from the events and the input of a decision.
func (j *testJournal) checkReconstructed(c decide.Command, d decide.Decision) {
	j.t.Helper()
	if !j.state.RecordsInputs() {
		return
	}
	r := &decide.Evidence{At: j.stamp(), Command: c.Recorded(), Input: d.Input, Events: d.Events}
	reconstructed, _, err := Payloads().Reconstruct(r)
	if err != nil {
		j.t.Fatalf("%s can't be reconstructed from the input %s: %v", c.Type, d.Input, err)
	}
	again, err := j.state.Decide(r.At, reconstructed)
	if err == nil && reflect.DeepEqual(again, d) {
		return
	}
	was, _ := json.Marshal(d, json.Deterministic(true))
	if is, _ := json.Marshal(again, json.Deterministic(true)); err != nil || !bytes.Equal(is, was) {
		j.t.Fatalf("%s %+v is reconstructed from the input %s as %+v, which is decided as\n%s (%v), and was\n%s", c.Type, c.Payload, d.Input, reconstructed.Payload, is, err, was)
	}
}

// unblock works off what blocks clients, as the owner does before every command.
func (j *testJournal) unblock() {
	j.t.Helper()
	for steps := 0; j.state.Due(j.now) == decide.Blocking; steps++ {
		if steps == 10_000 {
			j.t.Fatalf("what blocks does not end")
		}
		j.step(j.single)
	}
}

// drain works off what is due now.
func (j *testJournal) drain() {
	j.t.Helper()
	for steps := 0; j.state.Due(j.now) != decide.Nothing; steps++ {
		if steps == 10_000 {
			j.t.Fatalf("what is due does not end")
		}
		j.step(j.single)
	}
}

// step works off one piece of due work.
func (j *testJournal) step(single bool) decide.Decision {
	j.t.Helper()
	before := j.digest()
	d := j.state.Step(j.stamp(), single)
	j.checkTwin(d, nil, func(s *State) (decide.Decision, error) { return s.Step(j.stamp(), single), nil })
	if len(d.Events) == 0 {
		j.t.Fatalf("work is due, and the step has no events")
	}
	if d.Events[0].EventType() != "engine.step" {
		j.t.Fatalf("a step begins with %s", d.Events[0].EventType())
	}
	j.checkArithmetic(decide.Command{}, single, d)
	j.checkUnchanged(before)
	j.append(decide.Recorded{ID: scalar.ID{0xe}, Type: "engine.step", Actor: decide.Engine}, d)
	return d
}

// append encodes a decision, folds it, and checks the state after it.
func (j *testJournal) append(c decide.Recorded, d decide.Decision) {
	j.t.Helper()
	if len(d.Events) == 0 {
		j.t.Fatalf("a record without events")
	}
	r := testRecord{stamp: j.stamp(), command: c, outcome: d.Outcome, built: d.Events}
	size, changed := 1000, make(map[scalar.ID]bool)
	traded, trades := make(map[scalar.ID]bool), 0
	for _, e := range d.Events {
		data, err := json.Marshal(e)
		if err != nil {
			j.t.Fatalf("encode %s: %v", e.EventType(), err)
		}
		checkWritten(j.t, e, data)
		size += len(data) + 60
		r.events = append(r.events, testEvent{e.EventType(), decide.VersionOf(e), data})
		if o, ok := e.(OrderEvent); ok {
			if changed[o.After().Code] {
				j.t.Fatalf("two events of one order in a record")
			}
			changed[o.After().Code] = true
			checkOrderView(j.t, o)
		}
		if e, ok := e.(*TradeExecuted); ok {
			trades++
			traded[e.Taker.OrderCode], traded[e.Maker.OrderCode] = true, true
		}
	}
	others := 0
	for code := range changed {
		if !traded[code] {
			others++
		}
	}
	// Besides the order that the command is about. What one fill alone brings with it always fits.
	if trades > j.state.limit.fills || others > max(j.state.limit.others, 2*MaxReduceOnly)+1 {
		j.t.Fatalf("a record of %d fills and %d other order changes", trades, others)
	}
	if size > maxRecord {
		j.t.Fatalf("a record of %d bytes", size)
	}
	j.state.Evolve(r.stamp, c, d.Outcome, r.built)
	if j.twin != nil {
		j.twin.Evolve(r.stamp, c, d.Outcome, r.decode(j.t))
	}
	j.records = append(j.records, r)
	if d.Alarm.Kind != "" {
		j.alarms = append(j.alarms, d.Alarm.Kind)
	}
	if j.follow != nil {
		j.follow(c, r.decode(j.t))
	}
	j.checkPostings(r.built)
	j.checkTriggered(r.stamp, r.built)
	j.checkSweeping(r.built)
	checkState(j.t, j.state)
	if len(j.records) < 50 || len(j.records)%16 == 0 { // in fractions, this takes its time
		checkMargins(j.t, j.state)
	}
}

// checkTriggered holds what is told of the time at which stops fired against the events that say they did. Under rules 1
// an order's own events do not tell it; readers and the state do, under all rules.
func (j *testJournal) checkTriggered(at decide.Stamp, events []decide.Event) {
	j.t.Helper()
	var readers Triggered
	fired := make(map[scalar.ID]bool) // in this record, which need not be the only one of its microsecond
	for _, e := range events {
		shown := readers.Order(e, at.Time)
		if e, ok := e.(*TriggerFired); ok {
			j.triggered[e.OrderCode], fired[e.OrderCode] = at.Time, true
		}
		o, ok := e.(OrderEvent)
		if !ok {
			continue
		}
		after, want := *o.After(), j.triggered[o.After().Code]
		if fired[after.Code] && shown.Triggered != want {
			j.t.Fatalf("a reader shows the stop as triggered at %s, it fired at %s", shown.Triggered, want)
		}
		if live := j.state.orders.Get(after.Code); live != nil && orderView(live).Triggered != want {
			j.t.Fatalf("the state has a stop triggered at %s, it fired at %s", orderView(live).Triggered, want)
		}
		if j.state.ActiveRules() < rulesOfClients {
			want = 0
		}
		if after.Triggered != want {
			j.t.Fatalf("%s says it was triggered at %s, it fired at %s", e.EventType(), after.Triggered, want)
		}
	}
}

// decode reads the record's events as a reader of the log would, and checks that they encode to the same bytes again.
func (r *testRecord) decode(t fataler) []decide.Event {
	t.Helper()
	registry := eventTable.Registry()
	var events []decide.Event
	for _, e := range r.events {
		event, err := registry.Decode(e.kind, e.version, e.data)
		if err != nil {
			t.Fatalf("decode %s: %v\n%s", e.kind, err, e.data)
		}
		again, err := json.Marshal(event)
		if err != nil || !bytes.Equal(again, e.data) {
			t.Fatalf("%s does not encode to the same bytes again: %v\n%s\n%s", e.kind, err, e.data, again)
		}
		events = append(events, event)
	}
	return events
}

// checkBuilt folds what was decided as followers in the owner's process do, two of them at the same time, and then holds
// the events against what they were when they were decided.
func (j *testJournal) checkBuilt() {
	j.t.Helper()
	var folds [2]*State
	var running sync.WaitGroup
	for n := range folds {
		folds[n] = NewState()
		running.Go(func() {
			for i := range j.records {
				r := &j.records[i]
				folds[n].Evolve(r.stamp, r.command, r.outcome, r.built)
			}
		})
	}
	running.Wait()
	for _, s := range folds {
		if s.Digest() != j.state.Digest() {
			j.t.Fatalf("a follower of the same events has another state")
		}
	}
	for i := range j.records {
		for n, e := range j.records[i].built {
			if data, err := json.Marshal(e); err != nil || !bytes.Equal(data, j.records[i].events[n].data) {
				j.t.Fatalf("record %d: %s is now (%v)\n%s\nand was\n%s", i, e.EventType(), err, data, j.records[i].events[n].data)
			}
		}
	}
}

// replay folds the records anew.
func (j *testJournal) replay() *State {
	s := NewState()
	for i := range j.records {
		r := &j.records[i]
		s.Evolve(r.stamp, r.command, r.outcome, r.decode(j.t))
	}
	return s
}

// checkReplay holds the state against a second fold.
func (j *testJournal) checkReplay() {
	j.t.Helper()
	j.checkBuilt()
	if again := j.replay(); again.Digest() != j.state.Digest() {
		var a, b bytes.Buffer
		j.state.dump(&a)
		again.dump(&b)
		j.t.Fatalf("a replay gives another state:\n%s\n---\n%s", a.String(), b.String())
	}
}

// typeOf is the type of a command as its payload tells it: tests give payloads alone.
func typeOf(c decide.Command) string {
	if p, ok := c.Payload.(decide.Payload); ok && c.Type == "" {
		return p.CommandType()
	}
	return c.Type
}
