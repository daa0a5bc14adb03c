package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// archiver archives one of the node's journals.
type archiver struct {
	*archive.Sealer
	journal string
}

// archivers returns the archivers of all journals. They use the bucket of --archive-url.
func (n *Node) archivers() (all []archiver, err error) {
	every, err := tailEvery(n.Settings)
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
		all = append(all, archiver{archive.NewSealer(archive.SealerConfig{
			Config:    cfg,
			From:      func(at record.Position) archive.Source { return journal.NewRawReader(f.client, f.Rules, 0, at) },
			Copies:    []archive.Heads{projections.ArchiveHeads{Pool: n.stores.pool}, n.Settings.ArchiveHeads()},
			Logger:    n.Logger.With("part", "archive", "journal", f.Name()),
			TailEvery: every,
		}), f.Name()})
	}
	return all, nil
}

// tailEvery returns the age from which records are in the tail of the archive.
func tailEvery(s *settings.Settings) (time.Duration, error) {
	every, err := time.ParseDuration(s.Archive.TailEvery)
	if err != nil || every < time.Second {
		return 0, settings.Usagef("--archive-tail takes a time of a second or more, like 1h, not %q", s.Archive.TailEvery)
	}
	return every, nil
}

// copyHeadsEvery is how often a node that does not archive looks for a newer head.
const copyHeadsEvery = time.Minute

// copyHeads keeps the heads of the archives in the data folder of a node that another node archives for, until the context ends.
func (n *Node) copyHeads(ctx context.Context) error {
	from, to := projections.ArchiveHeads{Pool: n.stores.pool}, n.Settings.ArchiveHeads()
	log := n.Logger.With("part", "archive")
	for {
		for _, f := range n.followers {
			if err := copyHead(ctx, from, to, f.Name()); err != nil && ctx.Err() == nil {
				log.Log(ctx, slog.LevelWarn, "the head of the archive is not copied to the data folder", "journal", f.Name(), "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(copyHeadsEvery):
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

// archiveMetrics report how far this node has archived its journals.
type archiveMetrics struct {
	n                                                 *Node
	sealed, tail, values, bytes, work, failed, halted *prometheus.Desc
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
		desc("halted", "1 if the log does not continue the archive, so that this node archives nothing more.")}
}

// Describe implements prometheus.Collector.
func (m *archiveMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.sealed, m.tail, m.values, m.bytes, m.work, m.failed, m.halted} {
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
		halted := 0.0
		if s.Halted {
			halted = 1
		}
		for d, v := range map[*prometheus.Desc]float64{m.sealed: float64(s.Sealed), m.tail: float64(s.Tailed), m.values: float64(s.Values),
			m.bytes: float64(s.Bytes), m.halted: halted} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, a.journal)
		}
		ch <- prometheus.MustNewConstMetric(m.work, prometheus.CounterValue, s.Working.Seconds(), a.journal)
		ch <- prometheus.MustNewConstMetric(m.failed, prometheus.CounterValue, float64(s.Failures), a.journal)
	}
}
