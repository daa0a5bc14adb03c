package projections

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// runnerMetrics are the metrics of one runner.
type runnerMetrics struct {
	records  prometheus.Counter
	batches  prometheus.Histogram
	sizes    prometheus.Histogram
	failures prometheus.Counter
	sequence prometheus.GaugeFunc
	active   prometheus.GaugeFunc
}

func newRunnerMetrics(r *Runner) runnerMetrics {
	labels := prometheus.Labels{"journal": r.name}
	return runnerMetrics{
		records: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "perpetua", Subsystem: "projections",
			Name: "records_total", Help: "Records applied to the read models by this process.", ConstLabels: labels}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "perpetua", Subsystem: "projections",
			Name: "transaction_seconds", Help: "Time of a transaction that applies a batch of records.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14), ConstLabels: labels}),
		sizes: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "perpetua", Subsystem: "projections",
			Name: "transaction_records", Help: "Records that one transaction applies.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 7), ConstLabels: labels}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "perpetua", Subsystem: "projections",
			Name: "failures_total", Help: "Attempts that failed and were tried again.", ConstLabels: labels}),
		sequence: prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "perpetua", Subsystem: "projections",
			Name: "applied_sequence", Help: "The sequence that the read models stand at.", ConstLabels: labels},
			func() float64 { return float64(r.Position().Sequence) }),
		active: prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "perpetua", Subsystem: "projections",
			Name: "active", Help: "1 if this process applies records, 0 while it stands by.", ConstLabels: labels},
			func() float64 {
				if r.Active() {
					return 1
				}
				return 0
			}),
	}
}

func (m runnerMetrics) applied(records int, took time.Duration) {
	m.records.Add(float64(records))
	m.batches.Observe(took.Seconds())
	m.sizes.Observe(float64(records))
}

// Describe implements prometheus.Collector.
func (r *Runner) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(r, ch) }

// Collect implements prometheus.Collector.
func (r *Runner) Collect(ch chan<- prometheus.Metric) {
	m := r.metrics
	for _, c := range []prometheus.Collector{m.records, m.batches, m.sizes, m.failures, m.sequence, m.active} {
		c.Collect(ch)
	}
}
