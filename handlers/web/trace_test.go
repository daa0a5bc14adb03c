package web

import (
	"net/http/httptest"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// TestOnlyAPeerSaysWhatIsTraced has a node that traces nothing of its own accord get requests of recorded traces: it tells
// of those that another node of the venue passed on, and of no others.
func TestOnlyAPeerSaysWhatIsTraced(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	elsewhere := ""
	o := Options{ForwardKey: []byte("shared"), Tracer: trace.New(0, sdk.WithSpanProcessor(spans))}
	node := startNode(t, o, &elsewhere)
	id := NewID()
	for _, sender := range []struct {
		name, mark string
		told       int
	}{
		{"a client", "", 0}, {"a client that says it is a node", id.String() + ".00", 0},
		{"a node", mark{id: id, address: "192.0.2.1"}.sign(o.ForwardKey, httptest.NewRequest("POST", "/v1/things", nil)), 1},
	} {
		spans.Reset()
		headers := []string{headerTraceParent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
		if sender.mark != "" {
			headers = append(headers, headerForwarded, sender.mark)
		}
		if status, _, answer := send(t, node.URL+"/v1/things", headers...); status != 201 {
			t.Errorf("%s: %d %v", sender.name, status, answer)
		}
		if n := len(spans.Started()); n != sender.told {
			t.Errorf("of a request that %s sent, %d spans are told", sender.name, n)
		}
	}
}
