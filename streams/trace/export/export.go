// Package export sends the spans of a process to a collector. It is apart from package trace since only a node needs it, and an
// OTLP exporter is large.
package export

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

	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// Config configures the export of a process's spans.
type Config struct {
	// Endpoint is the URL of a collector that accepts OTLP over HTTP; the path defaults to /v1/traces. If it is "", the
	// environment variables OTEL_EXPORTER_OTLP_… define the endpoint. In both cases they define headers, certificates,
	// timeouts and compression.
	Endpoint string
	Ratio    float64 // ratio of all commands, from 0 to 1
	Node     string
	Build    string
	Logger   *slog.Logger
	Metrics  prometheus.Registerer // nil for none
}

// CheckEndpoint returns an error if the text is not a URL that Config.Endpoint may have.
func CheckEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	_, err := parseEndpoint(endpoint)
	return err
}

func parseEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the endpoint must be a URL like http://localhost:4318, not %q", endpoint)
	}
	return u, nil
}

// Open returns a tracer that exports spans to a collector, in batches and in the background. If the collector is slow
// or does not answer, spans are lost, but requests are never delayed.
func Open(ctx context.Context, c Config) (*trace.Tracer, error) {
	var options []otlptracehttp.Option
	if c.Endpoint != "" {
		u, err := parseEndpoint(c.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("trace: %w", err)
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
	logging := newLoggingExporter(exporter, c.Logger)
	if c.Metrics != nil {
		if err := c.Metrics.Register(logging.spans); err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
	}
	return trace.New(c.Ratio, sdk.WithSpanProcessor(newQueue(logging)), sdk.WithResource(from)), nil
}

// queue passes spans to the SDK's queue. It counts the spans that the SDK would drop silently because its queue is
// full, which means that the collector is too slow.
type queue struct {
	sdk.SpanProcessor
	exporter *loggingExporter
	most     int64
}

func newQueue(exporter *loggingExporter) *queue {
	q := &queue{exporter: exporter}
	// The SDK reads the size from its environment variable.
	q.SpanProcessor = sdk.NewBatchSpanProcessor(exporter, func(o *sdk.BatchSpanProcessorOptions) { q.most = int64(o.MaxQueueSize) })
	return q
}

// OnEnd implements the SDK's SpanProcessor.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if q.exporter.waiting.Add(1) > q.most {
		q.exporter.waiting.Add(-1)
		q.exporter.spans.WithLabelValues("dropped").Inc()
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// loggingExporter is an exporter that logs when the collector stops answering and when it answers again, once for each change.
type loggingExporter struct {
	sdk.SpanExporter
	log     *slog.Logger
	spans   *prometheus.CounterVec
	away    atomic.Bool
	waiting atomic.Int64 // number of spans in the queue
}

func newLoggingExporter(exporter sdk.SpanExporter, log *slog.Logger) *loggingExporter {
	t := &loggingExporter{SpanExporter: exporter, log: log, spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "perpetua_trace_spans_total",
		Help: "Spans by what became of them: the collector took them, or they were lost on the way to it, or dropped before that, since too many waited."},
		[]string{"result"})}
	for _, result := range []string{"taken", "lost", "dropped"} {
		t.spans.WithLabelValues(result)
	}
	return t
}

// ExportSpans implements the SDK's SpanExporter.
func (e *loggingExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	e.waiting.Add(-int64(len(spans)))
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
	return nil // reported above
}
