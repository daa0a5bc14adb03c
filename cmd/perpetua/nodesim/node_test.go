package nodesim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

// TestNodes: whole nodes keep what they promise to clients, whatever happens to them and to the network between them. Each
// acknowledged order is in the log once, each that was answered as never decided is not, the topic of orders shows each
// change once and in order over all interruptions, all nodes fold the same state, and all of them end when they are stopped.
func TestNodes(t *testing.T) {
	first, seeds := number(t, "PERPETUA_TEST_NODE_SEED", 1), number(t, "PERPETUA_TEST_NODE_SEEDS", 8)
	total := tally{}
	for seed := first; seed < first+seeds; seed++ {
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { total.add(episode(t, seed)) })
		}) {
			t.Fatalf("seed %d: repeat it with PERPETUA_TEST_NODE_SEED=%d PERPETUA_TEST_NODE_SEEDS=1", seed, seed)
		}
	}
	t.Logf("%d seeds: %+v", seeds, total)
	if total.Accepted == 0 || total.Never == 0 || total.Open == 0 || total.Terms < int(seeds) {
		t.Errorf("the episodes do not cover everything: %+v", total)
	}
}

func number(t *testing.T, name string, preset uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return preset
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tally counts what happened in the episodes.
type tally struct{ Accepted, Never, Open, Changes, Terms, Crashes, Drains, Silences int }

func (a *tally) add(b tally) {
	a.Accepted += b.Accepted
	a.Never += b.Never
	a.Open += b.Open
	a.Changes += b.Changes
	a.Terms += b.Terms
	a.Crashes += b.Crashes
	a.Drains += b.Drains
	a.Silences += b.Silences
}

// load is the time of an episode, of the bubble, in which clients send orders and things go wrong.
const load = 60 * time.Second

func episode(t *testing.T, seed uint64) (sum tally) {
	w := newWorld(t, seed)
	w.begin()
	b := newBook()
	ctx, stop := context.WithTimeout(t.Context(), load)
	defer stop()
	reading, stopReading := context.WithCancel(t.Context())
	defer stopReading()
	begin := w.rows.last[journals.Trading]
	var placing, following sync.WaitGroup
	for i := range uint64(3) {
		placing.Go(func() { w.newTrader(b, fmt.Sprint("rest", i), seed*10+i).run(ctx) })
	}
	for i := range uint64(2) {
		placing.Go(func() { w.newTrader(b, fmt.Sprint("socket", i), seed*10+5+i).enter(ctx) })
	}
	f := &follower{trader: w.newTrader(b, "follower", seed*10+9)}
	following.Go(func() { f.follow(reading, fmt.Sprint(journals.Trading, "/0@", begin.Sequence)) })

	sum = w.disturb(ctx)
	w.repair()
	placing.Wait()

	log := w.readLog()
	last := log[len(log)-1].Position
	w.awaitFolds(last)
	w.compareStates(log)
	w.eventually("the last change of an order on the topic", func() bool { return f.reached(lastChange(log)) })
	stopReading()
	following.Wait()
	w.checkOrders(b, log)
	f.check(log[begin.Sequence+1:])

	for _, m := range w.machines {
		m.drain()
	}
	w.zombies.Wait()
	sum.Accepted, sum.Never, sum.Open, sum.Changes = len(b.accepted), len(b.never), len(b.open), len(f.changes)
	for _, e := range log {
		if _, ok := e.Record.Events[0].(*record.TermStarted); ok {
			sum.Terms++
		}
	}
	return sum
}

// disturb makes things go wrong until the context ends.
func (w *world) disturb(ctx context.Context) (sum tally) {
	var healing sync.WaitGroup
	defer healing.Wait()
	for pause(ctx, time.Duration(500+w.random.IntN(8000))*time.Millisecond) {
		m := w.machines[w.random.IntN(len(w.machines))]
		away := time.Duration(w.random.IntN(20_000)) * time.Millisecond
		switch w.random.IntN(8) {
		case 0:
			if m.alive() != nil {
				sum.Drains++
				m.drain()
				w.restart(&healing, m, away)
			}
		case 1, 2:
			if m.alive() != nil {
				sum.Crashes++
				m.crash()
				w.restart(&healing, m, away)
			}
		case 3, 4:
			sum.Silences++
			w.silence(&healing, m.current(), kafka, away)
		case 5:
			sum.Silences++
			w.silence(&healing, m.current(), w.another(m).current(), away)
		case 6:
			sum.Silences++
			w.silence(&healing, m.current(), outside, away)
		case 7:
			cut := w.random.Uint64()
			w.network.reset(func(a, b string) bool { return rand.New(rand.NewPCG(cut, uint64(len(a)+len(b)))).IntN(2) == 0 })
		}
	}
	return sum
}

// another returns a machine other than m.
func (w *world) another(m *machine) *machine {
	i := slices.Index(w.machines, m)
	return w.machines[(i+1+w.random.IntN(len(w.machines)-1))%len(w.machines)]
}

// restart starts a machine after a time.
func (w *world) restart(healing *sync.WaitGroup, m *machine, after time.Duration) {
	healing.Go(func() {
		time.Sleep(after)
		if err := m.start(); err != nil {
			w.t.Errorf("%s: %v", m.id, err)
		}
	})
}

// silence silences two hosts for a time, in one direction or in both.
func (w *world) silence(healing *sync.WaitGroup, a, b string, d time.Duration) {
	both := w.random.IntN(3)
	if both != 0 {
		w.network.silence(a, b)
	}
	if both != 1 {
		w.network.silence(b, a)
	}
	healing.Go(func() {
		time.Sleep(d)
		w.network.heal(a, b)
	})
}

// repair ends all disturbances and starts the nodes that do not run.
func (w *world) repair() {
	w.t.Helper()
	w.network.healAll()
	for _, m := range w.machines {
		if err := m.start(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// eventually waits until something holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			w.t.Errorf("waited %v for %s", patience, what)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// readLog reads the trading journal from its beginning, with a client that no disturbance has met.
func (w *world) readLog() (log []record.Entry) {
	w.t.Helper()
	c := w.client(outside)
	defer c.Close()
	r := journal.NewReader(c, rules(journals.Trading), 0, record.Before)
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.ToTip(ctx, func(entries []record.Entry) error {
		log = append(log, entries...)
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return log
}

func rules(name string) decide.Rules {
	j, err := journals.All().Of(name)
	if err != nil {
		panic(err)
	}
	return j.Rules
}

// awaitFolds waits until all nodes have read the log up to a position.
func (w *world) awaitFolds(p record.Position) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, m := range w.machines {
		fold, err := m.alive().Fold(journals.Trading)
		if err == nil {
			err = fold.Wait(ctx, p.Sequence)
		}
		if err != nil {
			w.t.Fatalf("%s did not read record %d: %v", m.id, p.Sequence, err)
		}
	}
}

// compareStates folds the log anew and compares the states of all nodes with the result.
func (w *world) compareStates(log []record.Entry) {
	w.t.Helper()
	j, err := journals.All().Of(journals.Trading)
	if err != nil {
		w.t.Fatal(err)
	}
	state := j.Rules.NewState()
	states := make(map[int64][]byte) // a node may have read more records meanwhile: of funding, for example
	for _, e := range log {
		state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	}
	last := log[len(log)-1].Position.Sequence
	states[last] = j.Codec.Append(nil, state)
	for _, m := range w.machines {
		fold, err := m.alive().Fold(journals.Trading)
		if err != nil {
			w.t.Fatal(err)
		}
		fold.View(func(s decide.State, p record.Position) {
			if want, ok := states[p.Sequence]; ok && !bytes.Equal(j.Codec.Append(nil, s), want) {
				w.t.Errorf("%s folds another state at record %d", m.id, p.Sequence)
			}
		})
	}
}

// checkOrders compares what the clients were told with the log.
func (w *world) checkOrders(b *book, log []record.Entry) {
	w.t.Helper()
	records := make(map[string][]record.Entry) // those of commands with an idempotency key
	for _, e := range log {
		if key := e.Record.Command.Metadata.Key; key != "" {
			records[key] = append(records[key], e)
		}
	}
	for key, code := range b.accepted {
		if got := records[key]; len(got) != 1 || !slices.ContainsFunc(ordersOf(got[0]), func(o *order.Order) bool { return o.Code.String() == code }) {
			w.t.Errorf("order %s was acknowledged as %s; the log has it at %v", key, code, positions(got))
		}
	}
	for key := range b.never {
		if got := records[key]; len(got) != 0 {
			w.t.Errorf("order %s was answered as never decided; the log has it at %v", key, positions(got))
		}
	}
	for key, got := range records {
		if len(got) > 1 {
			w.t.Errorf("order %s is in the log more than once, at %v", key, positions(got))
		}
	}
}

func positions(entries []record.Entry) (all []record.Position) {
	for _, e := range entries {
		all = append(all, e.Position)
	}
	return all
}

// ordersOf returns the orders that a record changes, each as the record leaves it.
func ordersOf(e record.Entry) (all []*order.Order) {
	for _, event := range e.Record.Events {
		changed, ok := event.(trading.OrderEvent)
		if !ok {
			continue
		}
		o := changed.After()
		if i := slices.IndexFunc(all, func(p *order.Order) bool { return p.Code == o.Code }); i >= 0 {
			all[i] = o
		} else {
			all = append(all, o)
		}
	}
	return all
}

// lastChange returns the sequence of the last record that changes an order, or 0.
func lastChange(log []record.Entry) int64 {
	for _, e := range slices.Backward(log) {
		if len(ordersOf(e)) > 0 {
			return e.Position.Sequence
		}
	}
	return 0
}

// check compares the messages of the topic with the records.
func (f *follower) check(log []record.Entry) {
	f.w.t.Helper()
	if f.err != nil {
		f.w.t.Errorf("the topic of orders: %v", f.err)
	}
	rest := f.changes
	for _, e := range log {
		want := make(map[string]bool)
		for _, o := range ordersOf(e) {
			want[o.Code.String()] = true
		}
		for range len(want) {
			if len(rest) == 0 || rest[0].Sequence != e.Position.Sequence || !want[rest[0].Code] {
				f.w.t.Errorf("record %d changes %v; the topic has next %+v", e.Position.Sequence, want, rest[:min(3, len(rest))])
				return
			}
			delete(want, rest[0].Code)
			rest = rest[1:]
		}
	}
	if len(rest) > 0 {
		f.w.t.Errorf("the topic has %d messages more than the log", len(rest))
	}
}
