package node

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/perpetua-exchange/perpetua/streams/trace"
	"github.com/perpetua-exchange/perpetua/streams/trace/export"
)

// telemetry holds a node's metrics, tracer and profiles.
type telemetry struct {
	metrics *prometheus.Registry
	tracer  *trace.Tracer // nil unless configured
	debug   *debugServer  // nil unless configured
}

// openTelemetry creates the metrics and the tracer, and opens the listener for profiles if one is configured.
func openTelemetry(ctx context.Context, c Config) (t telemetry, err error) {
	t.metrics = prometheus.NewRegistry()
	t.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if t.tracer, err = openTracer(ctx, c, t.metrics); err != nil {
		return t, err
	}
	if c.Settings.HTTP.Debug != "" {
		t.debug, err = listenDebug(ctx, c.Settings.HTTP.Debug)
	}
	return t, err
}

// openTracer returns the configured tracer, or nil if tracing is off.
func openTracer(ctx context.Context, c Config, metrics prometheus.Registerer) (*trace.Tracer, error) {
	s := c.Settings
	if s.Trace.Endpoint == "" {
		return nil, nil
	}
	ratio, err := traceRatio(s)
	if err != nil {
		return nil, err
	}
	endpoint := s.Trace.Endpoint
	if strings.HasPrefix(s.Source("trace-endpoint"), "OTEL_") {
		endpoint = "" // the exporter reads the OTEL_ variables, which differ in meaning
	}
	return export.Open(ctx, export.Config{Endpoint: endpoint, Ratio: ratio, Node: c.ID, Build: build, Logger: c.Logger.With("part", "trace"), Metrics: metrics})
}

// close stops the listener and flushes the last spans, if the collector accepts them soon.
func (t *telemetry) close(log *slog.Logger) {
	t.debug.close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := t.tracer.Close(ctx); err != nil {
		log.Warn("the last traces were not sent", "error", err)
	}
}
