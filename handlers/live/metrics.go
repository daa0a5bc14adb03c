package live

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts the hub's activity. Frequent counters are atomics, which are read when metrics are collected.
type metrics struct {
	sessions      prometheus.Gauge
	subscriptions *prometheus.GaugeVec
	requests      *prometheus.CounterVec
	errors        *prometheus.CounterVec
	slow          prometheus.Counter
	queued        atomic.Int64 // may be briefly negative: queueing may be counted after writing
	sent          atomic.Int64
	encoded       atomic.Int64
	depth, out    prometheus.Collector
	made          prometheus.Collector
}

func newMetrics() *metrics {
	m := &metrics{
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "perpetua_live_sessions", Help: "WebSocket connections that are open."}),
		subscriptions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "perpetua_live_subscriptions", Help: "Subscriptions, by channel."}, []string{"channel"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "perpetua_live_requests_total", Help: "Requests on WebSocket connections, by operation."}, []string{"op"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "perpetua_live_errors_total", Help: "Error messages sent, by code."}, []string{"code"}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "perpetua_live_slow_consumers_total", Help: "Connections closed because they read too slowly."}),
	}
	m.errors.WithLabelValues(string(SlowConsumer)) // create the series that alerts use before the first error
	m.depth = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "perpetua_live_queued_messages", Help: "Messages that wait to be written, of all connections."},
		func() float64 { return float64(max(0, m.queued.Load())) })
	m.out = prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "perpetua_live_messages_sent_total", Help: "Messages written to connections."},
		func() float64 { return float64(m.sent.Load()) })
	m.made = prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "perpetua_live_messages_encoded_total", Help: "Messages encoded for the channels, each once for all its readers."},
		func() float64 { return float64(m.encoded.Load()) })
	return m
}

// fullest returns the fill ratio of the fullest queue of all connections. At 1, the connection is closed.
func (h *Hub) fullest() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	full := 0.0
	for s := range h.registry.sessions {
		s.mu.Lock()
		full = max(full, float64(s.out.messages)/float64(h.limits.QueueMessages), float64(s.out.bytes)/float64(h.limits.QueueBytes))
		s.mu.Unlock()
	}
	return full
}

// Collectors returns the hub's metrics for registration.
func (h *Hub) Collectors() []prometheus.Collector {
	m := h.metrics
	return []prometheus.Collector{m.sessions, m.subscriptions, m.requests, m.errors, m.slow, m.depth, m.out, m.made,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "perpetua_live_fullest_queue_ratio",
			Help: "How full the fullest queue of a connection is; at 1 the connection is closed as slow."}, h.fullest)}
}
