package trace

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Carried is the trace context of a command on its way to the owner on another node; empty for none.
type Carried []byte

// The parts of a Carried: the ids of the trace and the span, and the flags.
const (
	traceSize   = len(trace.TraceID{})
	spanSize    = len(trace.SpanID{})
	carriedSize = traceSize + spanSize + 1
)

// Carry returns the trace context in ctx.
func Carry(ctx context.Context) Carried {
	s := trace.SpanContextFromContext(ctx)
	if !s.IsValid() {
		return nil
	}
	id, span := s.TraceID(), s.SpanID()
	return append(append(append(make(Carried, 0, carriedSize), id[:]...), span[:]...), byte(s.TraceFlags()))
}

// In returns a context with the trace context. It returns ctx if there is none, or if c is not one that Carry returned.
func (c Carried) In(ctx context.Context) context.Context {
	if len(c) != carriedSize {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(c[:traceSize]),
		SpanID: trace.SpanID(c[traceSize : traceSize+spanSize]), TraceFlags: trace.TraceFlags(c[carriedSize-1]), Remote: true}))
}
