package trace

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"
)

// ids generates the ids of spans. It uses the ids in the span's context, and random ones if there are none.
type ids struct{}

// NewIDs implements the SDK's IDGenerator for a span without a parent.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	w, _ := ctx.Value(wantedKey{}).(wanted)
	if !w.trace.IsValid() {
		_, _ = rand.Read(w.trace[:]) // never fails: it ends the program instead
	}
	return w.trace, span(w)
}

// NewSpanID implements the SDK's IDGenerator for a span with a parent.
func (ids) NewSpanID(ctx context.Context, id trace.TraceID) trace.SpanID {
	w, _ := ctx.Value(wantedKey{}).(wanted)
	if w.trace != id {
		w.span = trace.SpanID{}
	}
	return span(w)
}

func span(w wanted) trace.SpanID {
	for !w.span.IsValid() {
		_, _ = rand.Read(w.span[:])
	}
	return w.span
}
