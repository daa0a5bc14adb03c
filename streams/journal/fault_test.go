package journal_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// forge makes the record that would come after the last one, as some other program might.
func (r *rig) forge(events ...decide.Event) []byte {
	r.t.Helper()
	all := r.all()
	last := all[len(all)-1]
	value, err := record.Encode(nil, &record.Record{Sequence: last.Position.Sequence + 1, Prev: last.Position.Hash,
		Time: last.Record.Time, Outcome: decide.Accepted, Events: events,
		Command: decide.Recorded{ID: record.NewCommandID(time.Now()), Type: "counter.change", Actor: decide.Actor{Sub: "forger"}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return value
}

func TestAValidRecordThatTheOwnerDidNotAppendEndsItsTermAndIsFolded(t *testing.T) {
	r := newRig(t)
	r.rewritten = true // the forged record has no headers
	o := r.owner("n1").ready()
	o.do(command(&add{"a", 1}))
	r.produce(r.forge(&added{Name: "a", N: 50, Total: 51}))
	o.until("it has folded it", func() bool {
		var refused *submit.RefusedError
		_, err := o.Submit(context.Background(), command(&read{"a"}))
		return errors.As(err, &refused) && refused.Refusal.Message == "51"
	})
	if term, _ := o.Serving(); term != 2 {
		t.Errorf("term %d", term)
	}
}

func TestARecordThatLosesItsPlaceIsDecidedAnew(t *testing.T) {
	r := newRig(t)
	r.rewritten = true
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	g.blind(true)
	g.stall()
	late := o.start(command(&add{"a", 1}))
	eventually(t, "it is on its way", func() bool { return g.stalled() > 0 })
	r.produce(r.forge(&added{Name: "a", N: 50, Total: 50}))
	g.set(false, false) // it is appended and acknowledged behind the other one, which the owner has not read yet
	eventually(t, "it is in the log", func() bool { end, err := r.client.Tip(r.context(), "trading", 0); return err == nil && end == 4 })
	pending(t, "the command", late)
	g.release()
	a := <-late
	if a.err != nil || a.result.Position.Sequence != 4 || a.result.Entry.Record.Events[0].(*added).Total != 51 {
		t.Errorf("it is answered with %+v %v", a.result.Position, a.err)
	}
}

func TestWhatATermHeldIsDecidedAnewInTheNext(t *testing.T) {
	r := newFake(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	g.stall()
	success := o.start(keyed("k", &add{"a", 10}))
	eventually(t, "it is on its way", func() bool { return g.stalled() > 0 })
	repeated := o.start(keyed("k", &add{"a", 10}))
	refusal := o.start(command(&read{"a"}))
	r.holds(3)
	r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topic(), Err: kerr.InvalidRecord})
	g.release()
	s := <-success
	if s.err != nil || s.result.Position.Sequence != 3 {
		t.Errorf("the command: %+v %v", s.result.Position, s.err)
	}
	if a := <-repeated; a.err != nil || !a.result.Repeated || string(a.result.Entry.Value) != string(s.result.Entry.Value) {
		t.Errorf("its repetition: %+v %v", a.result.Position, a.err)
	}
	var refused *submit.RefusedError
	if a := <-refusal; !errors.As(a.err, &refused) || refused.Refusal.Message != "10" || refused.AsOf.Sequence != 3 {
		t.Errorf("a refusal: %v", a.err)
	}
}

func TestAForeignTermThatALaterFoldMeetsEndsTheOwner(t *testing.T) {
	for _, seeded := range []bool{false, true} {
		testForeignTermInLaterFold(t, seeded)
	}
}

// testForeignTermInLaterFold is about an owner whose term ends for another reason before it meets the foreign one, and
// whose next fold finds that term, or a seed that has it behind it.
func testForeignTermInLaterFold(t *testing.T, seeded bool) {
	t.Helper()
	r := newFake(t)
	g := newGate()
	cfg := r.ownerConfig("a")
	cfg.Client, cfg.Deadline = r.newClient(nil, g), time.Minute
	var seed atomic.Pointer[record.Seed]
	cfg.Seed = func(context.Context) (*record.Seed, error) { return seed.Swap(nil), nil }
	a := r.run(cfg).ready()
	g.blind(true) // so that it does not see b's term while it serves
	b := r.owner("b").ready()
	last := b.do(command(&add{"a", 1})).Entry
	if seeded {
		state := newCounters()
		state.totals["a"] = 1
		seed.Store(&record.Seed{State: state, Position: last.Position, Term: 2, Time: last.Record.Time})
	}
	r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topic(), Err: kerr.InvalidRecord})
	late := a.start(command(&add{"a", 1})) // its failure ends the term
	a.until("its term has ended", func() bool { _, ok := a.Serving(); return !ok })
	g.release()
	<-a.done
	var foreign *term.ForeignTermError
	if !errors.As(a.err, &foreign) || foreign.Node != "b" || foreign.Term != 2 {
		t.Errorf("seeded %v: the old owner ended with %v", seeded, a.err)
	}
	if term, ok := b.Serving(); term != 2 || !ok {
		t.Errorf("the new owner serves %d, %v", term, ok)
	}
	// Assigned again, it takes over, and what it did not append is decided anew.
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	if o := <-late; o.err != nil || o.result.Entry.Record.Events[0].(*added).Total != 2 {
		t.Errorf("the command: %+v %v", o.result.Position, o.err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAnOwnerThatStopsWithoutItsAcknowledgementsSaysSo(t *testing.T) {
	t.Parallel() // it waits five seconds for them
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	g.withhold()
	held := o.start(command(&add{"a", 1}))
	eventually(t, "it is in the log", func() bool { return len(r.all()) == 3 })
	refusal := o.start(command(&read{"a"}))
	r.holds(2)
	if err := o.end(); err != nil {
		t.Error(err)
	}
	if a := <-held; !unknown(a.err) {
		t.Errorf("the command: %v", a.err)
	}
	if a := <-refusal; !notAccepted(a.err) {
		t.Errorf("the refusal: %v", a.err)
	}
}

// heard notes whether some words were logged.
type heard struct {
	words string
	is    atomic.Bool
}

func (h *heard) Write(b []byte) (int, error) {
	if strings.Contains(string(b), h.words) {
		h.is.Store(true)
	}
	return len(b), nil
}

// TestAnOwnerDoesNotWaitForBrokersThatAreGone stops one whose record will never be acknowledged.
func TestAnOwnerDoesNotWaitForBrokersThatAreGone(t *testing.T) {
	r := newRig(t)
	g, told := newGate(), &heard{words: "the brokers will acknowledge nothing more"}
	client, err := journal.NewClient(journal.Config{Brokers: r.brokers, Prefix: r.prefix, Options: []kgo.Opt{g.option()},
		Gone: func() bool { return true }, Logger: slog.New(slog.NewTextHandler(told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	t.Cleanup(g.release)
	cfg := r.ownerConfig("n1")
	cfg.Client, cfg.Deadline = client, time.Minute
	o := r.run(cfg).ready()
	g.withhold()
	held := o.start(command(&add{"a", 1}))
	eventually(t, "it is in the log", func() bool { return len(r.all()) == 3 })
	if err := o.end(); err != nil || !told.is.Load() {
		t.Errorf("it waited: %v", err)
	}
	if a := <-held; !unknown(a.err) {
		t.Errorf("the command: %v", a.err)
	}
}

func TestAPanicOfTheRulesOnDueWorkEndsTheOwner(t *testing.T) {
	for _, fault := range []string{"due", "next"} {
		r := newRig(t)
		o := r.owner("n1").ready()
		o.do(command(&later{"a", 1, in(time.Hour), ""}))
		if err := o.end(); err != nil {
			t.Fatal(err)
		}
		before := len(r.all())
		r.rules.fault = fault
		o = r.owner("n2")
		<-o.done
		if o.err == nil || !strings.Contains(o.err.Error(), "a fault of due") {
			t.Errorf("%s: ended with %v", fault, o.err)
		}
		if after := len(r.all()); after != before+1 {
			t.Errorf("%s: %d records were appended, not one that opens the term", fault, after-before)
		}
	}
}

func TestAPanicInEvolve(t *testing.T) {
	r := newRig(t)
	r.rules.fault = "evolve"
	o := r.owner("n1").ready()
	o.do(command(&add{"a", 1}))
	var fault *submit.DecideError
	if _, err := o.Submit(context.Background(), command(&add{"poison", 1})); !errors.As(err, &fault) {
		t.Errorf("a command whose record can't be applied: %v", err)
	}
	o.until("the next term serves", func() bool { term, _ := o.Serving(); return term == 2 })
	if got, at := o.total("a"); got != "1" || at != 3 {
		t.Errorf("total %s at %d", got, at)
	}
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	// In the log, such a record is met by every fold: nothing may be appended after it.
	r.rules.fault = ""
	o = r.owner("n1").ready()
	o.do(command(&add{"poison", 1}))
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	before := len(r.all())
	r.rules.fault = "evolve"
	o = r.owner("n1")
	<-o.done
	if o.err == nil || !strings.Contains(o.err.Error(), "a fault of evolve") {
		t.Errorf("ended with %v", o.err)
	}
	if after := len(r.all()); after != before {
		t.Errorf("%d records were appended", after-before)
	}
}

// TestARecordThatCantBeAppliedIsAnsweredOnce has the record follow one that is not acknowledged. Both commands outlive the
// term: the first is answered from the log, the second is not decided again, which would end this term as well.
func TestARecordThatCantBeAppliedIsAnsweredOnce(t *testing.T) {
	r := newRig(t)
	r.rules.fault = "evolve"
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	g.withhold()
	first := o.start(command(&add{"a", 1}))
	eventually(t, "the first record is in the log", func() bool { return len(r.all()) == 3 })
	g.set(true, true)
	poison := o.start(command(&add{"poison", 1}))
	eventually(t, "the next taken record is on its way", func() bool { return g.stalled() > 0 })
	pending(t, "what was decided on a record without acknowledgement", poison)
	if t.Failed() {
		t.FailNow()
	}
	g.release()
	var fault *submit.DecideError
	if a := <-poison; !errors.As(a.err, &fault) {
		t.Errorf("the command whose record can't be applied: %v", a.err)
	}
	if a := <-first; a.err != nil || a.result.Position.Sequence != 2 {
		t.Errorf("the one before it: %+v %v", a.result.Position, a.err)
	}
	o.ready()
	if term, _ := o.Serving(); term != 2 {
		t.Errorf("term %d", term)
	}
}

// An owner may have been taken out of the group and not know it, and its reader may lag. What it refuses leaves no record
// that could lose its place, and yet must not be of the past.
func TestAnOwnerThatWasOvertakenRefusesNothing(t *testing.T) {
	r := newRig(t)
	r.written(1)
	a, g := r.gatedOwner("a", 2*time.Second)
	a.ready()
	if got, _ := a.total("a"); got != "1" {
		t.Fatalf("total %s", got)
	}
	g.blind(true) // it does not see b's term
	b := r.owner("b").ready()
	b.do(command(&add{"a", 1}))
	if _, serving := a.Serving(); !serving {
		t.Fatal("the old owner knows already")
	}
	if _, err := a.Submit(context.Background(), command(&read{"a"})); !notAccepted(err) {
		t.Errorf("the old owner says %v", err)
	}
	g.release()
	<-a.done
	var foreign *term.ForeignTermError
	if !errors.As(a.err, &foreign) {
		t.Errorf("it ended with %v", a.err)
	}
}

// A node that can't tell whether there was a journal founds none. When another node, which can, has founded one, it finds a
// log that nothing vouches for.
func TestAGenesisIsWaitedForNoLongerThanTheLogIsEmpty(t *testing.T) {
	r := newRig(t)
	p := &positions{err: errors.New("Postgres is away")}
	cfg := r.ownerConfig("n1")
	cfg.Client, cfg.Known = r.newClient(nil, nil), []journal.Known{p}
	o := r.run(cfg)
	alarms := func() float64 { return r.alarms("unvouched") }
	o.until("it has asked several times", func() bool { return p.times() > 3 })
	if n := alarms(); n != 0 {
		t.Errorf("%v alarms for a log that is not there", n)
	}
	if err := r.owner("n2").ready().end(); err != nil { // which knows that there was nothing
		t.Fatal(err)
	}
	o.until("there is an alarm", func() bool { return alarms() == 1 })
	p.answer(nil)
	o.ready()
	if term, _ := o.Serving(); term != 2 {
		t.Errorf("term %d", term)
	}
}

// A log may have lost its end while nothing that knows of it answers. Then it must stay as it is.
func TestNoTermIsTakenOfALogThatNothingVouchesFor(t *testing.T) {
	r := newFake(t)
	all := r.written(4)
	last := all[len(all)-1].Position
	lost := record.Position{Offset: last.Offset + 5, Sequence: last.Sequence + 5, Hash: record.Hash{1}}
	end := func() int64 { return r.fake.PartitionInfo(r.topic(), 0).HighWatermark }
	for _, c := range []struct {
		name     string
		postgres *positions
		snapshot []record.Position
	}{
		{"nothing else knows of it", &positions{err: errors.New("away"), known: []record.Position{lost}}, nil},
		{"a snapshot knows that it holds one", &positions{err: errors.New("away"), known: []record.Position{lost}}, []record.Position{last}},
	} {
		name, before := c.name, end()
		cfg := r.ownerConfig("n")
		cfg.Client, cfg.Known = r.newClient(nil, nil), []journal.Known{c.postgres, &positions{known: c.snapshot}}
		o := r.run(cfg)
		if c.snapshot == nil {
			o.until(name+": there is an alarm", func() bool { return r.alarms("unvouched") == 1 && c.postgres.times() > 2 })
			if end() != before {
				t.Fatalf("%s: a term was taken", name)
			}
		} else {
			o.ready()
			if _, err := o.Submit(context.Background(), command(&add{"a", 1})); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		c.postgres.answer(nil) // at last
		eventually(t, name+": the owner ends", func() bool {
			select {
			case <-o.done:
				return true
			default:
				return false
			}
		})
		var diverged *record.DivergedError
		if !errors.As(o.err, &diverged) || !diverged.Have.Equal(lost) {
			t.Errorf("%s: ended with %v", name, o.err)
		}
	}
}

// overtaken runs an owner behind a gate, with whatever seed the test puts there later, and has another take its term while a
// command of its own is in the log and not acknowledged. Nothing but its id protects that command.
func (r *rig) overtaken() (a *running, g *gate, late <-chan outcome, seed *atomic.Pointer[record.Seed]) {
	r.t.Helper()
	g, seed = newGate(), new(atomic.Pointer[record.Seed])
	cfg := r.ownerConfig("a")
	cfg.Client, cfg.Deadline = r.newClient(nil, g), time.Minute
	cfg.Seed = func(context.Context) (*record.Seed, error) { return seed.Load(), nil }
	a = r.run(cfg).ready()
	g.withhold()
	late = a.start(command(&add{"a", 100}))
	eventually(r.t, "the record has landed", func() bool { return len(r.all()) == 3 })
	if err := r.owner("b").ready().end(); err != nil {
		r.t.Fatal(err)
	}
	<-a.done
	return a, g, late, seed
}

func TestASeedHidesNoKeptCommand(t *testing.T) {
	r := newRig(t)
	a, g, late, seed := r.overtaken()
	g.release()
	state := newCounters()
	state.totals["a"] = 100
	last := r.all()[3]
	seed.Store(&record.Seed{State: state, Position: last.Position, Term: 2, Time: last.Record.Time})
	a.comesBack(t, late)
	if got := state.totals["a"]; got != 100 {
		t.Errorf("total %d", got)
	}
}

// TestATermThatEndsBeforeItResumesHidesNoKeptCommand has the batch that shows an owner's own valid taken record show a
// foreign one as well, so that this term ends before it has looked at what it kept. The next one begins with a seed.
func TestATermThatEndsBeforeItResumesHidesNoKeptCommand(t *testing.T) {
	r := newFake(t)
	a, g, late, seed := r.overtaken()

	g.stall()
	again := make(chan error, 1)
	go func() { again <- a.Run(context.Background()) }()
	eventually(t, "its taken record is on its way", func() bool { return g.stalled() > 0 })
	g.blind(true)
	g.set(false, false)
	eventually(t, "it is in the log", func() bool { return len(r.all()) == 5 })
	if err := r.owner("c").ready().end(); err != nil {
		t.Fatal(err)
	}
	g.cut() // so that both are in the first answer of another connection
	g.blind(false)
	var foreign *term.ForeignTermError
	if err := <-again; !errors.As(err, &foreign) || foreign.Node != "c" {
		t.Fatalf("the term that was overtaken ended with %v", err)
	}

	state := newCounters()
	state.totals["a"] = 100
	last := r.all()[5]
	seed.Store(&record.Seed{State: state, Position: last.Position, Term: 4, Time: last.Record.Time})
	a.comesBack(t, late)
	if err := journaltest.CommandsOnce(r.all()); err != nil {
		t.Error(err)
	}
	if got := state.totals["a"]; got != 100 {
		t.Errorf("total %d", got)
	}
}

// TestATakenRecordThatVanishesIsTakenAgain has the brokers acknowledge a taken record that the log does not hold, as one does
// that loses its end right after. Nothing will ever be read of it, and without another try the partition has no owner.
func TestATakenRecordThatVanishesIsTakenAgain(t *testing.T) {
	r := newFake(t)
	end := int64(len(r.written(2)))
	var lost atomic.Int64
	r.fake.ControlKey(int16(kmsg.Produce), func(q kmsg.Request) (kmsg.Response, error, bool) {
		r.fake.KeepControl()
		if lost.Add(1) > 1 {
			return nil, nil, false
		}
		request := q.(*kmsg.ProduceRequest)
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = request.Topics[0].Topic, request.Topics[0].TopicID
		partition := kmsg.NewProduceResponseTopicPartition()
		partition.BaseOffset = end
		topic.Partitions = append(topic.Partitions, partition)
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	cfg := r.ownerConfig("n2")
	cfg.Deadline = 300 * time.Millisecond
	o := r.run(cfg).ready()
	if term, _ := o.Serving(); term != 2 || lost.Load() < 2 {
		t.Errorf("it serves term %d after %d produces", term, lost.Load())
	}
}

func TestASeedThatIsNotInTheLogIsDiverged(t *testing.T) {
	r := newRig(t)
	all := r.written(2)
	at := all[3].Position
	at.Hash[0]++
	cfg := r.ownerConfig("n2")
	cfg.Seed = func(context.Context) (*record.Seed, error) {
		return &record.Seed{State: newCounters(), Position: at, Term: 1, Time: all[3].Record.Time}, nil
	}
	o := r.run(cfg)
	<-o.done
	var diverged *record.DivergedError
	if !errors.As(o.err, &diverged) || !diverged.Have.Equal(at) {
		t.Errorf("ended with %v", o.err)
	}
	if n := len(r.all()); n != len(all) {
		t.Errorf("%d records were appended", n-len(all))
	}
}

// tellsOldEnd has the brokers tell, for the first so many times that they are asked, that the log ends at an offset where it does
// not. It returns how often they were asked.
func (r *rig) tellsOldEnd(end int64, times int64) *atomic.Int64 {
	asked := new(atomic.Int64)
	r.fake.ControlKey(int16(kmsg.ListOffsets), func(q kmsg.Request) (kmsg.Response, error, bool) {
		r.fake.KeepControl()
		request := q.(*kmsg.ListOffsetsRequest)
		if request.Topics[0].Partitions[0].Timestamp != -1 || asked.Add(1) > times {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.ListOffsetsResponse)
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = request.Topics[0].Topic
		partition := kmsg.NewListOffsetsResponseTopicPartition()
		partition.Offset = end
		topic.Partitions = append(topic.Partitions, partition)
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	return asked
}

func TestAnEndThatIsLongPastIsNotBelieved(t *testing.T) {
	r := newFake(t)
	all := r.written(4)
	stale := r.tellsOldEnd(3, 2)
	if got, err := r.poll(all[4].Position); err != nil || got[0] != 5 {
		t.Errorf("after %v comes %v, %v", all[4].Position, got, err)
	}
	if n := stale.Load(); n < 3 {
		t.Errorf("the end was asked for %d times", n)
	}
}

// newStrict runs an owner on brokers that refuse records of more than 2,000 bytes.
func newStrict(t *testing.T) (*watched, *running) {
	w := &watched{rig: newFake(t)}
	w.admin = kadm.NewClient(must(w.client.Kafka()))
	t.Cleanup(w.admin.Close)
	cfg := w.ownerConfig("n1")
	cfg.Client = w.newLoggingClient(nil, nil, slog.New(slog.NewTextHandler(w, nil)))
	o := w.run(cfg).ready()
	w.set("max.message.bytes", "2000")
	return w, o
}

// TestWhoIsAnsweredMaySubmitAgain: the first answers of a term are those to the commands of the term before.
func TestWhoIsAnsweredMaySubmitAgain(t *testing.T) {
	_, o := newStrict(t)
	serving := make(chan bool, 1)
	o.Enqueue(t.Context(), submit.Batch{
		Commands: []decide.Command{command(&add{Name: strings.Repeat("n", 4000), N: 1})},
		Reply: func(int, submit.Outcome) {
			_, ok := o.Serving()
			serving <- ok
		},
		Replied: func() {},
	})
	if !<-serving {
		t.Error("the command is answered before the owner accepts another")
	}
}

// TestThePauseGrowsWhileEachTermIsBrief: brokers that refuse each record end each term. Without a pause, the log would fill with
// the records of terms.
func TestThePauseGrowsWhileEachTermIsBrief(t *testing.T) {
	w, o := newStrict(t)
	for i := range 3 { // each ends two terms, and is then given up; a record as large as the one before would not be appended
		if _, err := o.Submit(w.context(), command(&add{Name: strings.Repeat("n", 4000-100*i), N: 1})); err == nil {
			t.Fatal("the brokers take the record")
		}
	}
	if w.count("pause=80ms") == 0 {
		t.Errorf("the pause does not grow:\n%s", &w.log)
	}
	if n := testutil.ToFloat64(w.metrics.Terms.WithLabelValues("trading")); n < 3 {
		t.Errorf("%v terms have begun", n)
	}
}
