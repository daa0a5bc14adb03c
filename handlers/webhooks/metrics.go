package webhooks

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// metrics counts attempts and measures their duration.
type metrics struct {
	attempts   *prometheus.CounterVec
	took       prometheus.Histogram
	unrecorded prometheus.Gauge
}

// These are the outcomes of attempts.
const (
	acknowledged = "acknowledged"
	refused      = "refused"    // a status other than 200
	unanswered   = "unanswered" // no response
	unsent       = "unsent"     // no response because the venue's egress failed
)

func newMetrics() metrics {
	m := metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "perpetua_webhook_attempts_total", Help: "Attempts to deliver to receivers of webhooks, by outcome."}, []string{"outcome"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "perpetua_webhook_attempt_seconds", Help: "How long attempts took.", Buckets: []float64{.005, .02, .1, .5, 2, 5, 10, 15}}),
		unrecorded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "perpetua_webhook_attempts_unrecorded", Help: "Attempts that were made and are not known to be in the log yet."}),
	}
	for _, outcome := range []string{acknowledged, refused, unanswered, unsent} { // so that alerts find every series
		m.attempts.WithLabelValues(outcome)
	}
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.attempts, m.took, m.unrecorded}
}

func (m *metrics) observe(a attempt) {
	m.attempts.WithLabelValues(a.outcome()).Inc()
	m.took.Observe(a.took.Seconds())
}

func (a *attempt) outcome() string {
	switch {
	case a.status == http.StatusOK:
		return acknowledged
	case a.status != 0:
		return refused
	case !webhook.ReceiverFailed(false, a.failure):
		return unsent
	}
	return unanswered
}
