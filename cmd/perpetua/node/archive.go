package node

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/projections/lake"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// archiver archives one of the node's journals.
type archiver struct {
	*archive.Sealer
	journal string
	lake    *lake.Filler // nil unless the setting asks for it and the journal has tables
}

// archivers returns the archivers of all journals. They use the bucket of --archive-url.
func (n *Node) archivers(ctx context.Context) (all []archiver, err error) {
	every, err := tailEvery(n.Settings)
	if err != nil {
		return nil, err
	}
	retention, err := n.retention(ctx)
	if err != nil {
		return nil, err
	}
	codec, err := archive.NewCodec()
	if err != nil {
		return nil, err
	}
	for _, f := range n.followers {
		cfg := n.Settings.ArchiveConfig(n.stores.archive, n.Box, f.Name(), 0)
		cfg.UseCodec(codec)
		cfg.Retention, cfg.Encoded = retention, f.client.Encoded(submit.Shard{Journal: f.Name()})
		sealer := archive.NewSealer(archive.SealerConfig{
			Config:    cfg,
			From:      func(at record.Position) archive.Source { return journal.NewRawReader(f.client, f.Rules, 0, at) },
			Copies:    []archive.Heads{projections.ArchiveHeads{Pool: n.stores.brief}, n.Settings.ArchiveHeads()},
			Logger:    n.archiveLog(f.Name()),
			TailEvery: every,
		})
		filler, err := n.filler(f.Rules, cfg, sealer)
		if err != nil {
			return nil, err
		}
		all = append(all, archiver{sealer, f.Name(), filler})
	}
	return all, nil
}

// archiveLog returns the logger of the archive of a journal. It names the bucket, because an archive that lacks records may be in
// another one.
func (n *Node) archiveLog(journal string) *slog.Logger {
	log := n.Logger.With("part", "archive", "journal", journal)
	at, err := n.Settings.ArchiveBucketURL()
	if err != nil {
		return log
	}
	u, err := url.Parse(at)
	if err != nil { // its text may hold a secret
		return log
	}
	return log.With("bucket", u.Redacted())
}

// retention returns how long the archive is locked. A node that archives does not start if the bucket can't lock objects.
func (n *Node) retention(ctx context.Context) (r blob.Retention, err error) {
	at, err := n.Settings.ArchiveBucketURL()
	if err != nil {
		return r, err
	}
	if r, err = n.Settings.ArchiveRetention(at); err != nil || !n.Roles.Archive {
		return r, err
	}
	bucket := n.stores.archived
	if bucket == nil {
		bucket = n.stores.snapshots.bucket
	}
	doubt, err := settings.CheckLocks(ctx, r, bucket, at)
	if doubt != nil {
		n.Logger.With("part", "archive").Warn("the bucket does not tell whether it can lock objects; if it can't, nothing is archived", "error", doubt)
	}
	return r, err
}

// filler returns what fills the DuckLake catalog from the ranges that a sealer has sealed, or nil.
func (n *Node) filler(rules decide.Rules, cfg archive.Config, sealer *archive.Sealer) (*lake.Filler, error) {
	if !n.Settings.Archive.Lake || !slices.Contains(dataset.Journals(), cfg.Journal) {
		return nil, nil
	}
	at, err := n.Settings.LakeURL()
	if err != nil {
		return nil, err
	}
	return lake.NewFiller(lake.FillerConfig{
		Archive: cfg, Rules: rules, Catalog: lake.Catalog{Pool: n.stores.pool, Data: at}, Prefix: n.Settings.LakePrefix(),
		Sealed: func() int64 { return sealer.Status().Sealed },
		Logger: n.Logger.With("part", "lake", "journal", cfg.Journal),
	}), nil
}

// tailEvery returns the age from which records are in the tail of the archive.
func tailEvery(s *settings.Settings) (time.Duration, error) {
	every, err := time.ParseDuration(s.Archive.TailEvery)
	if err != nil || every < time.Second {
		return 0, settings.Usagef("--archive-tail takes a time of a second or more, like 1h, not %q", s.Archive.TailEvery)
	}
	return every, nil
}

// copyEvery is how often a node looks for newer heads and bases of other nodes.
const copyEvery = time.Minute

// copyHeads keeps the bases of the logs, and the heads of the archives unless this node archives, in the data folder until the
// context ends. Another node may trim and archive, and each data folder has the copies.
func (n *Node) copyHeads(ctx context.Context) error {
	heads, bases := projections.ArchiveHeads{Pool: n.stores.brief}, projections.Bases{Pool: n.stores.brief}
	log := n.Logger.With("part", "archive")
	warn := func(f *follower, err error, what string) {
		if err != nil && ctx.Err() == nil {
			log.Warn("the "+what+" is not copied to the data folder", "journal", f.Name(), "error", err)
		}
	}
	for {
		for _, f := range n.followers {
			if !n.Roles.Archive { // its archiver keeps the head
				warn(f, copyHead(ctx, heads, n.Settings.ArchiveHeads(), f.Name()), "head of the archive")
			}
			warn(f, copyBase(ctx, bases, n.folderBases(), f.Name()), "base of the log")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(copyEvery):
		}
	}
}

func copyHead(ctx context.Context, from, to archive.Heads, name string) error {
	h, err := from.Head(ctx, name, 0)
	if err != nil || h == nil {
		return err
	}
	return to.Keep(ctx, *h)
}

// copyBase copies a base, unless the other place has it or a newer one.
func copyBase(ctx context.Context, from base.Source, to base.Keeper, name string) error {
	b, err := from.Base(ctx, name, 0)
	if err != nil || b == nil {
		return err
	}
	stored, err := to.Base(ctx, name, 0)
	if err != nil {
		return err
	}
	if stored != nil && (*stored == *b || stored.Sequence > b.Sequence && stored.Contradicts(*b) == "") {
		return nil
	}
	return to.Keep(ctx, *b)
}

// alone is a Keeper to which one base at a time is written.
type alone struct {
	base.Keeper
	mu *sync.Mutex
}

// Keep implements base.Keeper.
func (a alone) Keep(ctx context.Context, b record.Base) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Keeper.Keep(ctx, b)
}

// folderBases returns the bases in the data folder, to which a trim and copyHeads write.
func (n *Node) folderBases() base.Keeper { return alone{n.Settings.Bases(), &n.keeping} }

// archiveMetrics report how far this node has archived its journals.
type archiveMetrics struct {
	n                                                 *Node
	sealed, tail, values, bytes, work, failed, halted *prometheus.Desc
	lake                                              lakeDescs
}

func newArchiveMetrics(n *Node) *archiveMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("perpetua_archive_"+name, help, []string{"journal"}, nil)
	}
	return &archiveMetrics{n,
		desc("sealed_sequence", "Sequence of the last record in a full range of the archive; -1 if there is none."),
		desc("tail_sequence", "Sequence of the last record in a full range or in the tail; -1 if there is none."),
		desc("value_bytes", "Bytes of the values of the records in the archive."),
		desc("object_bytes", "Bytes of the objects in which the archive holds them."),
		desc("work_seconds_total", "Time that this node has spent on encoding records and writing them to the bucket, with its waits for the bucket."),
		desc("failures_total", "Errors of the bucket, of the archive, or of the copies of its head. Each is retried."),
		desc("halted", "1 if the log does not continue the archive, so that this node archives nothing more."),
		newLakeDescs()}
}

// Describe implements prometheus.Collector.
func (m *archiveMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.sealed, m.tail, m.values, m.bytes, m.work, m.failed, m.halted, m.lake.sequence, m.lake.work, m.lake.failed, m.lake.halted} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *archiveMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, a := range m.n.archives {
		s := a.Status()
		if !s.Runs {
			continue
		}
		for d, v := range map[*prometheus.Desc]float64{m.sealed: float64(s.Sealed), m.tail: float64(s.Tailed), m.values: float64(s.Values),
			m.bytes: float64(s.Bytes), m.halted: flag(s.Halted)} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, a.journal)
		}
		ch <- prometheus.MustNewConstMetric(m.work, prometheus.CounterValue, s.Working.Seconds(), a.journal)
		ch <- prometheus.MustNewConstMetric(m.failed, prometheus.CounterValue, float64(s.Failures), a.journal)
		m.lake.collect(&a, ch)
	}
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

// lakeDescs describe how far this node has filled the DuckLake catalog.
type lakeDescs struct{ sequence, work, failed, halted *prometheus.Desc }

func newLakeDescs() lakeDescs {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("perpetua_lake_"+name, help, []string{"journal"}, nil)
	}
	return lakeDescs{
		desc("sequence", "Sequence of the last record whose rows are in files of the DuckLake catalog; -1 if there is none."),
		desc("work_seconds_total", "Time that this node has spent on writing ranges as Parquet files and adding them to the catalog."),
		desc("failures_total", "Errors of the bucket, of the archive, or of the catalog. Each is retried."),
		desc("halted", "1 if the archive is not the one from which the catalog was filled, so that this node adds nothing more.")}
}

func (d *lakeDescs) collect(a *archiver, ch chan<- prometheus.Metric) {
	if a.lake == nil {
		return
	}
	s := a.lake.Status()
	ch <- prometheus.MustNewConstMetric(d.sequence, prometheus.GaugeValue, float64(s.Sequence), a.journal)
	ch <- prometheus.MustNewConstMetric(d.work, prometheus.CounterValue, s.Working.Seconds(), a.journal)
	ch <- prometheus.MustNewConstMetric(d.failed, prometheus.CounterValue, float64(s.Failures), a.journal)
	ch <- prometheus.MustNewConstMetric(d.halted, prometheus.GaugeValue, flag(s.Halted), a.journal)
}
