package node

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/tlog"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// transparencyLog is the transparency log of one of the node's journals.
type transparencyLog struct {
	*follower
	clock  *logclock.Clock
	host   string
	open   bool                 // needs no token
	policy *transparency.Policy // nil if there are no witnesses
	stores *stores
	blobs  *blob.Store
	box    *seal.Box
	// archive returns where the journal is archived. It is nil if the node cannot read archives.
	archive func() archive.Config
	tiles   time.Duration // age from which leaf tiles and bundles are deleted; 0 for never
	logger  *slog.Logger
	run     atomic.Pointer[transparency.Follower] // nil until it runs here
	sends   atomic.Pointer[transparency.Cosigner] // nil if no witnesses are asked here

	mu     sync.Mutex
	reader *transparency.Reader
	id     scalar.ID
	prover *receipt.Prover // nil until a receipt is made
}

// transparencyLogs returns the transparency logs of all journals.
func (n *Node) transparencyLogs() (all treeLogs) {
	blobs := blob.NewStore(n.stores.snapshots.bucket)
	for _, f := range n.followers {
		l := &transparencyLog{follower: f, clock: logclock.Of(f.fold, n.clock().Wall), host: n.Settings.TLog.Host, open: slices.Contains(openLogs(n.Settings), f.Name()), policy: n.policy, stores: &n.stores, blobs: blobs, box: n.Box,
			logger: n.Logger.With("part", "tlog", "journal", f.Name())}
		l.tiles, _ = n.Settings.TilesAge() // checked before
		if n.Follow == nil {
			l.archive = func() archive.Config { return n.Settings.ArchiveConfig(n.stores.archive, n.Box, f.Name(), 0) }
		}
		all = append(all, l)
	}
	return all
}

// origin returns the origin of the log. It is false while the journal is not founded.
func (l *transparencyLog) origin(ctx context.Context) (o transparency.Origin, founded bool, err error) {
	id, founded, err := l.client.JournalID(ctx, l.Name())
	return transparency.Origin{Host: l.host, Journal: l.Name(), ID: id}, founded, err
}

// published returns the reader of the log, and the journal's id.
func (l *transparencyLog) published(ctx context.Context) (*transparency.Reader, scalar.ID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reader != nil {
		return l.reader, l.id, nil
	}
	o, founded, err := l.origin(ctx)
	if err != nil {
		return nil, scalar.ID{}, err
	}
	if !founded {
		return nil, scalar.ID{}, fmt.Errorf("%s is not founded yet: %w", l.Name(), fs.ErrNotExist)
	}
	l.id, l.reader = o.ID, l.newReader(o)
	return l.reader, l.id, nil
}

func (l *transparencyLog) newReader(o transparency.Origin) *transparency.Reader {
	pool := l.stores.pool
	return transparency.NewReader(o, l.store(o), projections.SignedTrees{Pool: pool}, projections.CosignedTrees{Pool: pool})
}

// tlogAgain is the wait after the key store or the log did not answer.
const tlogAgain = 2 * time.Second

// Run extends the tree until the context ends.
func (l *transparencyLog) Run(ctx context.Context) error {
	for {
		f, c, err := l.start(ctx)
		if err == nil {
			l.run.Store(f)
			return l.runAll(ctx, f, c)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.logger.Warn("the transparency log cannot be extended yet", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tlogAgain):
		}
	}
}

// start returns the follower of the log. It waits until the journal is founded. It makes the keys of a log that is new.
// The cosigner is nil if the log has no witnesses.
func (l *transparencyLog) start(ctx context.Context) (*transparency.Follower, *transparency.Cosigner, error) {
	if err := l.fold.Wait(ctx, 0); err != nil {
		return nil, nil, err
	}
	if err := l.fold.WaitTip(ctx); err != nil { // the last records may name the key that signed the published checkpoint
		return nil, nil, err
	}
	o, _, err := l.origin(ctx)
	if err != nil {
		return nil, nil, err
	}
	heads := projections.SignedTrees{Pool: l.stores.brief}
	last, err := heads.Published(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	store := l.store(o)
	signed, err := l.everSigned(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	roots, err := l.roots(ctx, o.ID, signed)
	if err != nil {
		return nil, nil, err
	}
	keys := l.checkpointKeys(o)
	if err := keys.check(ctx, signed, last); err != nil {
		return nil, nil, err
	}
	return transparency.NewFollower(transparency.Config{Origin: o, Store: store, Heads: heads, Signer: transparency.NewSigner(o, heads, keys), Root: roots,
		From:   func(at record.Position) transparency.Source { return journal.NewTail(l.client, l.Rules, 0, at) },
		Logger: l.logger}), l.cosigner(o, store), nil
}

// everSigned reports whether a tree of the log was signed, by Postgres and by the bucket, which outlives a Postgres that was lost.
func (l *transparencyLog) everSigned(ctx context.Context, o transparency.Origin) (bool, error) {
	head, err := projections.SignedTrees{Pool: l.stores.brief}.Head(ctx, o)
	if err != nil || head.Size > 0 {
		return true, err
	}
	note, err := transparency.NewStore(l.blobs, o).Checkpoint(ctx)
	return note != nil, err
}

// signed returns the sequence of the last record that a checkpoint covers. It is false if the log is not extended here.
func (l *transparencyLog) signed() (sequence int64, runs bool) {
	f := l.run.Load()
	if f == nil {
		return 0, false
	}
	return f.Status().Signed - 1, true
}

// treeGauges report the state of the transparency logs that this node extends.
type treeGauges struct {
	n                *Node
	unsigned, halted *prometheus.Desc
	stored           *prometheus.Desc
	witness          *prometheus.Desc
}

func newTreeGauges(n *Node) *treeGauges {
	journal := []string{"journal"}
	return &treeGauges{n,
		prometheus.NewDesc("perpetua_tlog_unsigned_seconds", "Time since this node read the oldest record that no checkpoint covers; 0 if there is none.", journal, nil),
		prometheus.NewDesc("perpetua_tlog_halted", "1 if the log contradicts what was signed, so that this node signs no more checkpoints.", journal, nil),
		prometheus.NewDesc("perpetua_tlog_stored_from", "Sequence of the first record with leaves in the bucket. The leaves of earlier records are made from the archive.", journal, nil),
		prometheus.NewDesc("perpetua_tlog_witness_up", "1 if the witness cosigned the checkpoint that this node last sent to it.", []string{"journal", "witness"}, nil)}
}

// Describe implements prometheus.Collector.
func (g *treeGauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- g.unsigned
	ch <- g.halted
	ch <- g.stored
	ch <- g.witness
}

// Collect implements prometheus.Collector.
func (g *treeGauges) Collect(ch chan<- prometheus.Metric) {
	for _, l := range g.n.logs {
		f := l.run.Load()
		if f == nil {
			continue
		}
		s, unsigned, halted := f.Status(), 0.0, 0.0
		if !s.Unsigned.IsZero() {
			unsigned = time.Since(s.Unsigned).Seconds()
		}
		if s.Halted {
			halted = 1
		}
		ch <- prometheus.MustNewConstMetric(g.unsigned, prometheus.GaugeValue, unsigned, l.Name())
		ch <- prometheus.MustNewConstMetric(g.halted, prometheus.GaugeValue, halted, l.Name())
		ch <- prometheus.MustNewConstMetric(g.stored, prometheus.GaugeValue, float64(s.StoredFrom), l.Name())
		if c := l.sends.Load(); c != nil {
			g.collectWitnesses(ch, l.Name(), c.Status())
		}
	}
}

func (g *treeGauges) collectWitnesses(ch chan<- prometheus.Metric, journal string, all []transparency.WitnessStatus) {
	for _, w := range all {
		up := 0.0
		if w.Err == nil {
			up = 1
		}
		ch <- prometheus.MustNewConstMetric(g.witness, prometheus.GaugeValue, up, journal, w.Name)
	}
}

// schedule returns the generations of the venue's secret as the fold has them, and the sequence of the fold's last record.
func (f *follower) schedule() (s epoch.Schedule, as int64) {
	f.fold.View(func(state decide.State, at record.Position) {
		as = at.Sequence
		if c, ok := state.(decide.Facts); ok {
			s = c.Commitments()
		}
	})
	return s, as
}

// epochKeys returns the epoch keys of the journal by sequence, in any order. published says that roots of the journal were published
// before.
func (l *transparencyLog) epochKeys(ctx context.Context, id scalar.ID, published bool) (func(context.Context, int64) (*commitment.EpochKey, error), error) {
	secrets := seal.NewGenerations(l.stores.owners.Store(), l.box)
	keys := commitment.NewKeys(id, secrets.Secret)
	schedule, as := l.schedule()
	keys.Schedule = schedule
	var err error
	if keys.First, err = firstSecret(ctx, l.blobs, secrets, id, !published && schedule.Generation() == 0); err != nil {
		return nil, err
	}
	return func(ctx context.Context, sequence int64) (*commitment.EpochKey, error) {
		if as < sequence-1 { // a record that the schedule lacks may have put another generation in force
			if err := l.fold.Wait(ctx, sequence-1); err != nil {
				return nil, err
			}
			keys.Schedule, as = l.schedule()
		}
		return keys.At(ctx, sequence)
	}, nil
}

// disclosure returns the classes of all records. The logs of a process share them, since compiling them takes some
// milliseconds of each start.
var disclosure = sync.OnceValues(func() (*disclose.Policy, error) { return disclose.Compile(schemas.Events()) })

func (l *transparencyLog) committer() (*commitment.Committer, error) {
	policy, err := disclosure()
	if err != nil {
		return nil, err
	}
	return commitment.NewCommitter(policy, l.Name())
}

// roots returns a function that computes record roots, in the order of the records. published says that roots of the journal
// were published before.
func (l *transparencyLog) roots(ctx context.Context, id scalar.ID, published bool) (func(context.Context, record.Entry) (commitment.Hash, error), error) {
	committer, err := l.committer()
	if err != nil {
		return nil, err
	}
	keys, err := l.epochKeys(ctx, id, published)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, e record.Entry) (commitment.Hash, error) {
		key, err := keys(ctx, e.Position.Sequence)
		if err != nil {
			return commitment.Hash{}, err
		}
		return committer.Root(key, e.Position.Sequence, e.Value)
	}, nil
}

// tlogInterface returns the configuration of the routes of the transparency logs.
func (n *Node) tlogInterface(auth *rest.Auth) tlog.Config {
	return tlog.Config{Auth: auth, Public: openLogs(n.Settings), Log: func(ctx context.Context, name string, partition int32) (tlog.Log, scalar.ID, error) {
		l, err := n.logs.of(name, partition)
		if err != nil {
			return nil, scalar.ID{}, err
		}
		reader, id, err := l.published(ctx)
		return servedLog{reader, l}, id, err
	}}
}
