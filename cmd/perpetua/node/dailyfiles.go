package node

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	handler "github.com/perpetua-exchange/perpetua/handlers/marketdata"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/marketdata"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// dailyFiles are the daily files of public market data in the node's bucket.
type dailyFiles struct {
	maker *marketdata.Maker // nil unless this node makes them
	made  bool              // whether the setting asks for files
	// A store limits its concurrent questions to the bucket. The maker has its own one, so that downloads do not keep it waiting.
	serving, making dailyStore
}

// dailyStore is a store of the daily files.
type dailyStore struct {
	mu    sync.Mutex
	store *marketdata.Store // nil before the journal is founded
}

// openDailyFiles creates the maker, if the node has the role archive and the setting asks for files.
func (n *Node) openDailyFiles() error {
	age, made, err := n.Settings.PublicDataAge()
	if n.daily.made = made; err != nil || !made || !n.Roles.Archive {
		return err
	}
	venue, err := n.followers.of(journals.Trading)
	if err != nil {
		return err
	}
	n.daily.maker = marketdata.NewMaker(marketdata.MakerConfig{Store: n.dailyStore(&n.daily.making), Keep: age,
		From:   func(at record.Position) marketdata.Source { return journal.NewTail(venue.client, venue.Rules, 0, at) },
		Logger: n.Logger.With("part", "daily files", "journal", venue.Name())})
	return nil
}

// dailyStore returns a function that opens d. It returns nil if the journal is not founded yet.
func (n *Node) dailyStore(d *dailyStore) func(ctx context.Context) (*marketdata.Store, error) {
	return func(ctx context.Context) (*marketdata.Store, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.store != nil {
			return d.store, nil
		}
		id, founded, err := n.stores.client.JournalID(ctx, journals.Trading)
		if err != nil || !founded {
			return nil, err
		}
		d.store = marketdata.NewStore(blob.NewStore(n.stores.snapshots.bucket), n.Settings.PublicDataPrefix(), id)
		return d.store, nil
	}
}

// dataInterface returns the configuration of the routes below /data/.
func (n *Node) dataInterface(venue *follower) handler.Config {
	return handler.Config{Store: n.dailyStore(&n.daily.serving), Made: n.daily.made, LogTime: func() scalar.Time { return scalar.Time(venue.time.Load()) },
		TimeOf: func(ctx context.Context, sequence int64) (scalar.Time, bool, error) {
			return projections.TimeOf(ctx, n.stores.pool, record.LogPosition{Journal: journals.Trading, Sequence: sequence})
		}}
}

// dailyMetrics report how far this node has made daily files.
type dailyMetrics struct {
	n                                           *Node
	day, behind, sequence, work, failed, halted *prometheus.Desc
}

func newDailyMetrics(n *Node) *dailyMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("perpetua_data_"+name, help, nil, nil)
	}
	return &dailyMetrics{n,
		desc("last_day_timestamp_seconds", "Beginning of the last UTC day with daily files of market data, as Unix time; 0 before the first."),
		desc("behind_seconds", "Time since the end of the UTC day of the last record that was read for daily files; 0 while the day is not over."),
		desc("sequence", "Sequence of the last record of the journal trading that was read for daily files; -1 before the first."),
		desc("work_seconds_total", "Time that this node has spent on records and on the bucket to make daily files."),
		desc("failures_total", "Errors of the bucket, of the log, or of the archive while daily files are made. Each is retried."),
		desc("halted", "1 if the log is not the one from which the published daily files were made, so that this node makes none.")}
}

// Describe implements prometheus.Collector.
func (m *dailyMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.day, m.behind, m.sequence, m.work, m.failed, m.halted} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *dailyMetrics) Collect(ch chan<- prometheus.Metric) {
	if m.n.daily.maker == nil {
		return
	}
	s := m.n.daily.maker.Status()
	if !s.Runs {
		return
	}
	day, _ := marketdata.ParseDate(s.Day) // 0 if there is none
	ch <- prometheus.MustNewConstMetric(m.day, prometheus.GaugeValue, float64(day/scalar.Second))
	behind := scalar.Time(0)
	if reading, err := marketdata.ParseDate(s.Reading); err == nil {
		behind = max(0, scalar.TimeOf(time.Now())-reading-scalar.Day)
	}
	ch <- prometheus.MustNewConstMetric(m.behind, prometheus.GaugeValue, float64(behind/scalar.Second))
	ch <- prometheus.MustNewConstMetric(m.sequence, prometheus.GaugeValue, float64(s.Sequence))
	ch <- prometheus.MustNewConstMetric(m.work, prometheus.CounterValue, s.Working.Seconds())
	ch <- prometheus.MustNewConstMetric(m.failed, prometheus.CounterValue, float64(s.Failures))
	ch <- prometheus.MustNewConstMetric(m.halted, prometheus.GaugeValue, flag(s.Halted))
}
