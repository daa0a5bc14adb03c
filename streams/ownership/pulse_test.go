package ownership

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// standbyIn returns a node that has not joined, and watches.
func standbyIn(t *testing.T, c cluster, nodes *town) *Node {
	t.Helper()
	n, err := New(Config{Client: c.client(t), NodeID: "standby", URL: "http://standby", Build: "test", Neighbors: nodes,
		Rules: []decide.Rules{journaltest.Words{Name: "trading"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// watchIn has a node watch until the test ends.
func watchIn(t *testing.T, n *Node) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); n.watch(ctx) }()
	t.Cleanup(func() { stop(); <-done })
}

// TestASilentOwnerIsRemovedFromTheGroup: its port is open and its session goes on, but its term does not answer, as with a
// process that was stopped. An owner that answers stays, whatever it says.
func TestASilentOwnerIsRemovedFromTheGroup(t *testing.T) {
	for name, alive := range map[string]func(context.Context) (Term, error){
		"serves":            func(context.Context) (Term, error) { return Term{Serving: true}, nil },
		"folds":             func(context.Context) (Term, error) { return Term{}, nil },
		"is an older build": func(context.Context) (Term, error) { return Term{}, ErrNoSuchQuestion },
	} {
		t.Run(name, func(t *testing.T) {
			c, nodes := newCluster(t), newTown()
			nodes.move("http://owner", alive)
			n := standbyIn(t, c, nodes)
			join(t, c.client(t), n.find, "owner", "http://owner")
			members, err := n.find.members(t.Context())
			if err != nil || len(members) != 1 {
				t.Fatal(members, err)
			}
			watchIn(t, n)
			member := func() bool {
				now, err := n.find.members(t.Context())
				return err != nil || len(now) == 1 && now[0].id == members[0].id
			}
			enough := int(2*silentAfter/pingEvery) + 1
			until(t, "the owner was asked for longer than it may be silent", func() bool { return nodes.times("http://owner") > enough })
			if !member() {
				t.Fatal("an owner that answers was removed")
			}
			nodes.move("http://owner", func(ctx context.Context) (Term, error) {
				<-ctx.Done()
				return Term{}, ctx.Err()
			})
			until(t, "the silent owner is removed", func() bool { return !member() })
			until(t, "the removal is counted", func() bool { return testutil.ToFloat64(n.removals.WithLabelValues("silent")) == 1 })
			again := membership("owner", "another membership")
			if n.mayRemove(again, time.Now()) || !n.mayRemove(again, time.Now().Add(removeEvery+time.Second)) {
				t.Error("a removal does not keep the node in the group for removeEvery")
			}
		})
	}
}

func membership(node, id string) member { return member{instance: &node, id: id} }

// TestANodeIsRemovedOnceInAWhile: whatever became of a removal, the next membership of the node is left alone for a while. An
// attempt that failed may be repeated soon: the coordinator may just be away, with the same broker that the owner waits for.
func TestANodeIsRemovedOnceInAWhile(t *testing.T) {
	n := &Node{removed: make(map[string]removal)}
	start := time.Now()
	first, second, another := membership("owner", "1"), membership("owner", "2"), membership("another", "3")
	for _, c := range []struct {
		name string
		m    member
		at   time.Duration
		may  bool
	}{
		{"the first removal", first, 0, true},
		{"by a second listener", first, 0, false},
		{"of another node", another, 0, true},
		{"again, since it failed", first, retryRemove, true},
		{"of its next membership", second, 2 * retryRemove, false},
		{"of its next membership, much later", second, retryRemove + removeEvery, true},
	} {
		if may := n.mayRemove(c.m, start.Add(c.at)); may != c.may {
			t.Errorf("%s: %v", c.name, may)
		}
	}
}

// owner is a node that a listener knows only through a network. It owns trading and identity.
type owner struct {
	answer  func(context.Context) error
	busy    string // the journal that gets a record every 100 ms
	reasons []reason
	asked   int
	cutOff  func() bool // nil for never
}

// listener returns a listener to the owner's term of trading that has heard nothing yet.
func (o *owner) listener() *listener {
	start, trading := time.Now(), submit.Shard{Journal: "trading"}
	return &listener{
		ask: func(ctx context.Context, _ Question) (Term, error) { o.asked++; return Term{}, o.answer(ctx) },
		observed: func(p submit.Shard) int64 {
			if p.Journal != o.busy {
				return 5
			}
			return int64(time.Since(start) / (100 * time.Millisecond))
		},
		owned:  func() []submit.Shard { return []submit.Shard{trading, {Journal: "identity"}} },
		remove: func(why reason) bool { o.reasons = append(o.reasons, why); return true },
		cutOff: func() bool { return o.cutOff != nil && o.cutOff() },
		shard:  trading,
		node:   silence{observed: -1, last: start},
		term:   silence{observed: -1, last: start},
	}
}

func answers(context.Context) error { return nil }

func lost(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func refusing(context.Context) error { return errors.New("connection refused") }

func stuck(context.Context) error { return ErrSilent }

// TestWhatCountsAsSilence has a listener hear an owner answer for a second, if at all, and then something else for a minute.
func TestWhatCountsAsSilence(t *testing.T) {
	older := func(context.Context) error { return ErrNoSuchQuestion }
	for name, c := range map[string]struct {
		first, then func(context.Context) error
		busy        string
		reason      reason // of the removal; "" for none
	}{
		"it answers":                      {first: answers, then: answers},
		"it stops":                        {first: answers, then: lost, reason: silent},
		"it refuses connections":          {first: answers, then: refusing, reason: silent},
		"it was never reached":            {first: lost, then: lost},
		"it never accepted a connection":  {first: refusing, then: refusing},
		"its goroutine hangs":             {first: answers, then: stuck, reason: hung},
		"its goroutine never answered":    {first: stuck, then: stuck},
		"the network fails, records come": {first: answers, then: lost, busy: "trading"},
		"records come in another journal": {first: answers, then: refusing, busy: "identity"},
		"it hangs, others of it do not":   {first: answers, then: stuck, busy: "identity", reason: hung},
		"the answers fail, records come":  {first: answers, then: stuck, busy: "trading"},
		"it is an older build":            {first: answers, then: older},
		"an older build stops":            {first: older, then: lost, reason: silent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				changed := time.Now().Add(time.Second)
				o := &owner{busy: c.busy}
				o.answer = func(ctx context.Context) error {
					if time.Now().Before(changed) {
						return c.first(ctx)
					}
					return c.then(ctx)
				}
				o.listener().run(ctx)
				took := time.Since(changed)
				switch {
				case c.reason == "" && len(o.reasons) > 0:
					t.Errorf("it was removed: %q", o.reasons)
				case c.reason == "":
				case len(o.reasons) != 1 || o.reasons[0] != c.reason:
					t.Errorf("it was removed for %q", o.reasons)
				case took < silentAfter-pingEvery || took > silentAfter+pingEvery:
					t.Errorf("it was removed after %v", took)
				}
			})
		})
	}
}

// TestANodeThatWasCutOffRemovesNobody: for 20 s, a standby reaches neither the owner nor a broker. When it reaches both again, the
// owner answers, and stays. When it reaches only the brokers again, the owner is removed, after its silence since then.
func TestANodeThatWasCutOffRemovesNobody(t *testing.T) {
	for name, c := range map[string]struct {
		then   func(context.Context) error
		reason reason
	}{
		"both are back":         {answers, ""},
		"only the brokers are":  {lost, silent},
		"its goroutine is hung": {stuck, hung},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				start := time.Now()
				cut, back := start.Add(time.Second), start.Add(21*time.Second)
				o := &owner{cutOff: func() bool { return time.Now().After(cut.Add(cutOffAfter)) && time.Now().Before(back) }}
				o.answer = func(ctx context.Context) error {
					switch now := time.Now(); {
					case now.Before(cut):
						return nil
					case now.Before(back):
						return lost(ctx)
					}
					return c.then(ctx)
				}
				o.listener().run(ctx)
				took := time.Since(back)
				switch {
				case c.reason == "":
					if len(o.reasons) > 0 {
						t.Errorf("it was removed: %q", o.reasons)
					}
				case len(o.reasons) != 1 || o.reasons[0] != c.reason || took < silentAfter-2*pingEvery || took > silentAfter+2*pingEvery:
					t.Errorf("it was removed for %q after %v", o.reasons, took)
				}
			})
		})
	}
}

// TestFewFailuresAreNoSilence: an owner is removed only after three questions in a row, and for its goroutine only after three
// answers that the goroutine is silent.
func TestFewFailuresAreNoSilence(t *testing.T) {
	for name, c := range map[string]struct {
		busy   string
		answer func(ctx context.Context, asked int) error
	}{
		"two slow answers": {"", func(ctx context.Context, asked int) error {
			if asked%3 == 1 {
				return nil
			}
			return lost(ctx)
		}},
		"a slow network and one silent goroutine": {"identity", func(ctx context.Context, asked int) error {
			switch asked % 10 {
			case 1:
				return nil
			case 0:
				return ErrSilent
			}
			return lost(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				o := &owner{busy: c.busy}
				o.answer = func(ctx context.Context) error { return c.answer(ctx, o.asked) }
				if o.listener().run(ctx); len(o.reasons) > 0 {
					t.Errorf("it was removed: %q", o.reasons)
				}
			})
		})
	}
}

// TestARebalanceDoesNotEndTheListening: the group does not say then what its members are assigned.
func TestARebalanceDoesNotEndTheListening(t *testing.T) {
	nodes := newTown()
	n := standbyIn(t, newCluster(t), nodes)
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	defer done.Wait()
	defer stop()
	ps := newPulses(n, &done)
	m := membership("owner", "1")
	trading := map[string][]int32{n.cfg.Client.Topic("trading"): {0}}
	key := pulseKey{"1", submit.Shard{Journal: "trading"}}
	for _, c := range []struct {
		name    string
		topics  map[string][]int32
		listens bool
	}{
		{"assigned", trading, true},
		{"in a rebalance", nil, true},
		{"and still", nil, true},
		{"assigned nothing", map[string][]int32{}, false},
		{"in a rebalance without a partition", nil, false},
		{"assigned again", trading, true},
	} {
		m.topics = c.topics
		ps.follow(ctx, []member{m})
		if listens := ps.running[key] != nil; listens != c.listens {
			t.Errorf("%s: listens is %v", c.name, listens)
		}
	}
	if ps.follow(ctx, nil); len(ps.running) > 0 || len(ps.owned) > 0 {
		t.Error("a membership that has ended is listened to")
	}
}

func TestSilence(t *testing.T) {
	start := time.Now()
	type tick struct {
		at       time.Duration
		observed int64
	}
	for name, c := range map[string]struct {
		ticks []tick
		quiet time.Duration
	}{
		"quiet":                         {[]tick{{pingEvery, 5}, {2 * pingEvery, 5}, {3 * pingEvery, 5}}, 2 * pingEvery},
		"a new record":                  {[]tick{{pingEvery, 5}, {2 * pingEvery, 5}, {3 * pingEvery, 6}}, 0},
		"this node did not run":         {[]tick{{pingEvery, 5}, {time.Hour, 5}}, 2 * pingEvery},
		"and before it had heard a lot": {[]tick{{time.Hour, 5}, {time.Hour + pingEvery, 5}}, pingEvery},
	} {
		s := silence{observed: -1, last: start}
		var quiet time.Duration
		for _, x := range c.ticks {
			s.tick(start.Add(x.at), x.observed)
			quiet = s.quiet
		}
		if quiet != c.quiet {
			t.Errorf("%s: quiet for %v instead of %v", name, quiet, c.quiet)
		}
	}
}
