package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// The limits of an owner's window, the records that are decided and not acknowledged.
const (
	windowRecords = 4096
	windowBytes   = 16 << 20 // the total size of their values
)

// OwnerConfig configures an owner: the partition that it owns, and the node that it runs on.
type OwnerConfig struct {
	Client      *Client
	Rules       decide.Rules
	Partition   int32
	Partitions  int32 // the number in the journal's genesis; 1 if zero
	Node        string
	URL         string
	Build       string
	Known       []Known
	LogVerified func() bool                                 // whether the log was compared with a known position; nil for no
	Seed        func(context.Context) (*record.Seed, error) // if it or its Seed is nil, replay starts from genesis
	Interrupted func(*record.Seed)                          // is passed what an interrupted replay has applied; nil for none
	Deadline    time.Duration                               // for answering a command; 10 s if zero

	OtherClock  func(context.Context) (time.Time, error) // a reference for this node's clock, used if it answers; nil for none
	AcceptClock bool                                     // take terms even if this node's clock is off

	limits func(*term.Limits) // changes the limits in tests; nil for those of a node
}

// Owner owns one partition on this node: it runs terms and decides commands. The protocol is that of package term; an Owner
// drives a term.Machine with Kafka.
//
// One goroutine, that of Run, passes the inputs of a term to the machine. Other goroutines pass the few inputs that do not
// belong to a term. Each holds mu while it steps the machine and performs the output.
type Owner struct {
	cfg     OwnerConfig
	shard   submit.Shard
	journal string
	log     *slog.Logger
	meters  meters
	tracer  *trace.Tracer // nil for none
	clock   Clock

	inbox    inbox
	probes   chan chan<- term.Standing
	reading  chan struct{} // a semaphore for reads of old records
	serving  atomic.Int64  // the number of the valid term, or 0
	stalled  atomic.Int64  // since when acknowledgements are missing, in Unix milliseconds, or 0
	clockOff atomic.Bool   // this node's clock prevents it from taking a term

	run sync.Mutex // held by Run and Take

	mu        sync.Mutex // guards the following
	machine   *term.Machine
	out       term.Output
	published status
	expiry    *time.Timer // while no term is served, expires requests
	io        *termIO     // of the present term
	to        address     // the common parts of the partition's Kafka records
	built     *record.EncodedCache
	repeated  map[decide.Alarm]*repeated
}

// meters are the client's metrics with the journal's label set.
type meters struct {
	appends, terms, answered                  prometheus.Counter
	appendTime                                prometheus.Observer
	window, windowBytes, held, queue, serving prometheus.Gauge
	acknowledged, unseen, term, stalled       prometheus.Gauge
	clockOff                                  prometheus.Gauge
}

// NewOwner returns an owner that accepts no commands until Run has a valid term.
func NewOwner(cfg OwnerConfig) (*Owner, error) {
	if cfg.Partitions == 0 {
		cfg.Partitions = 1
	}
	if cfg.Deadline == 0 {
		cfg.Deadline = 10 * time.Second
	}
	if limit := cfg.Rules.Limit(); limit <= 0 || limit > maxMessage-64<<10 {
		return nil, fmt.Errorf("journal: a limit of %d bytes for a record is beyond what a topic takes", limit)
	}
	name, m := cfg.Rules.Journal(), cfg.Client.cfg.Metrics
	m.begin(name)
	o := &Owner{
		cfg:      cfg,
		shard:    submit.Shard{Journal: name, Partition: cfg.Partition},
		journal:  name,
		log:      cfg.Client.cfg.Logger.With("journal", name, "partition", cfg.Partition, "node", cfg.Node),
		meters:   m.ofOwner(name),
		tracer:   cfg.Client.cfg.Tracer,
		clock:    cfg.Client.cfg.Clock,
		inbox:    inbox{ready: make(chan struct{}, 1)},
		probes:   make(chan chan<- term.Standing, maxAskers),
		reading:  make(chan struct{}, 8),
		repeated: make(map[decide.Alarm]*repeated),
	}
	o.built = cfg.Client.Encoded(o.shard)
	limits := term.DefaultLimits()
	limits.WindowRecords, limits.WindowBytes, limits.Deadline = windowRecords, windowBytes, cfg.Deadline
	if cfg.limits != nil {
		cfg.limits(&limits)
	}
	o.machine = term.New(term.Config{Rules: cfg.Rules, Shard: o.shard, Node: cfg.Node, URL: cfg.URL, Build: cfg.Build,
		AcceptClock: cfg.AcceptClock, Limits: limits,
		NewID: func(at scalar.Time) scalar.ID { return record.NewCommandID(at.Std()) }}, o.now())
	return o, nil
}

// ofOwner returns the metrics of an owner.
func (m *Metrics) ofOwner(name string) meters {
	return meters{
		appends: m.Appends.WithLabelValues(name), terms: m.Terms.WithLabelValues(name),
		answered:   m.Commands.WithLabelValues(name, "answered"),
		appendTime: m.AppendTime.WithLabelValues(name), window: m.Window.WithLabelValues(name),
		windowBytes: m.WindowBytes.WithLabelValues(name), held: m.Held.WithLabelValues(name),
		queue: m.Queue.WithLabelValues(name), serving: m.Serving.WithLabelValues(name),
		acknowledged: m.Acknowledged.WithLabelValues(name), unseen: m.Unseen.WithLabelValues(name),
		term: m.Term.WithLabelValues(name), stalled: m.Stalled.WithLabelValues(name), clockOff: m.ClockOff.WithLabelValues(name),
	}
}

// Run owns the partition until the context ends. It then drains the records in flight and returns nil. It returns a
// *term.ForeignTermError when another process took the partition, a *term.ClockError when this node's clock is off, and a
// final error when the log is broken or the rules fail. After each of these it may be called again.
func (o *Owner) Run(ctx context.Context) error {
	o.run.Lock()
	defer o.run.Unlock()
	var reads sync.WaitGroup
	defer reads.Wait()
	o.mustStep(term.Assigned{})
	for attempt := 0; ; attempt++ {
		began := time.Now()
		opened, err := o.runTerm(ctx, &reads)
		attempt = attemptAfter(attempt, opened, time.Since(began))
		var foreign *term.ForeignTermError
		var clock *term.ClockError
		switch {
		case ctx.Err() != nil:
			if opened && err != nil {
				o.log.Warn("a term ended as the owner was stopped", "error", err)
			}
			o.mustStep(term.GiveUp{})
			return nil
		case errors.As(err, &foreign):
			o.count("foreign")
			return err
		case errors.As(err, &clock):
			o.count("clock")
			o.noteClock(err)
			return err
		case record.Final(err) || errors.Is(err, term.ErrRules):
			o.count("fault")
			o.mustStep(term.GiveUp{})
			return err
		}
		o.count("error")
		o.log.Warn("a term ended", "error", err, "pause", pauseBefore(attempt))
		if pause(ctx, attempt) != nil {
			o.mustStep(term.GiveUp{})
			return nil
		}
	}
}

// briefTerm is how long a term must last for the next one to begin without a growing pause. Brokers that refuse each record,
// such as those with a small max.message.bytes, end each term: without the pause, the log would fill with term records.
const briefTerm = 5 * time.Second

// attemptAfter returns the number of failed attempts before the next pause, after a term that was opened or not, and that
// lasted for a time.
func attemptAfter(attempt int, opened bool, lasted time.Duration) int {
	if opened && lasted > briefTerm {
		return 0
	}
	return attempt
}

// runTerm opens a term and serves it. opened reports whether its term record was valid.
func (o *Owner) runTerm(ctx context.Context, reads *sync.WaitGroup) (opened bool, err error) {
	t := o.newTermIO(ctx, reads)
	defer o.endTerm(t)
	if err := o.open(ctx, t); err != nil {
		o.handBack()
		return false, err
	}
	o.meters.terms.Inc()
	s := o.standing()
	o.log.Info("a term begins", "term", s.Term, "sequence", o.tip().Sequence)
	return true, o.serve(ctx, t)
}

// handBack passes the configuration what an interrupted replay has applied.
func (o *Owner) handBack() {
	if o.cfg.Interrupted == nil {
		return
	}
	o.mu.Lock()
	seed := o.machine.Interrupted()
	o.mu.Unlock()
	if seed != nil {
		o.cfg.Interrupted(seed)
	}
}

// endTerm ends a term. The machine keeps the requests that have no answer.
func (o *Owner) endTerm(t *termIO) {
	o.mustStep(term.Fail{}) // closes the intake while the reader and the producer end
	o.mustStep(term.End{Acks: t.close()})
	o.clearGauges()
	// The inbox is closed now. Requests that were put in before must not wait for the next term.
	if left := o.inbox.take(nil); len(left) > 0 {
		o.mustStep(term.Submit{Requests: left})
	}
}

// Take replays the journal, appends a term record, and returns that record's position. It decides no commands. After
// that record, a term of another process, even of a suspended one, can append nothing valid and acknowledge nothing.
// The other process can take a later term. The journal must have a genesis.
func (o *Owner) Take(ctx context.Context) (record.Position, error) {
	o.run.Lock()
	defer o.run.Unlock()
	var reads sync.WaitGroup
	defer reads.Wait()
	o.mustStep(term.Assigned{})
	t := o.newTermIO(ctx, &reads)
	defer o.endTerm(t)
	err := o.open(ctx, t)
	return o.tip(), err
}

func (o *Owner) tip() record.Position {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.machine.Tip()
}

func (o *Owner) count(cause string) {
	o.cfg.Client.cfg.Metrics.TermEnds.WithLabelValues(o.journal, cause).Inc()
}

// alarm reports a condition that an operator should look at.
func (o *Owner) alarm(kind, message string, args ...any) {
	o.countAlarm(kind)
	o.logAlarm(kind, message, args...)
}

func (o *Owner) logAlarm(kind, message string, args ...any) {
	o.log.Error(message, append([]any{"alarm", kind}, args...)...)
}

func (o *Owner) countAlarm(kind string) {
	o.cfg.Client.cfg.Metrics.Alarms.WithLabelValues(o.journal, kind).Inc()
}

// Serving returns the number of the valid term. ok is false if there is none.
func (o *Owner) Serving() (term int64, ok bool) {
	n := o.serving.Load()
	return n, n > 0
}

// Stalled returns the time since which acknowledgements have been missing. stalled is false unless that has stopped the
// intake.
func (o *Owner) Stalled() (since time.Time, stalled bool) {
	at := o.stalled.Load()
	return time.UnixMilli(at), at != 0
}

// Anchors returns the anchors that the owner has collected.
func (o *Owner) Anchors() *record.Anchors { return o.machine.Anchors() }
