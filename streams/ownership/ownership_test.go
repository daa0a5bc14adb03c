package ownership_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

type node struct {
	*ownership.Node
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, c *journal.Client, id string) *node {
	t.Helper()
	return startNode(t, ownership.Config{Client: c, NodeID: id, URL: "http://" + id + ":8080", Build: "test",
		Rules: []decide.Rules{journaltest.Words{Name: "trading"}, journaltest.Words{Name: "identity"}}})
}

func startNode(t *testing.T, cfg ownership.Config) *node {
	t.Helper()
	n, err := ownership.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	x := &node{n, stop, make(chan error, 1)}
	go func() { x.done <- n.Run(ctx) }()
	t.Cleanup(func() { x.end(); n.Close() })
	return x
}

func (n *node) end() error {
	n.stop()
	err := <-n.done
	n.done <- err
	return err
}

func (n *node) serves(name string) bool { _, ok := n.Serving(name, 0); return ok }

// say has a word said in a journal that the node owns.
func (n *node) say(name string) (submit.Result, error) {
	c := journaltest.Say("hello")
	return journaltest.Insist(func() (submit.Result, error) { return n.Submit(context.Background(), name, c) })
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 18_000 {
		if ok() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func TestOneNodeOwnsEveryJournal(t *testing.T) {
	c := journaltest.NewClient(t, "trading", "identity")
	n := start(t, c, "n1")
	eventually(t, "the node serves both", func() bool { return n.serves("trading") && n.serves("identity") })
	for _, name := range []string{"trading", "identity"} {
		result, err := n.say(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := name + "/0@2"; result.Position.String() != want {
			t.Errorf("at %v and not %s", result.Position, want)
		}
	}
	if err := n.end(); err != nil {
		t.Fatal(err)
	}
	_, err := n.Submit(context.Background(), "trading", journaltest.Say("too late"))
	var refused *submit.NotAcceptedError
	if !errors.As(err, &refused) {
		t.Errorf("after its end a node says %v", err)
	}
}

func TestTwoNodesShareAndFindEachOther(t *testing.T) {
	c := journaltest.NewClient(t, "trading", "identity")
	n1 := start(t, c, "n1")
	eventually(t, "the first node serves both", func() bool { return n1.serves("trading") && n1.serves("identity") })
	n2 := start(t, c, "n2")
	eventually(t, "each serves one", func() bool {
		return n1.serves("trading") != n1.serves("identity") && n2.serves("trading") != n2.serves("identity") &&
			n1.serves("trading") != n2.serves("trading")
	})
	name := "trading"
	if n1.serves("trading") {
		name = "identity"
	}
	// n2 owns name, and n1 knows.
	eventually(t, "the first node names the second", func() bool {
		_, err := n1.Submit(context.Background(), name, journaltest.Say("hello"))
		var elsewhere *submit.ElsewhereError
		return errors.As(err, &elsewhere) && elsewhere.URL == "http://n2:8080"
	})
	if _, err := n2.say(name); err != nil {
		t.Error(err)
	}
	if err := n2.end(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first node has both back", func() bool { return n1.serves("trading") && n1.serves("identity") })
}

func TestAFinderSendsEverythingElsewhere(t *testing.T) {
	c := journaltest.NewClient(t, "trading", "identity")
	f, err := ownership.NewFinder(c, nil, "", "trading", "identity")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	eventually(t, "the group answers", func() bool { // brokers just begun first make the topic that holds the groups
		owner, err := f.Owner(context.Background(), "trading", 0)
		if owner != "" {
			t.Fatalf("before anybody joined the owner is %q", owner)
		}
		return err == nil
	})
	var busy *submit.NotAcceptedError
	if _, err := f.Submit(context.Background(), "trading", journaltest.Say("hello")); !errors.As(err, &busy) {
		t.Errorf("before anybody joined a command gets %v", err)
	}
	n := start(t, c, "n1")
	eventually(t, "the node serves", func() bool { return n.serves("trading") })
	eventually(t, "the finder names it", func() bool {
		_, err := f.Submit(context.Background(), "trading", journaltest.Say("hello"))
		var elsewhere *submit.ElsewhereError
		return errors.As(err, &elsewhere) && elsewhere.URL == "http://n1:8080"
	})
	if _, err := f.Submit(context.Background(), "onboarding", journaltest.Say("hello")); err == nil || errors.As(err, &busy) {
		t.Errorf("a command for a journal that is not there gets %v", err)
	}
}

func TestARestartedNodeComesBack(t *testing.T) {
	c := journaltest.NewClient(t, "trading", "identity")
	n := start(t, c, "n1")
	var before int64
	eventually(t, "the node serves", func() (ok bool) { before, ok = n.Serving("trading", 0); return ok })
	if err := n.end(); err != nil {
		t.Fatal(err)
	}
	n = start(t, c, "n1")
	eventually(t, "the node serves again", func() bool { return n.serves("trading") })
	if term, _ := n.Serving("trading", 0); term <= before { // the next, unless a busy machine missed its heartbeats
		t.Errorf("term %d after term %d", term, before)
	}
}

func TestAForeignTermMakesANodeLeaveAndJoinAgain(t *testing.T) {
	c := journaltest.NewClient(t, "trading", "identity")
	n := start(t, c, "n1")
	eventually(t, "the node serves", func() bool { return n.serves("trading") })
	intruder, err := journal.NewOwner(journal.OwnerConfig{Client: c, Rules: journaltest.Words{Name: "trading"}, Node: "intruder"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- intruder.Run(ctx) }()
	var intruded int64
	eventually(t, "the intruder serves", func() (ok bool) { intruded, ok = intruder.Serving(); return ok })
	eventually(t, "the node serves again, after the intruder's term", func() bool {
		term, ok := n.Serving("trading", 0)
		return ok && term > intruded
	})
	stop()
	var foreign *term.ForeignTermError
	if err := <-done; err != nil && !errors.As(err, &foreign) {
		t.Error(err)
	}
}
