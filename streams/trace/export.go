package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Config says where the spans of a process go.
type Config struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP, /v1/traces being understood; "" for what the
	// variables OTEL_EXPORTER_OTLP_… say. They also give headers, certificates, timeouts and compression.
	Endpoint string
	Ratio    float64 // of all commands, from 0 to 1
	Node     string
	Build    string
	Logger   *slog.Logger
	Metrics  prometheus.Registerer // nil for none
}

// Open returns a tracer whose spans go to a collector, in batches and behind everybody's back: a collector that is away
// or slow costs spans, and never a request its time.
func Open(ctx context.Context, c Config) (*Tracer, error) {
	var options []otlptracehttp.Option
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("trace: the endpoint must be a URL like http://localhost:4318, not %q", c.Endpoint)
		}
		if strings.Trim(u.Path, "/") == "" {
			u.Path = "/v1/traces"
		}
		options = append(options, otlptracehttp.WithEndpointURL(u.String()))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	from, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", "perpetua"),
		attribute.String("service.instance.id", c.Node), attribute.String("service.version", c.Build)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	told := &told{SpanExporter: exporter, log: c.Logger, spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "perpetua_trace_spans_total", Help: "Spans handed to the collector, by whether it took them."}, []string{"result"})}
	told.spans.WithLabelValues("taken")
	told.spans.WithLabelValues("lost")
	if c.Metrics != nil {
		if err := c.Metrics.Register(told.spans); err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
	}
	return New(c.Ratio, sdk.WithBatcher(told), sdk.WithResource(from)), nil
}

// told is an exporter that tells the log, once, when the collector is away and when it is back.
type told struct {
	sdk.SpanExporter
	log   *slog.Logger
	spans *prometheus.CounterVec
	away  atomic.Bool
}

// ExportSpans implements the SDK's SpanExporter.
func (e *told) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	result := "taken"
	if err != nil {
		result = "lost"
	}
	e.spans.WithLabelValues(result).Add(float64(len(spans)))
	if away := err != nil; e.away.Swap(away) != away {
		if away {
			e.log.Warn("the collector of traces does not take them", "error", err)
		} else {
			e.log.Info("the collector of traces takes them again")
		}
	}
	return nil // it is told
}
