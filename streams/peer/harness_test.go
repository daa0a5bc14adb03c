package peer

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	testJournal = "words"
	ownerURL    = "http://owner.test"
)

var testShard = submit.Shard{Journal: testJournal}

// say is the payload of a test's command.
type say struct{ Word string }

func (*say) CommandType() string { return "say" }

func (*say) Reconstruct(*decide.Evidence) error { return nil }

func payloads(_, commandType string) (decide.Payload, bool) {
	return new(say), commandType == "say"
}

func events(string) (*decide.Registry, error) {
	return journaltest.Words{Name: testJournal}.Registry(), nil
}

// command returns a command that says a word.
func command(word string) decide.Command {
	return decide.Command{ID: record.NewCommandID(time.Now()), Type: "say", Actor: decide.Actor{Sub: "u", Broker: "b"},
		Metadata: decide.Metadata{Key: "key-" + word, Source: &decide.Source{Journal: "j", Sequence: 3}}, Payload: &say{word}}
}

// owner is an owner of the test's journal: a log in memory that is decided in one term after the other.
type owner struct {
	t     *testing.T
	clock func() time.Duration

	mu       sync.Mutex
	identity scalar.ID
	term     Term
	log      []record.Entry
	decided  map[scalar.ID]int // records of each command
	waiting  int               // commands that are queued and not decided
	most     int               // the most that were waiting
	queued   []string          // the words of all commands, in the order in which they came
	hold     chan struct{}     // while it is not nil, nothing is decided
	delay    time.Duration     // of every decision
	followed []*Client         // which read the log
	behind   bool              // they do not read it for now
}

func newOwner(t *testing.T) *owner {
	o := &owner{t: t, clock: goClock(), identity: scalar.ID{7}, decided: make(map[scalar.ID]int)}
	o.take()
	return o
}

// take begins a term.
func (o *owner) take() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.term.Number++
	e := o.append(decide.Recorded{ID: record.NewCommandID(time.Now()), Type: "journal.taken", Actor: decide.Engine},
		&record.TermStarted{Term: o.term.Number, Node: "o", URL: ownerURL})
	o.term.Taken, o.term.Journal, o.term.Log = e.Position.Hash, o.identity, "log"
}

// append appends a record. The caller must hold the lock.
func (o *owner) append(c decide.Recorded, event decide.Event) record.Entry {
	r := &record.Record{Sequence: int64(len(o.log)), Time: scalar.TimeOf(time.Now()), Command: c, Outcome: decide.Accepted, Events: []decide.Event{event}}
	if n := len(o.log); n > 0 {
		r.Prev = o.log[n-1].Position.Hash
	}
	value, err := record.Encode(nil, r)
	if err != nil {
		o.t.Error(err)
	}
	e := record.Entry{Record: r, Journal: o.identity, Value: value, Position: record.Position{Offset: r.Sequence, Sequence: r.Sequence, Hash: sha256.Sum256(value)}}
	o.log = append(o.log, e)
	if !o.behind {
		for _, c := range o.followed {
			c.Read(testJournal, 0, e)
		}
	}
	return e
}

// follow has a client read the log.
func (o *owner) follow(c *Client) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.log {
		c.Read(testJournal, 0, e)
	}
	o.followed = append(o.followed, c)
}

// lag has the clients not read the log from now on.
func (o *owner) lag() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.behind = true
}

// pause has nothing decided until it is resumed.
func (o *owner) pause() (resume func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	hold := make(chan struct{})
	o.hold = hold
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.hold = nil
		close(hold)
	}
}

func (o *owner) Submit(ctx context.Context, journal string, c decide.Command) (submit.Result, error) {
	out := o.SubmitAll(ctx, journal, []decide.Command{c})[0]
	return out.Result, out.Err
}

func (o *owner) SubmitAll(ctx context.Context, _ string, cs []decide.Command) []submit.Outcome {
	return o.decideAll(ctx, cs, o.clock()+time.Hour)
}

// decideAll decides commands, unless that is too late.
func (o *owner) decideAll(ctx context.Context, cs []decide.Command, until time.Duration) []submit.Outcome {
	o.mu.Lock()
	o.waiting += len(cs)
	o.most = max(o.most, o.waiting)
	for _, c := range cs {
		o.queued = append(o.queued, c.Payload.(*say).Word)
	}
	hold := o.hold
	o.mu.Unlock()
	submit.NotifyQueued(ctx)
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
		}
	}
	time.Sleep(o.delay)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting -= len(cs)
	out := make([]submit.Outcome, len(cs))
	for i, c := range cs {
		if o.clock() > until {
			out[i].Err = &submit.NotAcceptedError{Reason: "late"}
			continue
		}
		out[i].Result, out[i].Err = o.decide(ctx, c)
	}
	return out
}

// Enqueue implements submit.Enqueuer.
func (o *owner) Enqueue(ctx context.Context, _ string, b submit.Batch) (withdraw func()) {
	ctx, cancel := context.WithCancel(ctx)
	queued := make(chan struct{})
	go func() {
		defer cancel()
		for i, out := range o.decideAll(submit.OnQueued(ctx, func() { close(queued) }), b.Commands, b.Until) {
			b.Reply(i, out)
		}
		b.Replied()
	}()
	<-queued
	return cancel
}

func (o *owner) decide(ctx context.Context, c decide.Command) (submit.Result, error) {
	word := c.Payload.(*say).Word
	at := record.LogPosition{Journal: testJournal, Sequence: int64(len(o.log)) - 1}
	switch {
	case submit.TermOf(ctx) != o.term.Number:
		return submit.Result{}, &submit.NotAcceptedError{Reason: "another term", Unowned: true}
	case ctx.Err() != nil:
		return submit.Result{}, &submit.NotAcceptedError{Reason: "gone"}
	case word == "refuse":
		return submit.Result{}, &submit.RefusedError{Refusal: decide.Refuse(decide.Conflict, "NO", "no"), AsOf: at}
	case word == "full":
		return submit.Result{}, &submit.NotAcceptedError{Reason: "full", RetryAfter: 2 * time.Second}
	case word == "unknown":
		return submit.Result{}, &submit.OutcomeUnknownError{CommandID: c.ID}
	case word == "fail":
		return submit.Result{}, errors.New("broken")
	}
	o.decided[c.ID]++
	e := o.append(c.Recorded(), &journaltest.WordAdded{Word: word})
	return submit.Result{Position: record.LogPosition{Journal: testJournal, Sequence: e.Record.Sequence}, Entry: &e, Repeated: word == "repeat"}, nil
}

// words returns the words in the log.
func (o *owner) words() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.log {
		if said, ok := e.Record.Events[0].(*journaltest.WordAdded); ok {
			all = append(all, said.Word)
		}
	}
	return all
}

// count returns the number of the records of a command.
func (o *owner) count(id scalar.ID) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.decided[id]
}

func (o *owner) pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting
}

func (o *owner) standing(context.Context, submit.Shard) (Term, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.term, true, nil
}

// network connects clients with servers by pipes. wrap, if it is set, may replace either end of a connection.
type network struct {
	connections chan net.Conn
	closed      chan struct{}
	wrap        func(toOwner, toNode net.Conn) (node, owner net.Conn)
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	node, there := net.Pipe()
	a, b := node, there
	if n.wrap != nil {
		a, b = n.wrap(node, there)
	}
	select {
	case n.connections <- b:
		return a, nil
	case <-n.closed:
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.connections:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error   { return nil }
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// pair is a client, and a server that an owner stands behind.
type pair struct {
	*Router
	owner   *owner
	server  *Server
	network *network
}

var secret = []byte("the venue's secret")

func serverConfig(o *owner) ServerConfig {
	return ServerConfig{Key: secret, Venue: func() string { return "venue" }, Node: "o", Build: "1", Clock: o.clock, Owners: o, Term: o.standing, Payload: payloads}
}

func clientConfig(n *network) ClientConfig {
	return ClientConfig{Key: secret, Venue: func() string { return "venue" }, Node: "n", Build: "1", Events: events, Dial: n.dial,
		Log: func(context.Context, string) (string, error) { return "log", nil }}
}

// newPair connects them. It must be called in a bubble of synctest, like close at the end.
func newPair(t *testing.T, o *owner, change ...func(*ServerConfig, *ClientConfig)) *pair {
	t.Helper()
	n := &network{connections: make(chan net.Conn), closed: make(chan struct{})}
	sc, cc := serverConfig(o), clientConfig(n)
	for _, f := range change {
		f(&sc, &cc)
	}
	p := &pair{owner: o, server: NewServer(sc), network: n}
	p.connect(t, o, &http.Server{Handler: p.server, Protocols: protocols(true)}, cc)
	return p
}

// newPairWith connects a client with another server, behind which no owner is.
func newPairWith(t *testing.T, o *owner, web *http.Server) *pair {
	t.Helper()
	p := &pair{owner: o, server: NewServer(serverConfig(o)), network: &network{connections: make(chan net.Conn), closed: make(chan struct{})}}
	p.connect(t, o, web, clientConfig(p.network))
	return p
}

// protocols returns those of a node's port, with HTTP/2 or without, as in older builds.
func protocols(two bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(two)
	return p
}

func (p *pair) connect(t *testing.T, o *owner, web *http.Server, cc ClientConfig) {
	n := p.network
	go func() { _ = web.Serve(n) }()
	client := NewClient(cc)
	o.follow(client)
	p.Router = &Router{Here: elsewhere{}, Client: client}
	t.Cleanup(func() {
		client.Close()
		p.server.Close()
		close(n.closed)
		web.Close()
	})
}

// elsewhere names the owner.
type elsewhere struct{}

func (elsewhere) Submit(context.Context, string, decide.Command) (submit.Result, error) {
	return submit.Result{}, &submit.ElsewhereError{URL: ownerURL}
}

func (e elsewhere) SubmitAll(ctx context.Context, journal string, cs []decide.Command) []submit.Outcome {
	_, err := e.Submit(ctx, journal, decide.Command{})
	return allFail(cs, err)
}

// say submits a command that says a word.
func (p *pair) say(ctx context.Context, word string) (submit.Result, error) {
	return p.Submit(ctx, testJournal, command(word))
}

// later submits a command in a goroutine.
func (p *pair) later(ctx context.Context, c decide.Command) <-chan submit.Outcome {
	out := make(chan submit.Outcome, 1)
	go func() {
		r, err := p.Submit(ctx, testJournal, c)
		out <- submit.Outcome{Result: r, Err: err}
	}()
	return out
}

func isNotAccepted(err error) bool {
	var e *submit.NotAcceptedError
	return errors.As(err, &e)
}

func isUnknown(err error) bool {
	var e *submit.OutcomeUnknownError
	return errors.As(err, &e)
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
