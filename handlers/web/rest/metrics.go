package rest

import (
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

type metrics struct {
	seconds *prometheus.HistogramVec
	active  prometheus.Gauge
	// problems counts problems by code, which is more specific than the status.
	problems *prometheus.CounterVec
	limited  *prometheus.CounterVec // requests refused by a rate limit, by its policy

	// known caches the histogram of each series, because a lookup by labels costs more than the observation. The map
	// is replaced and never modified. It has at most one entry for each combination of route, method and status.
	known atomic.Pointer[map[series]prometheus.Observer]
}

// series holds the labels of a histogram.
type series struct {
	route, method string
	status        int
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "perpetua_http_request_duration_seconds",
			Help:    "Time from a request to its answer, by route, method and status.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method", "route", "status"}),
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "perpetua_http_requests_active", Help: "Requests that are being answered.",
		}),
	}
	m.problems = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "perpetua_http_problems_total", Help: "Requests that were answered with a problem, by its code."}, []string{"code"})
	for _, code := range []string{submit.CodeNotAccepted, submit.CodeOutcomeUnknown, record.CodeDiverged, "INTERNAL"} {
		m.problems.WithLabelValues(code) // create the series that alerts use before the first problem
	}
	m.limited = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "perpetua_http_rate_limited_total", Help: "Requests refused by a rate limit: of a user, an api_key, or a network."}, []string{"policy"})
	for _, policy := range access.Policies() {
		m.limited.WithLabelValues(policy) // a rate needs the series before the first refusal
	}
	m.known.Store(&map[series]prometheus.Observer{})
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.seconds, m.active, m.problems, m.limited} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register request metrics: %w", err)
		}
	}
	return m, nil
}

// of returns the histogram of a series.
func (m *metrics) of(s series) prometheus.Observer {
	known := m.known.Load()
	if o, ok := (*known)[s]; ok {
		return o
	}
	o := m.seconds.WithLabelValues(s.method, s.route, strconv.Itoa(s.status))
	more := maps.Clone(*known)
	more[s] = o
	m.known.CompareAndSwap(known, &more) // if another request was faster, the next one tries again
	return o
}
