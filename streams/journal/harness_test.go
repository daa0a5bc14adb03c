package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// The rules of these tests: named counters. "add" adds to one, "later" adds when a time has come, "sweep" adds one in
// each of several blocking steps, and a few commands misbehave.
type (
	add struct {
		Name string
		N    int
	}
	later struct {
		Name  string
		N     int
		At    scalar.Time
		Fault string // "panic" or "large": of the step; "panic!" and "garble!" even of a single one; "alarm" is none
	}
	sweep struct {
		Name  string
		Steps int
	}
	read struct{ Name string }
	hold struct{ entered, leave chan struct{} } // keeps the owner busy
	bad  struct{ How string }

	added struct {
		Name  string `json:"name"`
		N     int    `json:"n"`
		Total int    `json:"total"`
		Pad   string `json:"pad,omitempty"`
	}
	planned struct {
		Name  string      `json:"name"`
		N     int         `json:"n"`
		At    scalar.Time `json:"at"`
		Fault string      `json:"fault,omitempty"`
	}
	swept struct {
		Name    string    `json:"name"`
		Left    int       `json:"left"`
		Command scalar.ID `json:"command"`
	}
	stepped struct{}
)

func (*added) EventType() string   { return "counter.added" }
func (*planned) EventType() string { return "counter.planned" }
func (*swept) EventType() string   { return "counter.swept" }
func (*stepped) EventType() string { return "engine.step" }
func (*added) Canonical() bool     { return true }

const testLimit = 8 << 10

type rules struct {
	name  string
	limit int
	fault string // "due", "next" or "evolve": what panics, the last on a counter named poison
}

func newRules() rules { return rules{name: "trading", limit: testLimit} }

func (r rules) Journal() string { return r.name }
func (r rules) NewState() decide.State {
	s := newCounters()
	s.fault = r.fault
	return s
}
func (r rules) Limit() int { return r.limit }

func (rules) Newest() int { return 1 }

func (rules) Registry() *decide.Registry {
	r := decide.NewRegistry()
	r.Add(func() decide.Event { return new(added) })
	r.Add(func() decide.Event { return new(planned) })
	r.Add(func() decide.Event { return new(swept) })
	r.Add(func() decide.Event { return new(stepped) })
	return r
}

type counters struct {
	totals  map[string]int
	fault   string
	applied int64 // records evolved
	memory  decide.Memory
	due     []planned // in the order of time
	sweeps  []swept
}

func newCounters() *counters { return &counters{totals: make(map[string]int)} }

func (s *counters) Decide(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	if d, ok, err := s.memory.Lookup(at.Time, c); ok || err != nil {
		return d, err
	}
	accept := func(events ...decide.Event) (decide.Decision, error) {
		return decide.Decision{Outcome: decide.Accepted, Events: events}, nil
	}
	switch payload := c.Payload.(type) {
	case *add:
		return accept(&added{Name: payload.Name, N: payload.N, Total: s.totals[payload.Name] + payload.N})
	case *later:
		return accept(&planned{payload.Name, payload.N, payload.At, payload.Fault})
	case *sweep:
		d, err := accept(&swept{payload.Name, payload.Steps, c.ID})
		d.Pending = true
		return d, err
	case *hold:
		close(payload.entered)
		<-payload.leave
		return accept(&added{Name: "hold", N: 1, Total: s.totals["hold"] + 1})
	case *read:
		return decide.Decision{}, decide.Refuse(decide.NotFound, "TOTAL", fmt.Sprint(s.totals[payload.Name]))
	case *bad:
		switch payload.How {
		case "panic":
			panic("a fault of the rules")
		case "alarming":
			return decide.Decision{}, &decide.Refusal{Kind: decide.Unacceptable, Code: "NO", Message: "look here", Alarm: "price_refused"}
		case "large":
			return accept(&added{Name: "large", N: 1, Pad: strings.Repeat("x", testLimit)})
		case "utf8":
			return accept(&added{Name: "a\xffb", N: 1})
		case "nothing":
			return decide.Decision{}, nil
		case "future":
			return decide.Decision{Repeated: true, Repeat: at.Sequence + 7}, nil
		}
	}
	return decide.Decision{}, errors.New("no such command")
}

func (s *counters) Evolve(at decide.Stamp, c decide.Recorded, o decide.Outcome, events []decide.Event) {
	s.applied++
	s.memory.Note(at, c)
	for _, e := range events {
		switch e := e.(type) {
		case *added:
			if s.fault == "evolve" && e.Name == "poison" {
				panic("a fault of evolve")
			}
			s.totals[e.Name] = e.Total
		case *planned:
			s.due = append(s.due, *e)
		case *swept:
			s.sweeps = s.sweeps[:0]
			if e.Left > 0 {
				s.sweeps = append(s.sweeps, *e)
			}
		case *stepped:
			if c.Type == "engine.step" && len(s.due) > 0 && len(s.sweeps) == 0 {
				s.due = s.due[1:]
			}
		case *decide.DueSetAside:
			s.due = s.due[1:]
		}
	}
}

func (s *counters) Due(now scalar.Time) decide.Urgency {
	if s.fault == "due" && len(s.due) > 0 {
		panic("a fault of due")
	}
	if len(s.sweeps) > 0 {
		return decide.Blocking
	}
	if len(s.due) > 0 && s.due[0].At <= now {
		return decide.Alternate
	}
	return decide.Nothing
}

func (s *counters) NextDue() (scalar.Time, bool) {
	if s.fault == "next" && len(s.due) > 0 {
		panic("a fault of due")
	}
	if len(s.due) > 0 {
		return s.due[0].At, true
	}
	return 0, false
}

func (s *counters) Step(at decide.Stamp, single bool) decide.Decision {
	if len(s.sweeps) > 0 {
		w := s.sweeps[0]
		d := decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{
			&stepped{}, &added{Name: w.Name, N: 1, Total: s.totals[w.Name] + 1}, &swept{w.Name, w.Left - 1, w.Command}}}
		if w.Left == 1 {
			d.Finishes = w.Command
		}
		return d
	}
	p := s.due[0]
	a := &added{Name: p.Name, N: p.N, Total: s.totals[p.Name] + p.N}
	switch {
	case p.Fault == "garble!":
		panic("\xff" + strings.Repeat("é", 1<<16))
	case p.Fault == "panic!", p.Fault == "panic" && !single:
		panic("a fault of a step")
	case p.Fault == "large" && !single:
		a.Pad = strings.Repeat("x", testLimit)
	}
	d := decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{&stepped{}, a}}
	if p.Fault == "alarm" {
		d.Alarm = decide.Alarm{Kind: "counted", Message: "somebody should look at this"}
	}
	return d
}

func (s *counters) SetAside(at decide.Stamp, cause string) decide.Decision {
	return decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{&decide.DueSetAside{Entry: "counter/planned", Error: cause}}}
}

// command makes a command of a test.
func command(payload any) decide.Command {
	return decide.Command{ID: record.NewCommandID(time.Now()), Type: "counter.change", Actor: decide.Actor{Sub: "u", Broker: "b"}, Payload: payload}
}

func keyed(key string, payload any) decide.Command {
	c := command(payload)
	c.Metadata = decide.Metadata{Key: key, Fingerprint: fmt.Sprintf("%x", fmt.Sprint(payload))}
	return c
}

// rig is a cluster with one journal, real or in the process.
type rig struct {
	t       *testing.T
	fake    *kfake.Cluster // nil on a real cluster
	brokers []string
	prefix  string
	metrics *journal.Metrics
	client  *journal.Client
	rules   rules

	rewritten bool // the topic was written by the test, without keys and headers
}

// newRig takes the brokers of the environment if there are any.
func newRig(t *testing.T) *rig {
	t.Helper()
	if brokers := os.Getenv("KAFKA_BROKERS"); brokers != "" {
		return (&rig{t: t, brokers: strings.Split(brokers, ",")}).start()
	}
	return newFake(t)
}

// newFake is for the tests that inject faults into the broker.
func newFake(t *testing.T, options ...kfake.Opt) *rig {
	t.Helper()
	fake, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return (&rig{t: t, fake: fake, brokers: fake.ListenAddrs()}).start()
}

func (r *rig) start() *rig {
	r.t.Helper()
	r.prefix = fmt.Sprintf("t%d-", time.Now().UnixNano())
	r.rules = newRules()
	r.client = r.newClient(nil, nil)
	if err := r.client.EnsureTopics(r.context(), "trading"); err != nil {
		r.t.Fatal(err)
	}
	return r
}

// newClient makes another client of the cluster, with its own clock and behind its own gate where they are given.
func (r *rig) newClient(clock journal.Clock, g *gate) *journal.Client {
	r.t.Helper()
	level := slog.LevelError + 4
	if os.Getenv("TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	return r.newLoggingClient(clock, g, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
}

// newLoggingClient is newClient with a logger.
func (r *rig) newLoggingClient(clock journal.Clock, g *gate, logger *slog.Logger) *journal.Client {
	r.t.Helper()
	var options []kgo.Opt
	if g != nil {
		options = append(options, g.option(), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }))
		r.t.Cleanup(g.release)
	}
	return r.clientWith(clock, logger, options...)
}

// clientWith makes a client with options of its own.
func (r *rig) clientWith(clock journal.Clock, logger *slog.Logger, options ...kgo.Opt) *journal.Client {
	r.t.Helper()
	r.metrics = journal.NewMetrics()
	c, err := journal.NewClient(journal.Config{Brokers: r.brokers, Prefix: r.prefix, Clock: clock, Metrics: r.metrics, Options: options, Logger: logger})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

func (r *rig) topic() string { return r.prefix + "trading" }

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	r.t.Cleanup(cancel)
	return ctx
}

// gatedOwner is an owner whose client stands behind a gate.
func (r *rig) gatedOwner(node string, deadline time.Duration) (*running, *gate) {
	r.t.Helper()
	g := newGate()
	return r.gated(r.ownerConfig(node), deadline, g), g
}

// gated runs an owner of a configuration behind a gate.
func (r *rig) gated(cfg journal.OwnerConfig, deadline time.Duration, g *gate) *running {
	r.t.Helper()
	cfg.Client, cfg.Deadline = r.newClient(nil, g), deadline
	o := r.run(cfg)
	r.t.Cleanup(g.release)
	return o
}

// running is an owner with its Run.
type running struct {
	*journal.Owner
	t    *testing.T
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// ownerConfig has limits that a busy machine does not exceed.
func (r *rig) ownerConfig(node string) journal.OwnerConfig {
	return journal.OwnerConfig{Client: r.client, Rules: r.rules, Node: node, URL: "http://" + node, Build: "test", Deadline: time.Minute}.Patient()
}

func (r *rig) owner(node string) *running {
	r.t.Helper()
	return r.run(r.ownerConfig(node))
}

func (r *rig) run(cfg journal.OwnerConfig) *running {
	r.t.Helper()
	o, err := journal.NewOwner(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &running{Owner: o, t: r.t, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.err = o.Run(ctx)
	}()
	r.t.Cleanup(func() { x.end() })
	return x
}

// end stops the owner and returns what Run returned.
func (x *running) end() error {
	x.stop()
	<-x.done
	return x.err
}

// ready waits until the owner serves.
func (x *running) ready() *running {
	x.t.Helper()
	x.until("the owner serves", func() bool { _, ok := x.Serving(); return ok })
	return x
}

func (x *running) until(what string, ok func() bool) {
	x.t.Helper()
	eventually(x.t, what, func() bool {
		select {
		case <-x.done:
			x.t.Fatalf("waiting until %s: the owner ended: %v", what, x.err)
		default:
		}
		return ok()
	})
}

// eventually waits for a condition, up to a bound that only a failure meets.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 45_000 {
		if ok() {
			return
		}
		<-time.After(2 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// do submits a command that must succeed.
func (x *running) do(c decide.Command) submit.Result {
	x.t.Helper()
	r, err := x.insist(c)
	if err != nil {
		x.t.Fatalf("submitting %v: %v", c.Payload, err)
	}
	return r
}

// insist submits a command, and again where the owner did not accept it only because the machine was too busy for its
// limits.
func (x *running) insist(c decide.Command) (r submit.Result, err error) {
	for limit := time.Now().Add(time.Minute); ; {
		r, err = x.Submit(context.Background(), c)
		var refused *submit.NotAcceptedError
		busy := errors.As(err, &refused) && (strings.Contains(refused.Reason, "nothing has been acknowledged") ||
			strings.Contains(refused.Reason, "not decided in time") || x.stalls(refused))
		if !busy || time.Now().After(limit) {
			return r, err
		}
		<-time.After(10 * time.Millisecond)
	}
}

// stalls reports whether what a command was refused for is that a serving owner accepts none until something is
// acknowledged.
func (x *running) stalls(refused *submit.NotAcceptedError) bool {
	_, serving := x.Serving()
	return serving && strings.Contains(refused.Reason, "accepts no commands")
}

// start submits in the background.
func (x *running) start(c decide.Command) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		r, err := x.Submit(context.Background(), c)
		ch <- outcome{r, err}
	}()
	return ch
}

// queue is start for a command that the owner has queued when queue returns.
func (x *running) queue(c decide.Command) <-chan outcome {
	queued, ch := make(chan struct{}), make(chan outcome, 1)
	go func() {
		r, err := x.Submit(submit.OnQueued(context.Background(), func() { close(queued) }), c)
		ch <- outcome{r, err}
	}()
	select {
	case <-queued:
	case o := <-ch: // it was refused
		ch <- o
	}
	return ch
}

// holds waits until the owner that was made last holds n replies: so many have been decided.
func (r *rig) holds(n int) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("the owner holds %d replies", n), func() bool {
		return testutil.ToFloat64(r.metrics.Held.WithLabelValues("trading")) == float64(n)
	})
}

type outcome struct {
	result submit.Result
	err    error
}

// total reads a counter through a refusal.
func (x *running) total(name string) (string, int64) {
	x.t.Helper()
	_, err := x.insist(command(&read{name}))
	var refused *submit.RefusedError
	if !errors.As(err, &refused) {
		x.t.Fatalf("reading %s: %v", name, err)
	}
	return refused.Refusal.Message, refused.AsOf.Sequence
}

// all reads every valid record up to the end of the log.
func (r *rig) all() []record.Entry {
	r.t.Helper()
	end, err := r.client.Tip(r.context(), "trading", 0)
	if err != nil {
		r.t.Fatal(err)
	}
	reader := journal.NewReader(r.client, r.rules, 0, record.Before)
	if !r.rewritten {
		reader.Audit()
	}
	defer reader.Close()
	var all []record.Entry
	for next := int64(0); next < end; {
		var entries []record.Entry
		if entries, next, err = reader.Next(r.context()); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, entries...)
	}
	return all
}

// produce appends values to the topic as some other program would.
func (r *rig) produce(values ...[]byte) {
	r.t.Helper()
	kc, err := r.client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4<<20))
	if err != nil {
		r.t.Fatal(err)
	}
	defer kc.Close()
	for _, v := range values {
		if err := kc.ProduceSync(r.context(), &kgo.Record{Topic: r.topic(), Value: v}).FirstErr(); err != nil {
			r.t.Fatal(err)
		}
	}
}
