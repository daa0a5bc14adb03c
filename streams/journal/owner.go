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
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// The limits of an owner.
const (
	windowRecords  = 4096              // decided and not acknowledged
	windowBytes    = 16 << 20          // total size of their values
	queueCommands  = 8192              // queued commands
	maxUnseen      = 4 * windowRecords // decided and not yet passed by the owner's reader
	maxUnseenBytes = 4 * windowBytes
	stallAfter     = 2 * time.Second // without an acknowledgement, intake stops
	patience       = time.Second     // the longest wait of a command for its decision
	drainFor       = 5 * time.Second // the longest wait of a stopping owner for acknowledgements
)

// OwnerConfig configures an owner: the partition that it owns, and the node that it runs on.
type OwnerConfig struct {
	Client     *Client
	Rules      decide.Rules
	Partition  int32
	Partitions int32 // the number in the journal's genesis; 1 if zero
	Node       string
	URL        string
	Build      string
	Known      []Known
	Vouched    func() bool                                 // whether the log was compared with a known position; nil for no
	Seed       func(context.Context) (*record.Seed, error) // if it or its Seed is nil, replay starts from genesis
	Deadline   time.Duration                               // for answering a command; 10 s if zero

	OtherClock  func(context.Context) (time.Time, error) // a reference for this node's clock, used if it answers; nil for none
	AcceptClock bool                                     // take terms even if this node's clock is off
}

// Owner owns one partition on this node: it runs terms and decides commands.
type Owner struct {
	cfg     OwnerConfig
	journal string
	log     *slog.Logger
	meters  meters
	tracer  *trace.Tracer // nil for none
	clock   *steady

	queue     chan *request
	shares    shares    // of the queue
	timers    sync.Pool // of stopped *time.Timer
	accepting atomic.Bool
	serving   atomic.Int64 // the number of the valid term, or 0
	clockOff  atomic.Bool  // this node's clock prevents it from taking a term
	stalled   atomic.Int64 // since when acknowledgements are missing, in Unix milliseconds, or 0
	run       sync.Mutex   // held by Run; guards the following fields

	kept         []kept                 // requests carried over from ended terms
	behind       record.Position        // a position before every record that they wait for
	sent         map[scalar.ID]struct{} // the command ids of this process's taken records
	met          int64                  // the highest term that this Run has applied; record.UnknownTerm before its first replay
	acknowledged record.Position        // the last position known to this process to be acknowledged
	anchors      record.Anchors
	recent       recent
	to           address // the common parts of the partition's Kafka records
	built        *record.EncodedCache
	scratch      []byte // the buffer for encoding records
	repeated     map[decide.Alarm]*repeated
	reading      chan struct{} // a semaphore for reads of old records
	probes       chan chan<- Standing
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
	return &Owner{
		cfg:     cfg,
		journal: name,
		log:     cfg.Client.cfg.Logger.With("journal", name, "partition", cfg.Partition, "node", cfg.Node),
		meters: meters{
			appends: m.Appends.WithLabelValues(name), terms: m.Terms.WithLabelValues(name),
			answered:   m.Commands.WithLabelValues(name, "answered"),
			appendTime: m.AppendTime.WithLabelValues(name), window: m.Window.WithLabelValues(name),
			windowBytes: m.WindowBytes.WithLabelValues(name), held: m.Held.WithLabelValues(name),
			queue: m.Queue.WithLabelValues(name), serving: m.Serving.WithLabelValues(name),
			acknowledged: m.Acknowledged.WithLabelValues(name), unseen: m.Unseen.WithLabelValues(name),
			term: m.Term.WithLabelValues(name), stalled: m.Stalled.WithLabelValues(name), clockOff: m.ClockOff.WithLabelValues(name),
		},
		tracer:       cfg.Client.cfg.Tracer,
		clock:        newSteady(cfg.Client.cfg.Clock),
		queue:        make(chan *request, queueCommands),
		sent:         make(map[scalar.ID]struct{}),
		repeated:     make(map[decide.Alarm]*repeated),
		acknowledged: record.Before,
		behind:       record.Before,
		built:        cfg.Client.built(submit.Shard{Journal: name, Partition: cfg.Partition}),
		reading:      make(chan struct{}, 8),
		probes:       make(chan chan<- Standing, maxAskers),
	}, nil
}

// Run owns the partition until the context ends. It then drains the records in flight and returns nil. It returns a
// *ForeignTermError when another process took the partition, a *ClockError when this node's clock is off, and a final
// error when the log is broken or the rules fail. After each of these it may be called again.
func (o *Owner) Run(ctx context.Context) error {
	o.run.Lock()
	defer o.run.Unlock()
	var reads sync.WaitGroup
	defer reads.Wait()
	o.met = record.UnknownTerm
	for attempt := 0; ; attempt++ {
		t := newTerm(o, &reads)
		opened, err := t.run(ctx)
		o.close(t)
		if t.folded {
			o.met = max(o.met, t.inTerm)
		}
		if opened {
			attempt = 0
		}
		var foreign *ForeignTermError
		var clock *ClockError
		switch {
		case ctx.Err() != nil:
			if opened && err != nil {
				o.log.Warn("a term ended at the stop of the node", "error", err)
			}
			o.giveUp()
			return nil
		case errors.As(err, &foreign):
			o.count("foreign")
			return err
		case errors.As(err, &clock):
			o.count("clock")
			o.noteClock(err)
			return err
		case record.Final(err) || errors.Is(err, errRules):
			o.count("fault")
			o.giveUp()
			return err
		}
		o.count("error")
		o.log.Warn("a term ended", "error", err)
		if pause(ctx, attempt) != nil {
			o.giveUp()
			return nil
		}
	}
}

// Take replays the journal, appends a taken record, and returns that record's position. It decides no commands. After
// that record, a term of another process, even of a suspended one, can append nothing valid and acknowledge nothing.
// The other process can take a later term. The journal must have a genesis.
func (o *Owner) Take(ctx context.Context) (record.Position, error) {
	o.run.Lock()
	defer o.run.Unlock()
	var reads sync.WaitGroup
	defer reads.Wait()
	o.met = record.UnknownTerm
	t := newTerm(o, &reads)
	defer o.close(t)
	err := t.open(ctx)
	return t.tip, err
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
func (o *Owner) Anchors() *record.Anchors { return &o.anchors }

func (o *Owner) position(sequence int64) record.LogPosition {
	return record.LogPosition{Journal: o.journal, Partition: o.cfg.Partition, Sequence: sequence}
}
