package follow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// serve runs an owner and returns a function that has words said, and one that stops it.
func serve(t *testing.T, c *journal.Client) (say func(string) record.Entry, stop func()) {
	t.Helper()
	o, err := journal.NewOwner(journal.OwnerConfig{Client: c, Rules: journaltest.Words{Name: "trading"}, Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	for limit := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		if _, ok := o.Serving(); ok {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("the owner does not come to serve")
		}
	}
	return func(word string) record.Entry {
		c := journaltest.Say(word)
		result, err := journaltest.Insist(func() (submit.Result, error) { return o.Submit(context.Background(), c) })
		if err != nil {
			t.Fatal(err)
		}
		return *result.Entry
	}, stop
}

func run(t *testing.T, f *follow.Fold) (ended func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	ended = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = ended() })
	return ended
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func words(f *follow.Fold) (list string, at record.Position) {
	f.View(func(s decide.State, p record.Position) {
		list, at = strings.Join(s.(*journaltest.WordList).Words, " "), p
	})
	return list, at
}

func TestAFoldFollowsTheJournal(t *testing.T) {
	c := journaltest.NewClient(t, "trading")
	say, _ := serve(t, c)
	say("one")
	f := follow.New(c, journaltest.Words{Name: "trading"}, 0)
	var heard []string
	f.Listen(func(e record.Entry, s decide.State) {
		heard = append(heard, fmt.Sprint(e.Position.Sequence, ":", len(s.(*journaltest.WordList).Words)))
	})
	if !f.Position().IsBefore() || f.Err() != nil {
		t.Errorf("before it runs it is at %v", f.Position())
	}
	ended := run(t, f)
	two := say("two")
	if err := f.Wait(within(t), two.Position.Sequence); err != nil {
		t.Fatal(err)
	}
	if list, at := words(f); list != "one two" || !at.Equal(two.Position) {
		t.Errorf("%q at %v", list, at)
	}
	var started string
	var later []string
	stop := f.ListenFrom(func(s decide.State, at record.Position) {
		started = fmt.Sprint(strings.Join(s.(*journaltest.WordList).Words, " "), " at ", at.Sequence)
	}, func(e record.Entry, _ decide.State) {
		later = append(later, e.Record.Events[0].(*journaltest.WordAdded).Word)
	})
	three := say("three")
	if err := f.Wait(within(t), three.Position.Sequence); err != nil {
		t.Fatal(err)
	}
	stop()
	four := say("four")
	if err := f.Wait(within(t), four.Position.Sequence); err != nil {
		t.Fatal(err)
	}
	f.View(func(decide.State, record.Position) {
		if got := strings.Join(heard, " "); got != "0:0 1:0 2:1 3:2 4:3 5:4" {
			t.Errorf("the first listener heard %s", got)
		}
		if started != "one two at 3" || strings.Join(later, " ") != "three" {
			t.Errorf("the second started with %q and heard %q", started, later)
		}
	})
	if err := f.WaitTip(within(t)); err != nil {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := f.Wait(short, 99); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for what never comes: %v", err)
	}
	if err := ended(); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if err := f.Wait(within(t), 99); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting after the end: %v", err)
	}
}

func TestAFoldGoesOnFromASeed(t *testing.T) {
	c := journaltest.NewClient(t, "trading")
	say, _ := serve(t, c)
	seed := record.Seed{State: &journaltest.WordList{Words: []string{"saved"}}, Position: say("one").Position}
	two := say("two")
	f := follow.New(c, journaltest.Words{Name: "trading"}, 0, follow.FromSeed(seed))
	run(t, f)
	if err := f.Wait(within(t), two.Position.Sequence); err != nil {
		t.Fatal(err)
	}
	if list, _ := words(f); list != "saved two" {
		t.Errorf("%q", list)
	}
}

func TestAFoldStopsAtADivergedLog(t *testing.T) {
	c := journaltest.NewClient(t, "trading")
	say, stop := serve(t, c)
	at := say("one").Position
	stop()
	at.Hash[0]++
	f := follow.New(c, journaltest.Words{Name: "trading"}, 0, follow.FromSeed(record.Seed{State: new(journaltest.WordList), Position: at}))
	ended := run(t, f)
	err := f.Wait(within(t), at.Sequence+1)
	var diverged *record.DivergedError
	if !errors.As(err, &diverged) || !errors.As(f.Err(), &diverged) || !errors.As(ended(), &diverged) {
		t.Errorf("%v", err)
	}
	if err := f.WaitTip(within(t)); !errors.As(err, &diverged) {
		t.Errorf("%v", err)
	}
}

// TestAFoldThatHasEndedIsWaitedForNoLonger ends a fold that looks for the end of a log that does not exist. Nothing more comes, and
// whoever waits for it must learn that.
func TestAFoldThatHasEndedIsWaitedForNoLonger(t *testing.T) {
	f := follow.New(journaltest.NewClient(t, "trading"), journaltest.Words{Name: "onboarding"}, 0)
	ended := run(t, f)
	if err := f.WaitTip(within(t)); err == nil {
		t.Fatal("the log has an end")
	}
	err := ended()
	select {
	case <-f.CaughtUp():
	default:
		t.Fatalf("the fold has ended with %v, and whoever waits for it does not learn that", err)
	}
	if !errors.Is(f.Err(), context.Canceled) {
		t.Errorf("the error is %v", f.Err())
	}
}

// TestCaughtUp: the channel is closed once the fold has the records that the log had before, and no earlier.
func TestCaughtUp(t *testing.T) {
	c := journaltest.NewClient(t, "trading")
	say, _ := serve(t, c)
	say("one")
	last := say("two")
	f := follow.New(c, journaltest.Words{Name: "trading"}, 0)
	early := func(when string) {
		select {
		case <-f.CaughtUp():
			t.Errorf("caught up %s", when)
		default:
		}
	}
	early("before it runs")
	f.Listen(func(e record.Entry, _ decide.State) {
		if e.Position.Sequence <= last.Position.Sequence {
			early(fmt.Sprintf("at %d of %d", e.Position.Sequence, last.Position.Sequence))
		}
	})
	run(t, f)
	select {
	case <-f.CaughtUp():
	case <-within(t).Done():
		t.Fatal("it never catches up")
	}
	if list, at := words(f); list != "one two" {
		t.Errorf("caught up with %q at %v", list, at)
	}
}

// TestCaughtUpInAQuietLog: a log without records, and one with none after the fold's seed and no owner, keep nobody waiting.
func TestCaughtUpInAQuietLog(t *testing.T) {
	caughtUp := func(name string, f *follow.Fold) {
		run(t, f)
		select {
		case <-f.CaughtUp():
		case <-within(t).Done():
			t.Errorf("%s: it never catches up", name)
		}
	}
	empty := journaltest.NewClient(t, "trading")
	caughtUp("without records", follow.New(empty, journaltest.Words{Name: "trading"}, 0))
	c := journaltest.NewClient(t, "trading")
	say, stop := serve(t, c)
	last := say("one")
	stop()
	caughtUp("after the seed", follow.New(c, journaltest.Words{Name: "trading"}, 0,
		follow.FromSeed(record.Seed{State: &journaltest.WordList{Words: []string{"one"}}, Position: last.Position})))
}
