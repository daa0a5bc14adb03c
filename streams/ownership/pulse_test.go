package ownership

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
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
			back, checked := make(chan struct{}), make(chan struct{}, 1)
			nodes.move("http://owner", func(ctx context.Context) (Term, error) {
				select {
				case <-back:
					select {
					case checked <- struct{}{}:
					default:
					}
					return Term{}, nil
				case <-ctx.Done():
					return Term{}, ctx.Err()
				}
			})
			until(t, "the silent owner is removed", func() bool { return !member() })
			until(t, "the removal is counted", func() bool { return testutil.ToFloat64(n.removals.WithLabelValues("silent")) == 1 })
			close(back) // it was only slow
			<-checked
			until(t, "the owner may not be removed again at once", func() bool { return !n.mayRemove("owner", time.Now().Add(removeEvery/2)) })
			if !n.mayRemove("owner", time.Now().Add(removeEvery+time.Second)) || !n.mayRemove("another", time.Now()) {
				t.Error("the owner, or another one, may never be removed")
			}
		})
	}
}

// TestANodeThatStaysSilentMayBeRemovedAgain: its removal was right, so that the next one need not wait.
func TestANodeThatStaysSilentMayBeRemovedAgain(t *testing.T) {
	nodes := newTown()
	n := standbyIn(t, newCluster(t), nodes)
	id := "owner"
	m, p := member{instance: &id, url: "http://owner"}, place{"trading", 0}
	for name, c := range map[string]struct {
		answer func(context.Context) (Term, error)
		again  bool
	}{
		"silent":         {func(context.Context) (Term, error) { return Term{}, context.DeadlineExceeded }, true},
		"slow":           {func(context.Context) (Term, error) { return Term{}, nil }, false},
		"an older build": {func(context.Context) (Term, error) { return Term{}, ErrNoSuchQuestion }, false},
	} {
		nodes.move(m.url, c.answer)
		n.noteRemoved(id, time.Now(), true)
		n.checkRemoval(t.Context(), m, p)
		if may := n.mayRemove(id, time.Now()); may != c.again {
			t.Errorf("a node that is %s may be removed again at once: %v", name, may)
		}
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	nodes.move(m.url, func(context.Context) (Term, error) { return Term{}, context.Canceled })
	n.noteRemoved(id, time.Now(), true)
	if n.checkRemoval(ended, m, p); n.mayRemove(id, time.Now()) {
		t.Error("at the end of this node nothing is known of the other")
	}
}

// TestARemovalThatFailsIsTriedAgainSoon: the coordinator may just be away, with the same broker that the owner waits for.
func TestARemovalThatFailsIsTriedAgainSoon(t *testing.T) {
	n := standbyIn(t, newCluster(t), newTown())
	now := time.Now()
	n.noteRemoved("owner", now, false)
	if n.mayRemove("owner", now) || !n.mayRemove("owner", now.Add(2*retryRemove)) {
		t.Error("a removal that failed counts as one")
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
			quiet = s.tick(start.Add(x.at), x.observed)
		}
		if quiet != c.quiet {
			t.Errorf("%s: quiet for %v instead of %v", name, quiet, c.quiet)
		}
	}
}
