package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// openTracer returns the tracer that the settings ask for, nil for none.
func openTracer(ctx context.Context, c nodeConfig, metrics prometheus.Registerer) (*trace.Tracer, error) {
	s := c.settings
	if s.Trace.Endpoint == "" {
		return nil, nil
	}
	ratio, err := strconv.ParseFloat(s.Trace.Ratio, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return nil, usagef("--trace-ratio takes a number from 0 to 1, not %q", s.Trace.Ratio)
	}
	endpoint := s.Trace.Endpoint
	if strings.HasPrefix(s.sources["trace-endpoint"], "OTEL_") {
		endpoint = "" // the exporter reads those itself, and knows better what each of them means
	}
	return trace.Open(ctx, trace.Config{Endpoint: endpoint, Ratio: ratio, Node: c.id, Build: build, Logger: c.log.With("part", "trace"), Metrics: metrics})
}

// closeTracer hands over the last spans, if the collector takes them soon.
func (n *node) closeTracer() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := n.tracer.Close(ctx); err != nil {
		n.log.Warn("the last traces were not sent", "error", err)
	}
}
