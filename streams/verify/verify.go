package verify

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// Config says what to verify.
type Config struct {
	Rules  decide.Rules
	Source Source
	// Payloads are those of the journal's commands. If they are nil, no record is decided again, and nothing is folded.
	Payloads *decide.Payloads
	// Codec encodes states. Without one there is one worker.
	Codec decide.StateCodec
	// Snapshots are compared with the states of the fold. The first one of a trimmed log at its base or after it is the state from
	// which the fold begins. They are in ascending order of sequence, and encoded by Codec. Several may have one sequence.
	Snapshots []Snapshot
	// Model checks the values of a log from its genesis on. It may be nil.
	Model Model
	// Checkpoint is a tree that the log must extend. It may be nil.
	Checkpoint *Checkpoint
	// Keys returns new epoch keys of the journal, to compute the roots of statements of liabilities again. Each worker has its own. If
	// it is nil, the keys of the Checkpoint are taken; without those the roots are not verified.
	Keys func(journal scalar.ID) (*commitment.Keys, error)
	// Workers is the number of goroutines that decide records again. Zero means one for each processor.
	Workers int
	// SpanRecords is the number of records after which a span may end, and SpanBytes the size of their values after which it ends.
	// Zero means the preset.
	SpanRecords, SpanBytes int
	// Progress is called with the number of records that are verified so far. It may be nil.
	Progress func(records int64)
}

// Snapshot is a stored state.
type Snapshot struct {
	Position record.Position
	// Load returns the state as Codec encodes it. Its error is ErrGone if the snapshot was deleted.
	Load func(ctx context.Context) ([]byte, error)
}

// ErrGone says that a snapshot was deleted while the log was verified.
var ErrGone = errors.New("the snapshot is gone")

// Model checks a journal by other rules than Rules.
type Model interface {
	// Check takes the value of the next record. ErrNotCovered says that the model does not know what the record is about; it is
	// not called again then. Any other error is a Difference.
	Check(value []byte) error
}

// ErrNotCovered is the error of a Model that does not cover a record.
var ErrNotCovered = errors.New("the model does not cover the record")

// The presets of Config.
const (
	spanRecords = 8192
	spanBytes   = 16 << 20
)

// verification is one run of Verify.
type verification struct {
	Config
	journal redecide.Journal
	report  Report
	limit   atomic.Int64 // sequence of the first difference found so far; later records need no check
	failed  atomic.Bool  // an error that is not about the log; nothing needs a check any more

	mu    sync.Mutex
	first *Difference
}

// Verify verifies a log. The error is that of the source, of a snapshot store, or of the context, and says nothing about the log.
// The report has the first Difference in the log.
func Verify(ctx context.Context, cfg Config) (Report, error) {
	v := &verification{Config: cfg, report: Report{Journal: cfg.Rules.Journal(), Decided: newDecided()}}
	v.limit.Store(maxSequence)
	v.journal = redecide.Journal{Payloads: cfg.Payloads, Limit: cfg.Rules.Limit()}
	if v.Workers == 0 {
		v.Workers = runtime.GOMAXPROCS(0)
	}
	if v.Codec == nil && v.Payloads != nil {
		v.Workers = 1
	}
	if v.SpanRecords == 0 {
		v.SpanRecords = spanRecords
	}
	if v.SpanBytes == 0 {
		v.SpanBytes = spanBytes
	}
	if v.Keys == nil && v.Checkpoint != nil {
		v.Keys = v.Checkpoint.Keys
	}
	base, err := cfg.Source.Base(ctx)
	if err != nil {
		return v.report, err
	}
	if base != nil && v.Model != nil {
		v.Model, v.report.NotModeled = nil, "the log does not begin with its genesis"
	}
	if base != nil && v.Checkpoint != nil {
		return v.report, fmt.Errorf("the tree of a checkpoint begins with the genesis, and the log with record %d: verify the archive", base.Sequence)
	}
	err = v.run(ctx, base)
	v.report.Difference = v.first
	return v.report, err
}

const maxSequence = 1<<63 - 1

// differs notes a difference. The first one in the order of the log counts.
func (v *verification) differs(d *Difference) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.first == nil || d.Sequence < v.first.Sequence {
		v.first = d
		v.limit.Store(d.Sequence)
	}
}

// run runs the stages.
func (v *verification) run(ctx context.Context, base *record.Base) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	batches, err := v.Source.Open(reading)
	if err != nil {
		return err
	}
	defer batches.Close()
	decoded := v.decode(reading, batches)
	followers := v.follow(base)
	spans := v.newCutter(base, followers)
	var working sync.WaitGroup
	for range v.Workers {
		working.Go(func() { v.work(ctx, spans.work) })
	}
	collected := make(chan error, 1)
	go func() { collected <- v.collect(spans.ordered) }()
	err = spans.cut(ctx, decoded.ordered)
	stop() // ends the readers, if the log is wrong
	for range decoded.ordered {
	}
	working.Wait()
	err = errors.Join(err, <-collected, decoded.err)
	closeAll(followers)
	return v.finish(spans, err)
}

// finish completes the report when all goroutines have ended.
func (v *verification) finish(c *cutter, err error) error {
	for _, f := range c.followers {
		if f.model {
			v.report.Modeled, v.report.NotModeled = f.checked, f.notCovered
		}
	}
	v.report.Tip = c.history.chain.Position()
	v.report.Records = v.report.Tip.Sequence + 1 - v.report.First
	if d := v.first; d != nil {
		v.report.Records = max(0, d.Sequence-v.report.First)
		return nil // an error of a source that was stopped says nothing
	}
	return err
}
