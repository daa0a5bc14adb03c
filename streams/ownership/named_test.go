package ownership

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

func pause(t *testing.T) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// town is the nodes that can be asked for their terms, by URL.
type town struct {
	mu    sync.Mutex
	nodes map[string]func(context.Context) (Term, error)
	asked map[string]int
}

func newTown() *town {
	return &town{nodes: make(map[string]func(context.Context) (Term, error)), asked: make(map[string]int)}
}

// move has a node answer in a way.
func (o *town) move(url string, answer func(context.Context) (Term, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes[url] = answer
}

func (o *town) says(url string, t Term) {
	o.move(url, func(context.Context) (Term, error) { return t, nil })
}

func (o *town) times(url string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[url]
}

// Term implements Neighbors.
func (o *town) Term(ctx context.Context, url string, _ Question) (Term, error) {
	o.mu.Lock()
	answer := o.nodes[url]
	o.asked[url]++
	o.mu.Unlock()
	if answer == nil {
		return Term{}, errors.New("connection refused")
	}
	return answer(ctx)
}

// taken is a taken record as a reader returns it.
func taken(term int64, url string) record.Entry {
	return record.Entry{Journal: scalar.ID{7}, Position: record.Position{Sequence: term, Hash: record.Hash{byte(term)}},
		Record: &record.Record{Events: []decide.Event{&record.TermStarted{Term: term, URL: url, Node: url}}}}
}

// serving is what the node says that has appended that record to a log.
func serving(log string, e record.Entry) Term {
	return Term{Log: log, Serving: true, Standing: term.Standing{Term: e.Record.Events[0].(*record.TermStarted).Term,
		Taken: e.Position.Hash, Journal: e.Journal}}
}

func newFinder(t *testing.T, client *journal.Client, neighbors Neighbors) *Finder {
	t.Helper()
	f, err := NewFinder(client, neighbors, "http://self", "trading")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// join makes a member of the group that does nothing, and waits until it owns the journal.
func join(t *testing.T, client *journal.Client, f *Finder, id, url string) {
	t.Helper()
	kc, err := client.KafkaFor(journal.ForGroup, kgo.ClientID(url), kgo.ConsumerGroup(f.group.name), kgo.InstanceID(id),
		kgo.ConsumeTopics(client.Topic("trading")), kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(session), kgo.HeartbeatInterval(heartbeat))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kc.Close)
	until(t, "the member owns the journal", func() bool {
		at, err := f.assignee(t.Context(), submit.Shard{Journal: "trading"})
		return err == nil && at == url
	})
}

// TestTheLogNamesTheOwnerWhileNoCoordinatorAnswers: a request finds the owner that lives although nobody can ask the group,
// also on a node that has read the name in a snapshot only, as right after its start.
func TestTheLogNamesTheOwnerWhileNoCoordinatorAnswers(t *testing.T) {
	c := newCluster(t)
	w := newWires(t)
	client := c.client(t, kgo.Dialer(w.dial))
	log, err := client.LogID(t.Context(), "trading")
	if err != nil {
		t.Fatal(err)
	}
	w.kill(c.coordinator())
	latest := taken(3, "http://a")
	for name, learn := range map[string]func(*Finder){
		"record":   func(f *Finder) { f.Read("trading", 0, latest) },
		"snapshot": func(f *Finder) { f.Begin("trading", 0, &record.Seed{Term: 3, URL: "http://a"}) },
	} {
		nodes := newTown()
		nodes.says("http://a", serving(log, latest))
		f := newFinder(t, client, nodes)
		learn(f)
		for range 3 {
			until(t, name+": the command is sent to the owner", func() bool { // a slow machine may miss the time for an answer
				_, err := f.Submit(t.Context(), "trading", journaltest.Say("hello"))
				var elsewhere *submit.ElsewhereError
				return errors.As(err, &elsewhere) && elsewhere.URL == "http://a"
			})
		}
		if n := nodes.times("http://a"); n != 1 {
			t.Errorf("%s: the owner was asked %d times whether it is", name, n)
		}
	}
}

// TestANodeDoesNotAskItself has the log name the address of the node that asks, where another process owned the journal before.
func TestANodeDoesNotAskItself(t *testing.T) {
	nodes := newTown()
	f := newFinder(t, newCluster(t).client(t), nodes)
	f.Read("trading", 0, taken(3, "http://self"))
	for range 3 {
		var refused *submit.NotAcceptedError
		if _, err := f.Submit(t.Context(), "trading", journaltest.Say("hello")); !errors.As(err, &refused) || !refused.Unowned {
			t.Fatalf("the command is sent to %v", err)
		}
		until(t, "the group is asked for the owner", func() bool { // a slow machine may miss the time for an answer
			url, err := f.Owner(t.Context(), "trading", 0)
			if url != "" {
				t.Fatalf("the owner is %q", url)
			}
			return err == nil
		})
	}
	if n := nodes.times("http://self"); n != 0 {
		t.Errorf("the node asked itself %d times", n)
	}
}

// TestQuestionsToANodeThatCannotHelpBecomeRare has requests to a node fail for a minute: questions only, or also those of a
// client that fails every 10 ms. The node is asked soon at first, and later once a second.
func TestQuestionsToANodeThatCannotHelpBecomeRare(t *testing.T) {
	for name, client := range map[string]time.Duration{"questions only": time.Hour, "a client fails too": 10 * time.Millisecond} {
		var n named
		start := time.Unix(1e9, 0)
		asked, last := 0, time.Duration(0)
		for at := time.Duration(0); at < time.Minute; at += time.Millisecond {
			now := start.Add(at)
			asks := n.worthAsking(now)
			if asks || at%client == 0 {
				n.doubt(now)
			}
			if !asks {
				continue
			}
			// It would have learned with little delay that the node helps again.
			if most := min(max(last/pauseShare, retryPause), longestPause) + 10*time.Millisecond; at-last > most {
				t.Errorf("%s: the node was asked after %v, and then after %v", name, last, at)
			}
			asked, last = asked+1, at
		}
		if asked < 60 || asked > 100 || time.Minute-last > longestPause+10*time.Millisecond {
			t.Errorf("%s: the node was asked %d times, last after %v", name, asked, last)
		}
	}
}

// TestADeadCoordinatorIsLookedUpAgain: the group is found at another broker, where there is one.
func TestADeadCoordinatorIsLookedUpAgain(t *testing.T) {
	c := newCluster(t)
	w := newWires(t)
	f := newFinder(t, c.client(t, kgo.Dialer(w.dial)), nil)
	join(t, c.client(t), f, "n1", "http://n1")
	w.kill(c.coordinator())
	c.moveCoordinator()
	until(t, "the group is found again", func() bool {
		engines, err := f.Engines(t.Context())
		return err == nil && len(engines) == 1 && engines[0] == (Engine{ID: "n1", URL: "http://n1"})
	})
}

// TestANameInTheLogIsNotEnough: a log that was copied names the owner of the other log. Nobody is sent there.
func TestANameInTheLogIsNotEnough(t *testing.T) {
	c := newCluster(t)
	client := c.client(t)
	log, err := client.LogID(t.Context(), "trading")
	if err != nil {
		t.Fatal(err)
	}
	latest := taken(3, "http://a")
	other, elder, unknown := latest, taken(2, "http://a"), serving("", latest)
	other.Position.Hash = record.Hash{9}
	founded := serving(log, latest)
	founded.Standing.Journal = scalar.ID{8}
	for name, says := range map[string]func(context.Context) (Term, error){
		"another log":                 func(context.Context) (Term, error) { return serving("elsewhere", latest), nil },
		"another record for the term": func(context.Context) (Term, error) { return serving(log, other), nil },
		"another journal":             func(context.Context) (Term, error) { return founded, nil },
		"an earlier term":             func(context.Context) (Term, error) { return serving(log, elder), nil },
		"a log that it can't name":    func(context.Context) (Term, error) { return unknown, nil },
		"no term":                     func(context.Context) (Term, error) { return Term{}, nil },
		"nothing":                     func(context.Context) (Term, error) { return Term{}, errors.New("connection refused") },
		"an older build":              func(context.Context) (Term, error) { return Term{}, ErrNoSuchQuestion },
	} {
		nodes := newTown()
		nodes.move("http://a", says)
		f := newFinder(t, client, nodes)
		f.Read("trading", 0, latest)
		until(t, name+": the node is asked", func() bool { // a slow machine may miss the time for the questions before
			_, err := f.Submit(t.Context(), "trading", journaltest.Say("hello"))
			var refused *submit.NotAcceptedError
			if !errors.As(err, &refused) || !refused.Unowned {
				t.Errorf("the named node answers with %s: the command gets %v", name, err)
			}
			return nodes.times("http://a") > 0
		})
	}
	// The same node in the group of this log's brokers is the owner, whatever it can be asked.
	nodes := newTown()
	nodes.move("http://a", func(context.Context) (Term, error) { return Term{}, ErrNoSuchQuestion })
	f := newFinder(t, client, nodes)
	f.Read("trading", 0, latest)
	join(t, client, f, "a", "http://a")
	until(t, "the group names the owner", func() bool {
		url, err := f.Owner(t.Context(), "trading", 0)
		return err == nil && url == "http://a"
	})
}

// TestAWrongOwnerIsFollowedByTheNextOneInTheLog: a command that was sent to a node that is the owner no more waits until the
// log names another one.
func TestAWrongOwnerIsFollowedByTheNextOneInTheLog(t *testing.T) {
	c := newCluster(t)
	client := c.client(t)
	log, err := client.LogID(t.Context(), "trading")
	if err != nil {
		t.Fatal(err)
	}
	first, second := taken(3, "http://a"), taken(5, "http://b")
	nodes := newTown()
	nodes.says("http://a", serving(log, first))
	nodes.says("http://b", serving(log, second))
	f := newFinder(t, client, nodes)
	f.Read("trading", 0, first)
	var elsewhere *submit.ElsewhereError
	until(t, "the command is sent to the first node", func() bool {
		_, err := f.Submit(t.Context(), "trading", journaltest.Say("hello"))
		return errors.As(err, &elsewhere) && elsewhere.URL == "http://a"
	})
	f.Read("trading", 0, taken(4, "http://a")) // in which it answers what it has kept of its last term
	nodes.says("http://a", Term{})
	next := make(chan *submit.ElsewhereError)
	go func() {
		var e *submit.ElsewhereError
		for e == nil && t.Context().Err() == nil { // a slow machine may take longer than Next looks
			e = elsewhere.Next(t.Context())
		}
		next <- e
	}()
	until(t, "the first node is asked again", func() bool { return nodes.times("http://a") > 1 })
	f.Read("trading", 0, second)
	if e := <-next; e == nil || e.URL != "http://b" {
		t.Errorf("the next owner is %+v", e)
	}
	f.Read("trading", 0, first) // a second reader of the log, which is behind
	until(t, "the owner is still the second node", func() bool {
		url, err := f.Owner(t.Context(), "trading", 0)
		return err == nil && url == "http://b"
	})
	nodes.says("http://b", Term{})
	_, err = f.Submit(t.Context(), "trading", journaltest.Say("hello"))
	if !errors.As(err, &elsewhere) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e := elsewhere.Next(ctx); e != nil {
		t.Errorf("there is no owner, and the next one is %+v", e)
	}
}

// TestAnAnswerDoesNotWaitForTheIdentityOfTheLog: the brokers hang, and a standby would take the wait for silence.
func TestAnAnswerDoesNotWaitForTheIdentityOfTheLog(t *testing.T) {
	c, w := newCluster(t), newWires(t)
	hanging, hang := context.WithCancel(t.Context())
	n, err := New(Config{Client: c.client(t, kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if hanging.Err() != nil {
			<-t.Context().Done()
		}
		return w.dial(ctx, network, address)
	})), NodeID: "n1", URL: "http://n1", Rules: []decide.Rules{journaltest.Words{Name: "trading"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	hang()
	for _, address := range c.ListenAddrs() {
		w.kill(address)
	}
	asked := time.Now()
	if id := n.logID(t.Context(), "identity"); id != "" || time.Since(asked) >= leaving {
		t.Errorf("%q after %v", id, time.Since(asked))
	}
}
