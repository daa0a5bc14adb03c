package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// tail is a journal.Tail and what came out of it.
type tail struct {
	*journal.Tail
	r    *rig
	seen []int64 // sequences
	next int64   // the offset after what it has looked at
}

func (r *rig) tail(c *journal.Client, from record.Position) *tail {
	r.t.Helper()
	x := &tail{Tail: journal.NewTail(c, r.rules, 0, from), r: r, next: -1}
	r.t.Cleanup(x.Close)
	return x
}

// read takes what comes next and checks that nothing is left out.
func (x *tail) read() {
	x.r.t.Helper()
	before := x.Position().Sequence
	entries, next, err := x.Next(x.r.context())
	if err != nil {
		x.r.t.Fatal(err)
	}
	x.next = next
	for i, e := range entries {
		if e.Position.Sequence != before+1+int64(i) || e.Record == nil || e.Record.Sequence != e.Position.Sequence || e.Position.Offset >= next {
			x.r.t.Fatalf("%v comes after %d", e.Position, before+int64(i))
		}
		x.seen = append(x.seen, e.Position.Sequence)
	}
}

// to reads until the record with the sequence has come.
func (x *tail) to(sequence int64) *tail {
	x.r.t.Helper()
	for x.Position().Sequence < sequence {
		x.read()
	}
	return x
}

// rest reads to the end of the log.
func (x *tail) rest() *tail {
	x.r.t.Helper()
	end, err := x.r.client.Tip(x.r.context(), "trading", 0)
	if err != nil {
		x.r.t.Fatal(err)
	}
	for x.next < end {
		x.read()
	}
	return x
}

// counted returns a metric of the rig's newest client.
func (r *rig) counted(name string) (n float64) {
	r.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.metrics)
	for _, f := range must(registry.Gather()) {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// many has n commands decided, many at a time.
func (x *running) many(n int) {
	x.t.Helper()
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	for w := range 100 {
		group.Go(func() {
			for i := w; i < n; i += 100 {
				if _, err := x.insist(command(&add{"a", 1})); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		x.t.Fatal(*err)
	}
}

func TestTailsAtTheTipShareOneReader(t *testing.T) {
	r := newFake(t)
	o := r.owner("n1").ready()
	a, b := r.tail(r.client, record.Before).rest(), r.tail(r.client, record.Before).rest()
	c := r.tail(r.client, a.Position()).rest() // which starts at the tip, and says so before anything comes
	o.many(1)
	for _, x := range []*tail{a, b, c} {
		x.to(2)
	}
	var fetched atomic.Int64
	r.fake.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		r.fake.KeepControl()
		fetched.Add(1)
		return nil, nil, false
	})
	const n = 60
	for i := range n {
		o.many(1)
		for _, x := range []*tail{a, b, c} {
			x.to(int64(3 + i))
		}
	}
	// The owner's own tail is the fourth.
	if got := fetched.Load(); got < n/2 || got >= 2*n {
		t.Errorf("%d fetches for %d records", got, n)
	}
	if n := r.counted("perpetua_journal_tails_behind_total"); n != 0 {
		t.Errorf("%v fell behind", n)
	}
}

func TestTailsBeginAnywhere(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	o.many(20)
	all := r.all()
	first := r.tail(r.client, record.Before).rest()
	o.many(5)
	first.to(26)
	for _, e := range append([]record.Entry{{Position: record.Before}}, all...) {
		x := r.tail(r.client, e.Position).to(26)
		if len(x.seen) != int(26-e.Position.Sequence) || !x.Position().Equal(first.Position()) {
			t.Errorf("from %v came %v", e.Position, x.seen)
		}
	}
	o.many(1)
	first.to(27)
}

func TestATailOnAnEmptyLogWaitsForItsGenesis(t *testing.T) {
	r := newRig(t)
	a, b := r.tail(r.client, record.Before).rest(), r.tail(r.client, record.Before).rest()
	o := r.owner("n1").ready()
	o.many(3)
	equal(t, "sequences", a.to(4).seen, []int64{0, 1, 2, 3, 4})
	equal(t, "sequences", b.to(4).seen, []int64{0, 1, 2, 3, 4})
}

func TestASlowTailReadsForItselfAndComesBack(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	fast, slow := r.tail(r.client, record.Before).rest(), r.tail(r.client, record.Before).rest()
	const n = 9000 // more than a feed holds
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.many(n)
	}()
	fast.to(n + 1) // though the other one does not read
	<-done
	if got := r.counted("perpetua_journal_tails_behind_total"); got > 1 {
		t.Logf("the fast one fell behind, too: %v", got)
	}
	before := r.counted("perpetua_journal_tails_behind_total")
	slow.to(n + 1).rest()
	if got := r.counted("perpetua_journal_tails_behind_total"); got != before+1 {
		t.Errorf("%v fell behind, before it was %v", got, before)
	}
	if !slow.Position().Equal(fast.Position()) || len(slow.seen) != len(fast.seen) {
		t.Errorf("the slow one is at %v after %d records, the fast one at %v after %d", slow.Position(), len(slow.seen), fast.Position(), len(fast.seen))
	}
	for range 3 {
		o.many(1)
		slow.to(fast.to(fast.Position().Sequence + 1).Position().Sequence)
	}
	if got := r.counted("perpetua_journal_tails_behind_total"); got != before+1 {
		t.Errorf("it did not come back: %v", got)
	}
}

func TestATailMeetsSkippedRecords(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	a, b := r.tail(r.client, record.Before).rest(), r.tail(r.client, record.Before).rest()
	o.do(command(&add{"a", 1}))
	r.produce([]byte("x"), []byte("{}"))
	for _, x := range []*tail{a, b} {
		if x.rest(); x.Position().Sequence != 2 {
			t.Errorf("it is at %v", x.Position())
		}
	}
	o.do(command(&add{"a", 1}))
	equal(t, "sequences", a.to(3).seen, []int64{0, 1, 2, 3})
	equal(t, "sequences", b.to(3).seen, []int64{0, 1, 2, 3})
}

func TestEveryTailHearsThatTheLogDiverged(t *testing.T) {
	for _, n := range []int{0, 3, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRig(t)
			all := r.written(4)
			quick, late := r.tail(r.client, record.Before).rest(), r.tail(r.client, all[2].Position)
			if _, err := late.Poll(r.context()); err != nil { // some of the rest may be left for later
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				_, err := quick.Poll(r.context())
				failed <- err
			}()
			var v [][]byte
			for i := range n {
				v = append(v, fmt.Appendf(nil, "another log %d", i))
			}
			r.recreate(v...)
			var diverged *record.DivergedError
			if err := <-failed; !errors.As(err, &diverged) || !diverged.Have.Equal(all[5].Position) {
				t.Errorf("%v", err)
			}
			var err error
			for err == nil {
				_, err = late.Poll(r.context())
			}
			if !errors.As(err, &diverged) || !diverged.Have.Equal(late.Position()) {
				t.Errorf("%v, at %v", err, late.Position())
			}
			for _, x := range []*tail{quick, late} {
				if _, err := x.Poll(r.context()); !errors.As(err, &diverged) {
					t.Errorf("and again: %v", err)
				}
			}
			if _, err := r.tail(r.client, all[5].Position).Poll(r.context()); !errors.As(err, &diverged) {
				t.Errorf("a new one: %v", err)
			}
		})
	}
}

func TestEveryTailHearsOfABrokenRecord(t *testing.T) {
	r := newRig(t)
	all := r.written(4)
	quick, late := r.tail(r.client, record.Before).rest(), r.tail(r.client, record.Before).rest()
	good := string(all[5].Value)
	next := strings.Replace(good, fmt.Sprintf(`"prev":"%v"`, all[4].Position.Hash), fmt.Sprintf(`"prev":"%v"`, all[5].Position.Hash), 1)
	r.produce([]byte(next)) // with the sequence of the record before it
	for _, x := range []*tail{quick, late} {
		var broken *record.BrokenRecordError
		if _, err := x.Poll(r.context()); !errors.As(err, &broken) || broken.Sequence != 5 || broken.Offset <= all[5].Position.Offset {
			t.Errorf("%v", err)
		}
		if _, err := x.Poll(r.context()); !errors.As(err, &broken) || !x.Position().Equal(all[5].Position) {
			t.Errorf("and again: %v, at %v", err, x.Position())
		}
	}
}

func TestATailOfAnotherLogEndsAlone(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	o.many(3)
	good := r.tail(r.client, record.Before).rest()
	for _, e := range r.all()[1:] {
		at := e.Position
		at.Hash[7]++
		var diverged *record.DivergedError
		if _, err := r.tail(r.client, at).Poll(r.context()); !errors.As(err, &diverged) || !diverged.Have.Equal(at) {
			t.Errorf("from %v: %v", at, err)
		}
	}
	o.many(1)
	good.to(5)
}

func TestTailsGoOnAfterABrokenConnection(t *testing.T) {
	r := newRig(t)
	r.written(4)
	g := newGate()
	c := r.newClient(nil, g)
	a, b := r.tail(c, record.Before).rest(), r.tail(c, record.Before).rest()
	o := r.owner("n2").ready()
	for range 5 {
		g.cut()
		o.many(10)
		g.cut()
		tip := a.to(a.Position().Sequence + 10).Position().Sequence
		b.to(tip)
	}
}

func TestTheLastTailEndsTheSharing(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	c := r.newClient(nil, nil)
	a, b := r.tail(c, record.Before).rest(), r.tail(c, record.Before).rest()
	o.many(3)
	a.to(4)
	a.Close()
	b.to(4)
	b.Close()
	o.many(2)
	equal(t, "sequences", a.to(6).seen, []int64{0, 1, 2, 3, 4, 5, 6}) // a closed tail goes on after its position
	ctx, cancel := context.WithCancel(context.Background())
	a.rest()
	waits := make(chan error, 1)
	go func() {
		_, err := a.Poll(ctx)
		waits <- err
	}()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	o.many(1)
	a.to(7)
	b.to(7)
}

// TestTailsInATempest has tails come, go, dawdle and lose their connections while the journal grows.
func TestTailsInATempest(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	g := newGate()
	c := r.newClient(nil, g)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const n = 20000
	var group sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	group.Go(func() {
		written := false
		defer func() {
			if !written { // nobody is to wait for the rest
				stop()
			}
		}()
		for range n / 2000 {
			o.many(2000)
			g.cut()
		}
		written = true
	})
	positions := make(chan record.Position, 8)
	for i := range 8 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		group.Go(func() {
			x := journal.NewTail(c, r.rules, 0, record.Before)
			defer func() { x.Close(); positions <- x.Position() }()
			for at := record.Before; at.Sequence < n+1; {
				entries, err := x.Poll(ctx)
				if err != nil {
					t.Errorf("tail %d at %v: %v", i, at, err)
					return
				}
				for _, e := range entries {
					if e.Position.Sequence != at.Sequence+1 || e.Record.Prev != at.Hash || e.Position.Offset <= at.Offset {
						t.Errorf("tail %d: %v comes after %v", i, e.Position, at)
						return
					}
					at = e.Position
				}
				switch random.IntN(40) {
				case 0:
					x.Close()
				case 1:
					x.Close()
					x = journal.NewTail(c, r.rules, 0, at)
				case 2: // for as long as it takes the journal to grow by some
					for tip, err := c.Tip(ctx, "trading", 0); err == nil && tip < min(at.Offset+9000, n); {
						tip, err = c.Tip(ctx, "trading", 0)
					}
				}
			}
		})
	}
	group.Wait()
	stop()
	close(positions)
	if t.Failed() {
		return
	}
	want := r.all()[n+1].Position
	for p := range positions {
		if !p.Equal(want) {
			t.Errorf("a tail ends at %v and not at %v", p, want)
		}
	}
}
