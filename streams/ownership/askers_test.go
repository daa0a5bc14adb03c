package ownership

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// road is the network between a listener and the owner. It is slow, and may stop carrying questions, answers, or both.
type road struct {
	rand               *rand.Rand
	questions, answers atomic.Bool // lost from now on
}

func (r *road) travel(lost *atomic.Bool, took time.Duration) bool {
	time.Sleep(took)
	return !lost.Load()
}

// ask carries a question to the askers of an owner, and their answer back. The owner also answers a question whose asker has
// given up.
func (r *road) ask(a *askers) func(context.Context, Question) (Term, error) {
	return func(ctx context.Context, q Question) (Term, error) {
		there, back := time.Duration(r.rand.Int64N(int64(askWithin))), time.Duration(r.rand.Int64N(int64(askWithin/4)))
		arrived := make(chan Term, 1)
		go func() {
			if !r.travel(&r.questions, there) {
				return
			}
			if t := (Term{Stamp: a.answer(q)}); r.travel(&r.answers, back) {
				arrived <- t
			}
		}()
		select {
		case t := <-arrived:
			return t, nil
		case <-ctx.Done():
			return Term{}, ctx.Err()
		}
	}
}

// TestNoEngineRemovesTheHolderOfALease: wherever the network breaks, the owner's lease is out before the engine that listens
// may remove it.
func TestNoEngineRemovesTheHolderOfALease(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			trading := submit.Shard{Journal: "trading"}
			random := rand.New(rand.NewPCG(seed, 0))
			r, a := &road{rand: random}, newAskers(monotonic())
			l := new(owner).listener()
			l.question = Question{Journal: "trading", Engine: "n2"}
			l.ask = r.ask(a)
			removed := false
			l.remove = func(reason) bool {
				if removed = true; a.hold([]submit.Shard{trading}) {
					t.Errorf("seed %d: the owner is removed and holds its lease", seed)
				}
				return true
			}
			breaks, which := time.Duration(random.Int64N(int64(5*time.Second))), seed%3
			time.AfterFunc(breaks, func() {
				r.questions.Store(which != 1)
				r.answers.Store(which != 0)
			})
			if l.run(ctx); !removed && l.answered {
				t.Errorf("seed %d: the owner is not removed", seed)
			}
			time.Sleep(time.Second) // what is under way arrives
		})
	}
}

// TestAskers has engines ask an owner, and looks when its lease is out.
func TestAskers(t *testing.T) {
	trading, out := []submit.Shard{{Journal: "trading"}}, silentAfter-askMargin
	ask := func(a *askers, engine string, heard int64) int64 {
		return a.answer(Question{Journal: "trading", Engine: engine, LastAnswer: heard})
	}
	in := func(engines ...string) (ms []member) {
		for _, e := range engines {
			ms = append(ms, membership(e, "of "+e))
		}
		return ms
	}
	for name, c := range map[string]struct {
		run   func(a *askers)
		holds bool
	}{
		"nobody asks":                {func(*askers) { time.Sleep(time.Hour) }, true},
		"a question of no engine":    {func(a *askers) { ask(a, "", 0); time.Sleep(time.Hour) }, true},
		"the first answer":           {func(a *askers) { ask(a, "n2", 0); time.Sleep(out - 1) }, true},
		"a first answer of long ago": {func(a *askers) { ask(a, "n2", 0); time.Sleep(out) }, false},
		"no answer arrives": {func(a *askers) {
			ask(a, "n2", 0)
			time.Sleep(out - 1)
			ask(a, "n2", 0)
			time.Sleep(time.Nanosecond)
		}, false},
		"an answer has arrived":       {func(a *askers) { s := ask(a, "n2", 0); time.Sleep(out - 1); ask(a, "n2", s) }, true},
		"it counts from when it left": {func(a *askers) { s := ask(a, "n2", 0); time.Sleep(out); ask(a, "n2", s) }, false},
		"one of two hears nothing":    {func(a *askers) { ask(a, "n2", 0); time.Sleep(out); ask(a, "n3", 0) }, false},
		"a partition that is not owned": {func(a *askers) {
			a.answer(Question{Journal: "identity", Engine: "n2"})
			time.Sleep(out)
		}, true},
		"a stamp of another process": {func(a *askers) {
			s := ask(newAskers(monotonic()), "n2", 0)
			ask(a, "n2", 0)
			time.Sleep(out)
			ask(a, "n2", s)
		}, false},
		"a stamp of the future": {func(a *askers) {
			s := ask(a, "n2", 0)
			time.Sleep(out)
			ask(a, "n2", s+int64(out)+1)
		}, false},
		"the term has ended":         {func(a *askers) { ask(a, "n2", 0); time.Sleep(out); a.forget(trading[0]) }, true},
		"a member stays":             {func(a *askers) { ask(a, "n2", 0); a.keep(in("n2")); time.Sleep(out); a.keep(in("n2")) }, false},
		"a member has left":          {func(a *askers) { ask(a, "n2", 0); a.keep(in("n2")); time.Sleep(out); a.keep(in("n3")) }, true},
		"one that has not joined":    {func(a *askers) { ask(a, "n2", 0); time.Sleep(out); a.keep(nil) }, false},
		"one that has not and stops": {func(a *askers) { ask(a, "n2", 0); time.Sleep(session); a.keep(nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAskers(monotonic())
				if c.run(a); a.hold(trading) != c.holds {
					t.Errorf("holds is %v", !c.holds)
				}
			})
		})
	}
}
