package journal_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

func in(d time.Duration) scalar.Time { return scalar.TimeOf(time.Now().Add(d)) }

func TestAnIdleJournalGetsARecordOnlyWhenSomethingIsDue(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	at := in(300 * time.Millisecond)
	o.do(command(&later{"a", 5, at, ""}))
	if n := len(r.all()); n != 3 && in(0) < at { // a busy machine may need longer to look
		t.Errorf("%d records before", n)
	}
	eventually(t, "the due work is done", func() bool { return len(r.all()) == 4 })
	step := r.all()[3]
	if step.Record.Time < at || step.Record.Command.Type != "engine.step" || step.Record.Events[0].EventType() != "engine.step" ||
		step.Record.Command.Actor != decide.Engine {
		t.Errorf("the step is %s", step.Value)
	}
	if got, _ := o.total("a"); got != "5" {
		t.Errorf("total %s", got)
	}
}

// TestAStepMayRaiseAnAlarm: what falls due answers nobody, so an operator is told. Of many steps of one wave each is counted, and
// the log tells of them in two lines: at once of the first, and later how many came after it.
func TestAStepMayRaiseAnAlarm(t *testing.T) {
	r := newRig(t)
	clock, told := &handMoved{start: time.Now()}, new(lines)
	cfg := r.ownerConfig("n1")
	cfg.Client = r.newLoggingClient(clock, nil, slog.New(slog.NewTextHandler(told, nil)))
	o := r.run(cfg).ready()
	o.do(command(&later{"a", 1, in(-time.Minute), ""}))
	eventually(t, "the first step is done", func() bool { got, _ := o.total("a"); return got == "1" })
	if n := r.alarms("counted"); n != 0 {
		t.Errorf("%g alarms of an ordinary step", n)
	}
	for n := 1.0; n <= 20; n++ {
		o.do(command(&later{"a", 1, in(-time.Minute), "alarm"}))
		eventually(t, "there is an alarm", func() bool { return r.alarms("counted") == n })
	}
	if got := told.with("alarm=counted"); len(got) != 1 || strings.Contains(got[0], "times") {
		t.Errorf("of a wave the log says %q", got)
	}
	clock.by.Store(int64(2 * time.Minute))
	o.do(command(&add{"a", 1}))
	eventually(t, "the log to say how many there were", func() bool { return len(told.with("alarm=counted")) > 1 })
	if got := told.with("alarm=counted"); len(got) != 2 || !strings.Contains(got[1], "times=19") {
		t.Errorf("in the end the log says %q", got)
	}
}

// handMoved is a clock that goes only as far as a test moves it.
type handMoved struct {
	start time.Time
	by    atomic.Int64
}

func (c *handMoved) Wall() time.Time        { return c.start.Add(c.Elapsed()) }
func (c *handMoved) Elapsed() time.Duration { return time.Duration(c.by.Load()) }

// lines is what was logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(b))
	return len(b), nil
}

// with returns those that hold some words.
func (l *lines) with(words string) (some []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, words) {
			some = append(some, line)
		}
	}
	return some
}

func TestTakenComesFirstThenStepsThenCommands(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	at := in(50 * time.Millisecond)
	o.do(command(&later{"a", 1, at, ""}))
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it becomes due while nobody owns the journal", func() bool { return in(0) > at })
	before := int64(len(r.all()))
	o = r.owner("n2").ready()
	o.do(command(&add{"a", 1}))
	all := r.all()
	if all[before-1].Record.Command.Type == "engine.step" {
		t.Skip("the first owner was slow enough to do the step itself")
	}
	equal(t, "records", types(all, before), []string{record.TypeTermStarted, "engine.step", "counter.change"})
}

func TestAlternateStepsTakeTurnsWithCommands(t *testing.T) {
	inTime := false
	for soon := 200 * time.Millisecond; !inTime && soon < time.Minute; soon *= 4 {
		inTime = takeTurns(t, soon)
	}
	if !inTime {
		t.Error("the steps are always done before the owner is busy")
	}
}

// takeTurns has steps become due while the owner is busy, unless it is not before they are.
func takeTurns(t *testing.T, soon time.Duration) (inTime bool) {
	t.Helper()
	r := newRig(t)
	o := r.owner("n1").ready()
	at := in(soon)
	for range 5 {
		o.do(command(&later{"due", 1, at, ""}))
	}
	// While the owner is busy, steps become due and commands pile up behind it.
	busy := &hold{make(chan struct{}), make(chan struct{})}
	waiting := []<-chan outcome{o.start(command(busy))}
	<-busy.entered
	if in(0) >= at {
		close(busy.leave)
		<-waiting[0]
		return false
	}
	for range 5 {
		waiting = append(waiting, o.queue(command(&add{"a", 1})))
	}
	eventually(t, "the steps are due", func() bool { return in(0) > at })
	close(busy.leave)
	for _, w := range waiting {
		if a := <-w; a.err != nil {
			t.Fatal(a.err)
		}
	}
	eventually(t, "all steps are done", func() bool { got, _ := o.total("due"); return got == "5" })
	want := []string{"counter.change"} // the busy one
	for range 5 {
		want = append(want, "engine.step", "counter.change")
	}
	equal(t, "records", types(r.all(), 7), want)
	return true
}

// TestAlternateStepsLeaveRoom: where nothing is acknowledged, steps fill no more of the window than half of what a record
// may take, or the last of them ends beyond that, and commands are decided all the same. The other steps come later.
func TestAlternateStepsLeaveRoom(t *testing.T) {
	inTime := false
	for soon := 200 * time.Millisecond; !inTime && soon < time.Minute; soon *= 4 {
		inTime = leaveRoom(t, soon)
	}
	if !inTime {
		t.Error("the steps are always done before the owner is busy")
	}
}

// leaveRoom is takeTurns where nothing is acknowledged.
func leaveRoom(t *testing.T, soon time.Duration) (inTime bool) {
	t.Helper()
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	at, large := in(soon), strings.Repeat("n", testLimit*2/5)
	const planned, commands, fit = 12, 20, 2
	for range planned {
		o.do(command(&later{large, 1, at, ""}))
	}
	busy := &hold{make(chan struct{}), make(chan struct{})}
	waiting := []<-chan outcome{o.start(command(busy))}
	<-busy.entered
	if in(0) >= at {
		close(busy.leave)
		<-waiting[0]
		return false
	}
	for range commands {
		waiting = append(waiting, o.queue(command(&add{"a", 1})))
	}
	eventually(t, "the steps are due", func() bool { return in(0) > at })
	g.stall()
	close(busy.leave)
	inWindow := func() int { return int(testutil.ToFloat64(r.metrics.Window.WithLabelValues("trading"))) }
	eventually(t, "the commands are decided", func() bool { return inWindow() > commands })
	if n := inWindow(); n != 1+commands+fit {
		t.Errorf("%d records are in the window, with %d commands", n, 1+commands)
	}
	g.release()
	for _, w := range waiting {
		if a := <-w; a.err != nil {
			t.Fatal(a.err)
		}
	}
	eventually(t, "all steps are done", func() bool { got, _ := o.total(large); return got == strconv.Itoa(planned) })
	return true
}

func TestABlockingSweepComesBeforeCommandsAndItsReplyAfterItsLastStep(t *testing.T) {
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	g.stall()
	first := o.start(command(&add{"a", 1}))
	eventually(t, "the first is on its way", func() bool { return g.stalled() > 0 })
	c := keyed("sweep", &sweep{"a", 20})
	answer := o.start(c)
	other := o.start(command(&read{"a"}))
	g.release()
	a := <-answer
	if a.err != nil {
		t.Fatal(a.err)
	}
	last := a.result.Entry.Record
	if last.Command.Type != "engine.step" || last.Events[2].(*swept).Left != 0 {
		t.Errorf("the answer is %s", a.result.Entry.Value)
	}
	<-first
	<-other
	all := r.all()
	for i, e := range all {
		if e.Record.Command.ID == c.ID {
			equal(t, "after the sweep's command", types(all[:i+21], int64(i+1)), repeatString("engine.step", 20))
		}
	}
}

func repeatString(s string, n int) (list []string) {
	for range n {
		list = append(list, s)
	}
	return list
}

func TestCommandsAreNotAcceptedWhileSomethingBlocksThemForLong(t *testing.T) {
	r := newFake(t)
	o := r.run(r.ownerConfig("n1").Impatient()).ready()
	endless := o.start(command(&sweep{"a", 1 << 40}))
	eventually(t, "it has begun", func() bool { end, err := r.client.Tip(r.context(), "trading", 0); return err == nil && end > 10 })
	_, err := o.Submit(context.Background(), command(&add{"a", 1}))
	var refused *submit.NotAcceptedError
	if !errors.As(err, &refused) || refused.RetryAfter != time.Second {
		t.Errorf("a command meanwhile: %v", err)
	}
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	if a := <-endless; !unknown(a.err) {
		t.Errorf("the endless sweep itself: %v", a.err)
	}
}

func TestASweepGoesOnInTheNextTermAndIsAnswered(t *testing.T) {
	r := newFake(t)
	o := r.owner("n1").ready()
	answer := o.start(command(&sweep{"a", 3000}))
	eventually(t, "it is under way", func() bool { return r.fake.PartitionInfo(r.topic(), 0).HighWatermark > 50 })
	r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topic(), Err: kerr.InvalidRecord})
	if a := <-answer; a.err != nil || a.result.Entry.Record.Events[2].(*swept).Left != 0 {
		t.Errorf("the sweep is answered with %+v %v", a.result.Position, a.err)
	}
	if got, _ := o.total("a"); got != "3000" {
		t.Errorf("total %s", got)
	}
	if term, _ := o.Serving(); term != 2 {
		t.Errorf("term %d", term)
	}
}

func TestAPendingReplySurvivesItsTerm(t *testing.T) {
	r := newRig(t)
	a, g := r.gatedOwner("a", time.Minute)
	a.ready()
	g.stall()
	held := a.start(command(&sweep{"a", 3}))
	eventually(t, "it is on its way", func() bool { return g.stalled() > 0 })
	b := r.owner("b").ready() // fences a; none of the sweep's records ever becomes valid
	<-a.done
	if got, _ := b.total("a"); got != "0" {
		t.Errorf("total %s", got)
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	g.release()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	if o := <-held; o.err != nil || o.result.Entry.Record.Events[2].(*swept).Left != 0 {
		t.Errorf("the sweep is answered with %+v %v", o.result, o.err)
	}
	if got, _ := a.total("a"); got != "3" {
		t.Errorf("total %s", got)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAStepThatFailsIsTriedAloneAndThenSetAside(t *testing.T) {
	for _, c := range []struct {
		fault, want, total string
	}{
		{"panic", "engine.step", "1"},
		{"large", "engine.step", "1"},
		{"panic!", "due.set_aside", "0"},
		{"garble!", "due.set_aside", "0"}, // with what has no place in a record
	} {
		t.Run(c.fault, func(t *testing.T) {
			r := newRig(t)
			o := r.owner("n1").ready()
			o.do(command(&later{"a", 1, in(0), c.fault}))
			eventually(t, "something is done about it", func() bool { return len(r.all()) == 4 })
			e := r.all()[3]
			if e.Record.Command.Type != c.want {
				t.Errorf("%s", e.Value)
			}
			if aside, ok := e.Record.Events[0].(*decide.DueSetAside); ok && c.fault == "panic!" && aside.Error != "panic: a fault of a step" {
				t.Errorf("set aside for %q", aside.Error)
			}
			if got, _ := o.total("a"); got != c.total {
				t.Errorf("total %s", got)
			}
			if term, _ := o.Serving(); term != 1 {
				t.Errorf("term %d", term)
			}
		})
	}
}

// stoppedClock is a clock that a test moves.
type stoppedClock struct{ wall time.Time }

func (c *stoppedClock) Wall() time.Time        { return c.wall }
func (c *stoppedClock) Elapsed() time.Duration { return 0 }

func TestTimeNeverGoesBack(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	times := func(wall time.Time) scalar.Time {
		cfg := r.ownerConfig("n1")
		cfg.Client, cfg.AcceptClock = r.newClient(&stoppedClock{wall}, nil), true
		o := r.run(cfg).ready()
		result := o.do(command(&add{"a", 1}))
		if err := o.end(); err != nil {
			t.Fatal(err)
		}
		return result.Entry.Record.Time
	}
	ahead := times(now.Add(time.Hour)) // a broker would refuse it by default
	if ahead != scalar.TimeOf(now.Add(time.Hour)) {
		t.Errorf("time is %v", ahead)
	}
	if behind := times(now); behind != ahead {
		t.Errorf("after %v comes %v", ahead, behind)
	}
	if further := times(now.Add(2 * time.Hour)); further != scalar.TimeOf(now.Add(2*time.Hour)) {
		t.Errorf("time is %v", further)
	}
}
