package export

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// hanging is an exporter that takes spans only when it is let.
type hanging struct {
	asked, proceed chan struct{}
	took           int
}

func (h *hanging) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	h.asked <- struct{}{}
	<-h.proceed
	h.took += len(spans)
	return nil
}

func (h *hanging) Shutdown(context.Context) error { return nil }

// TestSpansThatAreDroppedAreCounted lets the collector hang: every span is taken in the end, or counted as dropped.
func TestSpansThatAreDroppedAreCounted(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "20")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
	h := &hanging{asked: make(chan struct{}, 1000), proceed: make(chan struct{})}
	told := newLoggingExporter(h, slog.New(slog.DiscardHandler))
	tracer := trace.New(1, sdk.WithSpanProcessor(newQueue(told)))
	request := func() {
		tracer.StartRequest(t.Context(), trace.Sender{}, scalar.ID(uuid.Must(uuid.NewV7()))).End("GET", "/", 200, "")
	}
	for range 5 {
		request()
	}
	<-h.asked // and has taken those five
	const more = 100
	for range more {
		request()
	}
	close(h.proceed)
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	count := func(result string) int { return int(testutil.ToFloat64(told.spans.WithLabelValues(result))) }
	if h.took != 5+20 || count("taken") != h.took || count("dropped") != more-20 || count("lost") != 0 || told.waiting.Load() != 0 {
		t.Errorf("%d of %d spans were taken; counted are %d taken, %d dropped, %d lost, and %d wait", h.took, 5+more,
			count("taken"), count("dropped"), count("lost"), told.waiting.Load())
	}
}
