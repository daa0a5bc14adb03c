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

// The bounds of an owner.
const (
	windowRecords  = 4096              // produced and not acknowledged
	windowBytes    = 16 << 20          // of their values
	queueCommands  = 8192              // waiting for their decision
	maxUnseen      = 4 * windowRecords // produced, and not yet passed by the owner's own reader
	maxUnseenBytes = 4 * windowBytes
	stallAfter     = 2 * time.Second // without an acknowledgement, intake stops
	patience       = time.Second     // that a command waits for its decision
	drainFor       = 5 * time.Second // that a stopping owner waits for its acknowledgements
)

// OwnerConfig says what an owner owns and as whom.
type OwnerConfig struct {
	Client     *Client
	Rules      decide.Rules
	Partition  int32
	Partitions int32 // of the journal, for its genesis; 1 if zero
	Node       string
	URL        string
	Build      string
	Known      []Known
	Vouched    func() bool                                 // says that the log was held against a known position already; nil for no
	Seed       func(context.Context) (*record.Seed, error) // nil, or a nil Seed: fold from genesis
	Deadline   time.Duration                               // by which a command is answered; 10 s if zero

	OtherClock  func(context.Context) (time.Time, error) // to hold this node's clock against, where it answers; nil for none
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
	timers    sync.Pool // of *time.Timer, stopped
	accepting atomic.Bool
	serving   atomic.Int64 // the valid term, or 0
	clockOff  atomic.Bool  // this node's clock keeps it from taking a term
	stalled   atomic.Int64 // since when nothing is acknowledged, in Unix milliseconds, or 0
	run       sync.Mutex   // held by Run; guards what follows

	kept         []kept                 // requests that outlived their term
	behind       record.Position        // before every record that they wait for
	sent         map[scalar.ID]struct{} // the taken records of this process
	met          int64                  // the highest term that this Run has folded; none before its first fold
	acknowledged record.Position        // the last position that this process knew to be acknowledged
	anchors      record.Anchors
	recent       recent
	to           address // what the records of the partition have in common
	built        *record.EncodedCache
	scratch      []byte // where records are written
	repeated     map[decide.Alarm]*repeated
	reading      chan struct{} // a token for each read of an old record
	probes       chan chan<- Standing
}

// meters are the client's metrics with the journal's label filled in.
type meters struct {
	appends, terms, answered                  prometheus.Counter
	appendTime                                prometheus.Observer
	window, windowBytes, held, queue, serving prometheus.Gauge
	acknowledged, unseen, term, stalled       prometheus.Gauge
	clockOff                                  prometheus.Gauge
}

// NewOwner returns an owner that accepts nothing until Run has a valid term.
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

// Run owns the partition until the context ends, which drains what is in flight and returns nil. It returns a
// *ForeignTermError when another process took the partition, a *ClockError when this node's clock is off, and a final error
// when the log is at fault; after each it may be called again.
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

// Take folds the journal, appends a taken record, and returns its position. It decides nothing. From that record on, a term that
// another process still has, perhaps a suspended one, appends nothing valid and acknowledges nothing; the process can take a
// later term. The journal must have been founded.
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

// alarm says something that an operator should look at.
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

// Serving returns the owner's term and whether it is valid.
func (o *Owner) Serving() (term int64, ok bool) {
	n := o.serving.Load()
	return n, n > 0
}

// Stalled returns since when nothing has been acknowledged that should have been, if that is so long ago that nothing is
// taken in.
func (o *Owner) Stalled() (since time.Time, stalled bool) {
	at := o.stalled.Load()
	return time.UnixMilli(at), at != 0
}

// Anchors returns the positions that the owner keeps of its log.
func (o *Owner) Anchors() *record.Anchors { return &o.anchors }

func (o *Owner) position(sequence int64) record.LogPosition {
	return record.LogPosition{Journal: o.journal, Partition: o.cfg.Partition, Sequence: sequence}
}
