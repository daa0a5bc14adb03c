package node

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// telemetry is what a node tells its operator of itself.
type telemetry struct {
	metrics *prometheus.Registry
	tracer  *trace.Tracer // nil unless asked for
	debug   *debugServer  // nil unless asked for
}

// openTelemetry opens the listener for profiles, if one is asked for.
func openTelemetry(ctx context.Context, c Config) (t telemetry, err error) {
	t.metrics = prometheus.NewRegistry()
	t.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if t.tracer, err = openTracer(ctx, c, t.metrics); err != nil {
		return t, err
	}
	if c.Settings.DebugListen != "" {
		t.debug, err = listenDebug(ctx, c.Settings.DebugListen)
	}
	return t, err
}

// openTracer returns the tracer that the settings ask for, nil for none.
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
		endpoint = "" // the exporter reads those itself, and knows better what each of them means
	}
	return trace.Open(ctx, trace.Config{Endpoint: endpoint, Ratio: ratio, Node: c.ID, Build: build, Logger: c.Logger.With("part", "trace"), Metrics: metrics})
}

// close hands over the last spans, if the collector takes them soon.
func (t *telemetry) close(log *slog.Logger) {
	t.debug.close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := t.tracer.Close(ctx); err != nil {
		log.Warn("the last traces were not sent", "error", err)
	}
}
