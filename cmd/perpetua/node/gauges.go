package node

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/version"
	"github.com/perpetua-exchange/perpetua/streams/fence"
)

// gauges report the state of a node when the metrics are collected: its readers' positions, its Postgres connections,
// whether it is ready. They cost nothing between collections.
type gauges struct {
	n *Node

	lag, sequence, time              *prometheus.Desc
	info, ready, fence               *prometheus.Desc
	connections, limit               *prometheus.Desc
	acquired, waited, empty, aborted *prometheus.Desc
}

func newGauges(n *Node) *gauges {
	reader := []string{"journal", "reader"}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("perpetua_"+name, help, labels, nil)
	}
	g := &gauges{n: n,
		lag:      desc("reader_lag_records", "Records of the log, valid or not, that a reader has not applied. Sockets follow the fold.", reader...),
		sequence: desc("reader_sequence", "The sequence of the last record that a reader has applied.", reader...),
		time:     desc("reader_record_timestamp_seconds", "The Unix time of the last record that a reader has applied.", reader...),
		info:     desc("node_info", "1, with what this node is and does.", "node", "build", "roles"),
		ready:    desc("ready", "1 while /readyz answers 200."),
		fence:    desc("fence_status", "1 for the status of the venue's fence as this node sees it, 0 for the others.", "status"),

		connections: desc("postgres_connections", "Connections of the pool that queries use, by state; the projections have one more each.", "state"),
		limit:       desc("postgres_connections_limit", "As many connections the pool may open."),
		acquired:    desc("postgres_acquires_total", "Connections taken from the pool."),
		waited:      desc("postgres_acquire_wait_seconds_total", "Time that queries waited for a connection while all were taken."),
		empty:       desc("postgres_acquire_waits_total", "Times that a query found all connections taken."),
		aborted:     desc("postgres_acquires_canceled_total", "Times that a query gave up waiting for a connection."),
	}
	return g
}

// buildInfo returns a metric that is always 1 and has the build in its labels.
func buildInfo(v version.Info) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "perpetua_build_info", Help: "1, with the version of this build in its labels.",
		ConstLabels: prometheus.Labels{"version": v.Version, "commit": v.Commit, "log_format": strconv.Itoa(v.LogFormat), "rules": v.RulesText(), "go_version": v.Go}},
		func() float64 { return 1 })
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.lag, g.sequence, g.time, g.info, g.ready, g.fence,
		g.connections, g.limit, g.acquired, g.waited, g.empty, g.aborted} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, f := range g.n.followers {
		g.readers(f, gauge)
	}
	for _, l := range g.n.logs {
		if signed, runs := l.signed(); runs {
			unseen := max(0, l.client.Contact(l.Name()).End()-l.fold.NextOffset())
			gauge(g.lag, float64(unseen+max(0, l.fold.Position().Sequence-signed)), l.Name(), "tlog")
			gauge(g.sequence, float64(signed), l.Name(), "tlog")
		}
	}
	for i, f := range g.n.followers {
		if s := g.n.archives[i].Status(); s.Runs {
			unseen := max(0, f.client.Contact(f.Name()).End()-f.fold.NextOffset())
			gauge(g.lag, float64(unseen+max(0, f.fold.Position().Sequence-s.Read)), f.Name(), "archive")
			gauge(g.sequence, float64(s.Read), f.Name(), "archive")
		}
	}
	gauge(g.info, 1, g.n.ID, build, strings.Join(g.n.Roles.Names(), ","))
	ready := 0.0
	if g.n.readiness(context.Background()).ready() {
		ready = 1
	}
	gauge(g.ready, ready)
	g.pool(ch, g.n.stores.pool.Stat())
	if g.n.fence.watch == nil {
		return
	}
	status := g.n.fence.watch.View().Status
	for _, s := range fence.Statuses() {
		is := 0.0
		if s == status {
			is = 1
		}
		gauge(g.fence, is, string(s))
	}
}

// readers reports the positions of a journal's readers. It reads the slowest reader first and the end of the log last,
// so that no lag is reported too small.
func (g *gauges) readers(f *follower, gauge func(*prometheus.Desc, float64, ...string)) {
	name := f.Name()
	rows := f.runner.Checkpoint()
	at, observed := f.fold.Position(), f.fold.NextOffset()
	var standby int64
	standing := false
	if g.n.engine.engine != nil {
		standby, standing = g.n.engine.engine.Observed(name, 0)
	}
	end := f.client.Contact(name).End()
	unseen := max(0, end-observed)
	gauge(g.lag, float64(unseen), name, "fold")
	gauge(g.sequence, float64(at.Sequence), name, "fold")
	gauge(g.time, float64(f.time.Load())/1e6, name, "fold")
	if g.n.Roles.Projector {
		// The offset of a checkpoint is a hint, and differs if the log was copied. So the lag of the rows behind the
		// fold is the difference of their sequences.
		gauge(g.lag, float64(unseen+max(0, at.Sequence-rows.Position.Sequence)), name, "projections")
		gauge(g.sequence, float64(rows.Position.Sequence), name, "projections")
		gauge(g.time, float64(rows.Time)/1e6, name, "projections")
	}
	if standing {
		gauge(g.lag, float64(max(0, end-standby)), name, "standby")
	}
}

func (g *gauges) pool(ch chan<- prometheus.Metric, s *pgxpool.Stat) {
	for state, n := range map[string]int32{"used": s.AcquiredConns(), "idle": s.IdleConns(), "opening": s.ConstructingConns()} {
		ch <- prometheus.MustNewConstMetric(g.connections, prometheus.GaugeValue, float64(n), state)
	}
	ch <- prometheus.MustNewConstMetric(g.limit, prometheus.GaugeValue, float64(s.MaxConns()))
	for d, v := range map[*prometheus.Desc]float64{g.acquired: float64(s.AcquireCount()), g.empty: float64(s.EmptyAcquireCount()),
		g.waited: s.EmptyAcquireWaitTime().Seconds(), g.aborted: float64(s.CanceledAcquireCount())} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
}
