package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

func notAccepted(err error) bool { var e *submit.NotAcceptedError; return errors.As(err, &e) }
func unknown(err error) bool     { var e *submit.OutcomeUnknownError; return errors.As(err, &e) }

// pending asserts that no answer has come.
func pending(t *testing.T, what string, ch <-chan outcome) {
	t.Helper()
	select {
	case o := <-ch:
		t.Errorf("%s was answered early: %+v %v", what, o.result.Position, o.err)
	default:
	}
}

func TestEveryReplyIsHeldUntilItsTipIsAcknowledged(t *testing.T) {
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	first := o.do(keyed("k0", &add{"a", 1}))
	g.withhold()
	success := o.start(keyed("k1", &add{"a", 10}))
	eventually(t, "the record is in the log", func() bool { return len(r.all()) == 4 })
	repeated := o.start(keyed("k1", &add{"a", 10}))
	old := o.start(keyed("k0", &add{"a", 1}))
	conflict := o.start(keyed("k1", &add{"a", 11}))
	refusal := o.start(command(&read{"a"}))
	failure := o.start(command(&bad{"panic"}))
	r.holds(6)
	for what, ch := range map[string]<-chan outcome{"a success": success, "a repetition": repeated, "an old repetition": old,
		"a conflict": conflict, "a refusal": refusal, "a failure of the rules": failure} {
		pending(t, what, ch)
	}
	g.release()
	s := <-success
	if s.err != nil || s.result.Position.Sequence != 3 || s.result.Repeated {
		t.Errorf("success: %+v %v", s.result, s.err)
	}
	if a := <-repeated; a.err != nil || !a.result.Repeated || string(a.result.Entry.Value) != string(s.result.Entry.Value) {
		t.Errorf("repetition: %+v %v", a.result, a.err)
	}
	if a := <-old; a.err != nil || !a.result.Repeated || string(a.result.Entry.Value) != string(first.Entry.Value) {
		t.Errorf("old repetition: %+v %v", a.result, a.err)
	}
	var refused *submit.RefusedError
	if a := <-conflict; !errors.As(a.err, &refused) || refused.Refusal.Code != "IDEMPOTENCY_KEY_REUSED" || refused.AsOf.Sequence != 3 {
		t.Errorf("conflict: %v", a.err)
	}
	if a := <-refusal; !errors.As(a.err, &refused) || refused.Refusal.Message != "11" || refused.AsOf.Sequence != 3 {
		t.Errorf("refusal: %v", a.err)
	}
	var fault *submit.DecideError
	if a := <-failure; !errors.As(a.err, &fault) {
		t.Errorf("failure: %v", a.err)
	}
}

// What is decided while a batch is under way is gathered for the next one, but it does not wait for the brokers.
func TestASlowAcknowledgementHoldsNothingBack(t *testing.T) {
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	before := len(r.all())
	g.withhold()
	first := o.start(command(&add{"a", 1}))
	eventually(t, "the first record is in the log", func() bool { return len(r.all()) == before+1 })
	second := o.start(command(&add{"a", 2}))
	eventually(t, "the second record is in the log", func() bool { return len(r.all()) == before+2 })
	pending(t, "the first command", first)
	pending(t, "the second command", second)
	g.release()
	for _, ch := range []<-chan outcome{first, second} {
		if a := <-ch; a.err != nil {
			t.Error(a.err)
		}
	}
}

func TestIntakeStopsWhenNothingIsAcknowledgedAndStartsAgain(t *testing.T) {
	r := newRig(t)
	g := newGate()
	o := r.gated(r.ownerConfig("n1").Impatient(), time.Minute, g)
	o.ready()
	g.withhold()
	held := o.start(command(&add{"a", 1}))
	o.until("intake stops", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err := o.Submit(ctx, command(&read{"nothing"}))
		var e *submit.NotAcceptedError
		return errors.As(err, &e) && strings.Contains(e.Reason, "accepts no commands") && e.RetryAfter == time.Second
	})
	pending(t, "the held command", held)
	g.release()
	if a := <-held; a.err != nil {
		t.Fatal(a.err)
	}
	o.until("intake goes on", func() bool {
		_, err := o.Submit(context.Background(), command(&add{"a", 1}))
		return err == nil
	})
	if term, _ := o.Serving(); term != 1 {
		t.Errorf("term %d", term)
	}
}

func TestAFullWindowIsNotAccepted(t *testing.T) {
	const window, clients = 4096, 4096 + 100
	r := newRig(t)
	g := newGate()
	o := r.gated(r.ownerConfig("n1").Impatient(), time.Minute, g)
	o.ready()
	taken := 0 // in all rounds
	full := false
	for range 10 { // a slow machine may not fill the window before intake stops for the want of acknowledgements
		g.stall()
		answers := make(chan outcome, clients)
		for range clients {
			go func() {
				result, err := o.Submit(context.Background(), command(&add{"a", 1}))
				answers <- outcome{result, err}
			}()
		}
		for range clients - window {
			if a := <-answers; !notAccepted(a.err) {
				t.Fatalf("a command beyond the window: %v", a.err)
			}
		}
		// What fails is held after everything before it was decided. It is not accepted if the window is full or intake has
		// stopped. On a slow machine it may be held first, for as long as nothing is acknowledged.
		o.until("a command that panics is not accepted", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_, err := o.Submit(ctx, command(&bad{"panic"}))
			var fault *submit.DecideError
			if err == nil || errors.As(err, &fault) {
				t.Fatalf("a command that panics: %v", err)
			}
			return notAccepted(err) && ctx.Err() == nil
		})
		g.release()
		accepted := 0
		for range window {
			switch a := <-answers; {
			case a.err == nil:
				accepted++
			case !notAccepted(a.err):
				t.Fatalf("a command in the window: %v", a.err)
			}
		}
		taken += accepted
		o.until("intake goes on", func() bool {
			_, err := o.Submit(context.Background(), command(&read{"a"}))
			return !notAccepted(err)
		})
		if got, at := o.total("a"); got != fmt.Sprint(taken) || at != int64(taken)+1 {
			t.Errorf("%s at %d, and %d were accepted", got, at, taken)
		}
		if full = accepted == window; full {
			break
		}
	}
	if !full {
		t.Skip("this machine is too slow to fill the window before intake stops: TestAWindowIsReservedBeforeDecide says how large it is")
	}
}

func TestAnUnacknowledgedCommandIsUnknownAndItsRepetitionHasOneOutcome(t *testing.T) {
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Second)
	o.ready()
	g.stall()
	c := keyed("k", &add{"a", 5})
	_, err := o.insist(c)
	var lost *submit.OutcomeUnknownError
	if !errors.As(err, &lost) || lost.CommandID != c.ID {
		t.Fatalf("an unacknowledged command: %v", err)
	}
	// The repetition of something unacknowledged is as unknown; a refusal was never a command at all.
	if _, err := o.insist(keyed("k", &add{"a", 5})); !unknown(err) {
		t.Errorf("its repetition: %v", err)
	}
	if _, err := o.Submit(context.Background(), command(&read{"a"})); !notAccepted(err) {
		t.Errorf("a refusal: %v", err)
	}
	g.release() // the produce succeeds after its client gave up
	var result submit.Result
	o.until("the repetition is answered", func() bool {
		result, err = o.Submit(context.Background(), keyed("k", &add{"a", 5}))
		return err == nil
	})
	if !result.Repeated || result.Entry.Record.Command.ID != c.ID {
		t.Errorf("the repetition is %+v", result)
	}
	if got, _ := o.total("a"); got != "5" {
		t.Errorf("total %s", got)
	}
}

func TestAFaultOfTheRulesAppendsNothing(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	o.do(command(&add{"a", 1}))
	for _, how := range []string{"panic", "utf8", "nothing", "future"} {
		_, err := o.Submit(context.Background(), command(&bad{how}))
		var fault *submit.DecideError
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v", how, err)
		}
	}
	_, err := o.Submit(context.Background(), command(&bad{"large"}))
	var refused *submit.RefusedError
	if !errors.As(err, &refused) || refused.Refusal.Kind != decide.TooLarge || refused.Refusal.Code != "RECORD_TOO_LARGE" {
		t.Errorf("large: %v", err)
	}
	if result := o.do(command(&add{"a", 1})); result.Position.Sequence != 3 {
		t.Errorf("the next record is %d", result.Position.Sequence)
	}
	if term, _ := o.Serving(); term != 1 {
		t.Errorf("term %d", term)
	}
}

// TestARefusalMayRaiseAnAlarm: who asked may be a program that reads no answers, so an operator is told as well.
func TestARefusalMayRaiseAnAlarm(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	o.total("a") // an ordinary refusal raises none
	if n := r.alarms("price_refused"); n != 0 {
		t.Errorf("%g alarms before", n)
	}
	for n := 1.0; n <= 3; n++ {
		_, err := o.insist(command(&bad{"alarming"}))
		var refused *submit.RefusedError
		if !errors.As(err, &refused) || refused.Refusal.Code != "NO" {
			t.Fatalf("%v", err)
		}
		if got := r.alarms("price_refused"); got != n {
			t.Errorf("%g alarms of %g refusals", got, n)
		}
	}
}

func TestOldOutcomesAreReadFromTheLog(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	first := o.do(keyed("first", &add{"a", 1}))
	const many = 9000 // more than an owner remembers
	done := make(chan error, 64)
	for range 64 {
		go func() {
			for range many / 64 {
				if _, err := o.Submit(context.Background(), command(&add{"b", 1})); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 64 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	again := o.do(keyed("first", &add{"a", 1}))
	if !again.Repeated || string(again.Entry.Value) != string(first.Entry.Value) || !again.Entry.Position.Equal(first.Entry.Position) {
		t.Errorf("the first outcome is %s", again.Entry.Value)
	}
}

func TestAProduceErrorEndsTheTermAndTheCommandsAreDecidedAnew(t *testing.T) {
	r := newFake(t)
	o := r.owner("n1").ready()
	o.do(command(&add{"a", 1}))
	r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topic(), Err: kerr.InvalidRecord})
	result := o.do(command(&add{"a", 10}))
	if e := result.Entry.Record.Events[0].(*added); e.Total != 11 {
		t.Errorf("total %d", e.Total)
	}
	if term, _ := o.Serving(); term != 2 {
		t.Errorf("term %d", term)
	}
}

func TestAnAppendedRecordWhoseProduceFailedIsAnsweredFromTheFold(t *testing.T) {
	r := newFake(t)
	o := r.owner("n1").ready()
	// The broker appends, answers an error, and answers the retry with one that ends the term.
	r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topic(), Err: kerr.NotEnoughReplicasAfterAppend},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topic(), Err: kerr.InvalidRecord})
	c := command(&add{"a", 10})
	result := o.do(c)
	if result.Position.Sequence != 2 || result.Entry.Record.Command.ID != c.ID {
		t.Errorf("answered with %v", result.Position)
	}
	o.ready() // the answer comes before the next term accepts commands
	if got, _ := o.total("a"); got != "10" {
		t.Errorf("total %s", got)
	}
	if term, _ := o.Serving(); term != 2 {
		t.Errorf("term %d", term)
	}
}

func TestARecordThatTheBrokerRefusesForItsSizeInMidPipeline(t *testing.T) {
	r := newFake(t)
	o, g := r.gatedOwner("n1", 20*time.Second)
	o.ready()
	admin := kadm.NewClient(must(r.client.Kafka()))
	defer admin.Close()
	limit := func(n string) {
		t.Helper()
		if _, err := admin.AlterTopicConfigs(r.context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &n}}, r.topic()); err != nil {
			t.Fatal(err)
		}
	}
	limit("1500")
	g.stall()
	before := o.start(command(&add{"a", 1}))
	eventually(t, "the first is on its way", func() bool { return g.stalled() > 0 })
	random := make([]byte, 3000) // what compresses would fit
	for i := range random {
		random[i] = "0123456789abcdefghijklmnopqrstuv"[int(record.NewCommandID(time.Now())[15])%32]
	}
	large := o.start(command(&add{string(random), 1}))
	r.holds(2)
	after := o.start(command(&add{"a", 1}))
	r.holds(3) // and it waits to be sent in one batch with the large one
	g.release()
	var refused *submit.NotAcceptedError // the record is within the limit of the rules
	if a := <-large; !errors.As(a.err, &refused) || refused.RetryAfter < time.Second {
		t.Errorf("the large one: %v", a.err)
	}
	for what, ch := range map[string]<-chan outcome{"the one before": before, "the one after": after} {
		if a := <-ch; a.err != nil {
			t.Errorf("%s: %v", what, a.err)
		}
	}
	if got, _ := o.total("a"); got != "2" {
		t.Errorf("total %s", got)
	}
	if n := r.alarms("topic"); n != 1 {
		t.Errorf("%v alarms", n)
	}
	terms, _ := o.Serving()
	if _, err := o.Submit(r.context(), command(&add{string(random), 1})); !errors.As(err, &refused) {
		t.Errorf("the large one again: %v", err)
	}
	if n, _ := o.Serving(); n != terms {
		t.Errorf("a record of a size that was refused ends term %d", terms)
	}
}

func TestDuplicatesFromARetriedProduceAreSkipped(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	first := o.do(command(&add{"a", 1}))
	r.produce(first.Entry.Value, first.Entry.Value) // a gap in the owner's offsets, and nothing foreign
	second := o.do(command(&add{"a", 1}))
	if second.Position.Sequence != 3 || second.Entry.Position.Offset != 5 {
		t.Errorf("the second is record %d at offset %d", second.Position.Sequence, second.Entry.Position.Offset)
	}
	if term, _ := o.Serving(); term != 1 {
		t.Errorf("term %d", term)
	}
	if n := len(r.all()); n != 4 {
		t.Errorf("%d valid records", n)
	}
}

func TestAGapWithForeignValuesIsPassedByTheOwnersReader(t *testing.T) {
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	o.do(command(&add{"a", 1}))
	g.stall()
	held := o.start(command(&add{"a", 1}))
	eventually(t, "it is on its way", func() bool { return g.stalled() > 0 })
	r.produce([]byte("not a record"), []byte(`{"sequence":3,"prev":"x"}`), []byte(`{}`))
	g.release()
	a := <-held
	if a.err != nil || a.result.Entry.Position.Offset != 6 {
		t.Fatalf("%+v %v", a.result.Entry, a.err)
	}
	for range 10 {
		o.do(command(&add{"a", 1}))
	}
	if term, _ := o.Serving(); term != 1 {
		t.Errorf("term %d", term)
	}
}

func TestAnAcknowledgementWithoutAnOffsetIsResolvedByTheOwnersReader(t *testing.T) {
	r := newFake(t)
	o := r.owner("n1").ready()
	// Appended, but the answer is lost; the retry is answered as a duplicate, which names no offset.
	r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topic(), Err: kerr.NotEnoughReplicasAfterAppend},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topic(), Err: kerr.DuplicateSequenceNumber})
	result := o.do(command(&add{"a", 1}))
	if result.Entry.Position.Offset != 2 {
		t.Errorf("offset %d", result.Entry.Position.Offset)
	}
	for range 5 {
		o.do(command(&add{"a", 1}))
	}
	if term, _ := o.Serving(); term != 1 {
		t.Errorf("term %d", term)
	}
}

func TestAPipelineOfManyClientsKeepsItsOrder(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	const clients, each = 32, 50
	results := make(chan outcome, clients*each)
	for c := range clients {
		go func() {
			for range each {
				result, err := o.Submit(context.Background(), command(&add{fmt.Sprint("c", c), 1}))
				results <- outcome{result, err}
			}
		}()
	}
	seen := make(map[int64]bool)
	for range clients * each {
		a := <-results
		if a.err != nil {
			t.Fatal(a.err)
		}
		if seen[a.result.Position.Sequence] {
			t.Errorf("two commands have record %d", a.result.Position.Sequence)
		}
		seen[a.result.Position.Sequence] = true
	}
	all := r.all()
	if len(all) != clients*each+2 {
		t.Errorf("%d records", len(all))
	}
	for i, e := range all[1:] {
		if e.Record.Time < all[i].Record.Time {
			t.Errorf("record %d is earlier than the one before", e.Record.Sequence)
		}
		if e.Position.Offset < e.Position.Sequence {
			t.Errorf("record %d has offset %d", e.Position.Sequence, e.Position.Offset)
		}
	}
	if !strings.HasPrefix(string(all[5].Value), `{"sequence":5,"prev":"`+all[4].Position.Hash.String()) {
		t.Errorf("record 5 is %s", all[5].Value)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
