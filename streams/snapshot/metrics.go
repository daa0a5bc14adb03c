package snapshot

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of a store and its makers, by journal.
type metrics struct {
	sequence *prometheus.GaugeVec     // sequence of the newest snapshot that this process has seen
	made     *prometheus.GaugeVec     // time of this process's last snapshot
	bytes    *prometheus.GaugeVec     // size of that snapshot
	seconds  *prometheus.HistogramVec // duration of making a snapshot
	held     *prometheus.HistogramVec // part of that during which the fold was blocked
	failures *prometheus.CounterVec
	ignored  *prometheus.CounterVec // by reason
	loads    *prometheus.HistogramVec
	loaded   *prometheus.GaugeVec // sequence of the snapshot that the fold started from
}

func newMetrics() *metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "perpetua", Subsystem: "snapshot", Name: name, Help: help}, []string{"journal"})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "perpetua", Subsystem: "snapshot", Name: name, Help: help},
			append([]string{"journal"}, labels...))
	}
	times := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "perpetua", Subsystem: "snapshot", Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10)}, []string{"journal"})
	}
	return &metrics{
		sequence: gauge("sequence", "The sequence of the newest snapshot that this process knows of."),
		made:     gauge("made_timestamp_seconds", "When this process made its last snapshot."),
		bytes:    gauge("bytes", "The size of the last snapshot that this process made."),
		seconds:  times("make_seconds", "Time of making a snapshot."),
		held:     times("hold_seconds", "Time that the node's own fold was held still for a snapshot."),
		failures: counter("failures_total", "Snapshots that could not be made."),
		ignored:  counter("ignored_total", "Snapshots that were found and not used, by reason.", "reason"),
		loads:    times("load_seconds", "Time of loading a snapshot."),
		loaded:   gauge("loaded_sequence", "The sequence of the snapshot that this process last started a fold from."),
	}
}

// begin creates the series of a journal with the value 0.
func (m *metrics) begin(journal string) {
	m.failures.WithLabelValues(journal)
	for _, reason := range []string{"unreachable", "version", "damaged"} {
		m.ignored.WithLabelValues(journal, reason)
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.sequence, m.made, m.bytes, m.seconds, m.held, m.failures, m.ignored, m.loads, m.loaded}
}

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s.metrics.all() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	for _, c := range s.metrics.all() {
		c.Collect(ch)
	}
}
