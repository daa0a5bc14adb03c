package reference_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/reference"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// venue is the owner of a trading journal at simulated time: it takes commands in their turn, works off what is due as
// an owner does, and writes records as they stand in the log. Beside it go an auditor and two followers that know
// nothing but the records' bytes. One has folded them from the first on; the other is a snapshot that was saved and
// read back, again and again at random moments, and decides everything once more: what it would write must be the same
// bytes.
type venue struct {
	t      *testing.T
	random *rand.Rand

	id       scalar.ID
	now      scalar.Time
	previous scalar.Time // of the last record
	tip      record.Position
	term     int64
	state    *trading.State
	fold     *trading.State
	twin     *trading.State
	decoder  *record.Decoder
	auditor  *reference.Auditor
	queue    []arrival
	stepped  bool
	commands uint64
	answers  map[string]int // codes of refusals, and outcomes
	repeats  int
	again    map[string]int // verdicts of deciding the records again, by command type
	inputs   map[string]int // records with an input, by command type
	// bytes is the length of all values, of which inputBytes belong to the members of inputs.
	bytes, inputBytes int
	tail              [][]byte // the last records, shown where the audit fails
	keeps             bool     // all of them
	log               recordtest.Digest
}

// arrival is a command that a client sends at a time.
type arrival struct {
	time    scalar.Time
	command decide.Command
}

func openVenue(t *testing.T, seed uint64, start scalar.Time) *venue {
	v := &venue{t: t, random: rand.New(rand.NewPCG(seed, 1)), id: scalar.ID{5, byte(seed)}, now: start, tip: record.Before, state: trading.NewState(),
		fold: trading.NewState(), twin: trading.NewState(), decoder: record.NewDecoder(trading.Rules().Registry()), auditor: reference.New(),
		answers: make(map[string]int), again: make(map[string]int), inputs: make(map[string]int)}
	v.append(v.write(decide.Recorded{ID: scalar.ID{0xe}, Type: record.TypeGenesis, Actor: decide.Engine}, decide.Decision{
		Outcome: decide.Accepted, Events: []decide.Event{&record.Genesis{Journal: "trading", JournalID: v.id, Partitions: 1}}}))
	v.takeOver()
	return v
}

func (v *venue) stamp() decide.Stamp {
	return decide.Stamp{Journal: v.id, Sequence: v.tip.Sequence + 1, Time: v.now, Prev: v.tip.Hash}
}

// write returns the record of a decision as it would stand in the log.
func (v *venue) write(c decide.Recorded, d decide.Decision) []byte {
	v.t.Helper()
	r := &record.Record{Sequence: v.tip.Sequence + 1, Prev: v.tip.Hash, Time: v.now, Command: c, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	value, err := record.Encode(nil, r)
	if err != nil {
		v.t.Fatalf("record %d can't be written: %v", r.Sequence, err)
	}
	if len(value) > trading.Rules().Limit() {
		v.t.Fatalf("record %d takes %d bytes", r.Sequence, len(value))
	}
	return value
}

// append has everybody read a record. The owner folds what it decided, the others what the bytes say.
func (v *venue) append(value []byte, built ...decide.Event) {
	v.t.Helper()
	v.tip.Sequence++
	v.tip.Hash = sha256.Sum256(value)
	v.log.Add(value)
	if v.tail = append(v.tail, value); len(v.tail) > 4 && !v.keeps {
		v.tail = v.tail[1:]
	}
	if err := v.auditor.Check(value); err != nil {
		for _, r := range v.tail {
			v.t.Logf("%s", r)
		}
		v.t.Fatal(err)
	}
	read := func() *record.Record {
		r, err := v.decoder.Decode(value)
		if err != nil {
			v.t.Fatalf("record %d can't be read: %v", v.tip.Sequence, err)
		}
		return r
	}
	r := read()
	v.redecide(record.Entry{Record: r, Position: v.tip, Journal: v.id, Value: value})
	at := decide.Stamp{Journal: v.id, Sequence: r.Sequence, Time: r.Time, Prev: r.Prev}
	v.fold.Evolve(at, r.Command, r.Outcome, r.Events)
	v.twin.Evolve(at, r.Command, r.Outcome, read().Events)
	if built == nil {
		built = read().Events
	}
	v.state.Evolve(at, r.Command, r.Outcome, built)
	v.stateLiabilities()
	v.now += scalar.Time(20 + v.random.IntN(180))
	switch v.random.IntN(600) {
	case 0:
		v.compare()
		v.snapshot()
	case 1:
		v.compare()
	}
}

// redecide decides a record again as one does who has nothing but the log.
func (v *venue) redecide(e record.Entry) {
	v.t.Helper()
	result := redecide.Journal{Payloads: trading.Payloads(), Limit: trading.Rules().Limit()}.Redecide(v.fold, v.previous, e)
	v.previous = e.Record.Time
	v.bytes += len(e.Value)
	if in := e.Record.Input; in != "" {
		v.inputs[e.Record.Command.Type]++
		v.inputBytes += len(`,"input":`) + len(in)
	}
	v.again[result.Verdict.String()+" "+e.Record.Command.Type]++
	// The events of rules 1 and 2 do not show everything. And random steps have one entry although a larger one does not fail.
	if result.Verdict == redecide.Different || result.Verdict == redecide.NotRedecidable && v.fold.RecordsInputs() || result.Verdict == redecide.NotReproduced && !v.auditor.Single {
		v.t.Fatalf("record %d is decided again, %s, as\n%s\nand is\n%s", e.Record.Sequence, result.Reason, result.Value, e.Value)
	}
}

// decided writes a decision that both engines made, which have to have made the same.
func (v *venue) decided(c decide.Recorded, d, again decide.Decision, err, errAgain error) {
	v.t.Helper()
	if !reflect.DeepEqual(err, errAgain) || d.Repeated != again.Repeated || d.Repeat != again.Repeat || d.Pending != again.Pending || d.Finishes != again.Finishes {
		v.t.Fatalf("record %d: one engine says %v %+v, the one that was saved %v %+v", v.tip.Sequence+1, err, d, errAgain, again)
	}
	if err != nil || d.Repeated {
		return
	}
	value := v.write(c, d)
	if other := v.write(c, again); !bytes.Equal(value, other) {
		v.t.Fatalf("one engine writes\n%s\nthe one that was saved\n%s", value, other)
	}
	v.append(value, d.Events...)
}

// stateLiabilities gives the statement of liabilities after a record that fixed the last funding of an instant.
func (v *venue) stateLiabilities() {
	v.t.Helper()
	instant, ok := v.state.FundingInstant()
	if !ok || instant.Sequence != v.tip.Sequence || !v.state.StatesLiabilities() {
		return
	}
	key, err := commitment.ParseEpochKey(make([]byte, commitment.KeySize))
	if err != nil {
		v.t.Fatal(err)
	}
	instant.Hash = v.tip.Hash
	b, err := liabilities.State(liabilities.Of(v.state, instant), key)
	if err != nil {
		v.t.Fatal(err)
	}
	v.give(decide.Actor{System: "liabilities"}, decide.Metadata{}, &trading.RecordLiabilities{Statement: b.Statement})
}

// give has a command come in now.
func (v *venue) give(actor decide.Actor, kept decide.Metadata, payload decide.Payload) {
	v.at(v.now, actor, kept, payload)
}

// at has a command come in at a time.
func (v *venue) at(t scalar.Time, actor decide.Actor, kept decide.Metadata, payload decide.Payload) {
	v.commands++
	c := decide.Command{Type: payload.CommandType(), Actor: actor, Metadata: kept, Payload: payload}
	binary.BigEndian.PutUint64(c.ID[8:], v.commands)
	v.queue = append(v.queue, arrival{t, c})
}

// sent is a command as another node reads it that is sent it.
func (v *venue) sent(c decide.Command) decide.Command {
	v.t.Helper()
	text, err := json.Marshal(c.Payload)
	if err != nil {
		v.t.Fatal(err)
	}
	payload, _ := trading.Payloads().New(c.Type)
	if err := json.Unmarshal(text, payload); err != nil {
		v.t.Fatalf("%s can't be read: %v: %s", c.Type, err, text)
	}
	c.Payload = payload
	return c
}

// work does the next thing, as the owner of a journal does: what blocks comes first, and what alternates takes turns with
// the commands that wait. It reports whether there was anything to do.
func (v *venue) work() bool {
	v.t.Helper()
	urgency := v.state.Due(v.now)
	if urgency != v.twin.Due(v.now) {
		v.t.Fatalf("what is due now is %d to one engine, %d to the one that was saved", urgency, v.twin.Due(v.now))
	}
	waits := len(v.queue) > 0 && v.queue[0].time <= v.now
	switch {
	case urgency == decide.Alternate && v.stepped && waits, urgency == decide.Nothing && waits:
		v.stepped = false
		v.decide()
	case urgency != decide.Nothing:
		v.stepped = true
		v.step()
	default:
		return false
	}
	return true
}

func (v *venue) decide() {
	v.t.Helper()
	c := v.queue[0].command
	v.queue = v.queue[1:]
	at := v.stamp()
	d, err := v.state.Decide(at, v.sent(c))
	again, errAgain := v.twin.Decide(at, v.sent(c))
	refusal := new(decide.Refusal)
	switch {
	case errors.As(err, &refusal):
		v.answers[refusal.Code]++
	case err != nil:
		v.t.Fatalf("%s: %v", c.Type, err)
	case d.Repeated:
		v.repeats++
	default:
		v.answers[c.Type+" "+string(d.Outcome)]++
	}
	v.decided(c.Recorded(), d, again, err, errAgain)
	v.now++
}

// step works off what is due; now and then as an owner does whose larger step failed.
func (v *venue) step() {
	v.t.Helper()
	at, single := v.stamp(), v.random.IntN(100) == 0
	d, again := v.state.Step(at, single), v.twin.Step(at, single)
	v.auditor.Single = single
	if len(d.Events) == 0 {
		v.t.Fatal("work is due, and the step has no events")
	}
	v.decided(decide.Recorded{ID: scalar.ID{0xe}, Type: d.Events[0].EventType(), Actor: decide.Engine}, d, again, nil, nil)
	v.auditor.Single = false
}

// until has the venue work until a time.
func (v *venue) until(end scalar.Time) {
	v.t.Helper()
	for v.now < end {
		if v.work() {
			continue
		}
		next := end
		if len(v.queue) > 0 {
			next = min(next, v.queue[0].time)
		}
		if due, ok := v.state.NextDue(); ok {
			next = min(next, due)
		}
		v.now = max(v.now, next)
	}
}

// drain works off all that has come in and is due now.
func (v *venue) drain() {
	v.t.Helper()
	for n := 0; v.work(); n++ {
		if n == 100_000 {
			v.t.Fatal("what is due does not end")
		}
	}
}

// away lets time pass without an owner. The next one goes on from a snapshot.
func (v *venue) away(span scalar.Time) {
	v.t.Helper()
	v.now += span
	for n := range v.queue { // who waited sends again
		v.queue[n].time = max(v.queue[n].time, v.now)
	}
	v.compare()
	v.state = v.reread(v.fold)
	v.takeOver()
}

// takeOver opens a term.
func (v *venue) takeOver() {
	v.t.Helper()
	v.term++
	v.append(v.write(decide.Recorded{ID: scalar.ID{0xe}, Type: record.TypeTermStarted, Actor: decide.Engine}, decide.Decision{
		Outcome: decide.Accepted, Events: []decide.Event{&record.TermStarted{Term: v.term, Node: "n", URL: "u", Build: "b"}}}))
	v.stepped = false
}

func (v *venue) reread(s *trading.State) *trading.State {
	v.t.Helper()
	saved := trading.Codec().Append(nil, s)
	read, err := trading.Codec().Read(saved)
	if err != nil {
		v.t.Fatalf("after record %d: a snapshot can't be read: %v", v.tip.Sequence, err)
	}
	if !bytes.Equal(trading.Codec().Append(nil, read), saved) {
		v.t.Fatalf("after record %d: a snapshot is saved as other bytes again", v.tip.Sequence)
	}
	return read.(*trading.State)
}

// snapshot replaces the engine that decides everything again by one that was saved and read back.
func (v *venue) snapshot() { v.twin = v.reread(v.state) }

// compare holds the folds against each other, byte for byte, and what they show of accounts and books against what the
// auditor knows.
func (v *venue) compare() {
	v.t.Helper()
	saved := trading.Codec().Append(nil, v.state)
	for name, other := range map[string]*trading.State{"a fold of all records": v.fold, "a snapshot, and what followed it": v.twin} {
		if !bytes.Equal(trading.Codec().Append(nil, other), saved) {
			v.t.Fatalf("after record %d: %s comes to another state", v.tip.Sequence, name)
		}
	}
	for _, code := range v.auditor.Customers() {
		want, err := v.auditor.Figures(code)
		if err != nil {
			v.t.Fatal(err)
		}
		s, _ := v.fold.Summary(code)
		got := reference.Figures{Balance: int64(s.Balance), Equity: int64(s.TotalEquity), Unrealized: int64(s.UnrealizedPnL), Used: int64(s.UsedMargin),
			OrderMargin: int64(s.OrderMargin), Maintenance: int64(s.MaintenanceMargin), Available: int64(s.AvailableMargin), Withdrawable: int64(s.Withdrawable)}
		if got != want {
			v.t.Fatalf("after record %d: %s has %+v, the rules say %+v", v.tip.Sequence, code, got, want)
		}
	}
	for _, i := range v.fold.Instruments() {
		bids, asks := v.fold.Depth(i.Symbol, 1<<30)
		if got, want := fmt.Sprint(levels(bids), levels(asks)), fmt.Sprint(v.auditor.Book(i.Symbol)); got != want {
			v.t.Fatalf("after record %d: the book of %s is\n%s, the orders make\n%s", v.tip.Sequence, i.Symbol, got, want)
		}
	}
}

// levels are price and amount of each level in 10⁻⁸.
func levels(side []trading.Level) []reference.Level {
	out := []reference.Level{}
	units := func(d fixed.Decimal) int64 { n, _ := d.In(8); return n }
	for _, l := range side {
		out = append(out, reference.Level{Price: units(l.Price), Amount: units(l.Amount)})
	}
	return out
}
