package web

import (
	"net/http"
	"slices"

	"github.com/perpetua-exchange/perpetua/streams/trace"
)

const (
	headerTraceParent = "Traceparent"
	headerTraceState  = "Tracestate"
)

// trace starts the trace of a request. WebSockets, which stay for hours, probes and polled routes are not traced. The
// request's command gets the ID of the trace. A forwarded request carries this node's trace context.
func (s *Server) trace(r *request) {
	switch r.Path() {
	case "/healthz", "/readyz", "/metrics":
		return
	}
	if r.IsWebSocket() || slices.Contains(s.options.Polled, r.Path()) {
		return
	}
	in := r.Request()
	from := trace.Sender{Parent: in.Header.Get(headerTraceParent), State: in.Header.Get(headerTraceState)}
	if said := in.Header.Get(headerForwarded); said != "" {
		from.Peer = provenMark(s.options.ForwardKey, said, in).proven()
	}
	r.traced = s.options.Tracer.StartRequest(in.Context(), from, NewID())
	within(r.traced, in)
	r.SetRequest(in.WithContext(r.traced.Context))
}

// within adds the trace context to a forwarded request.
func within(t trace.Request, in *http.Request) {
	if t.Parent != "" {
		in.Header.Set(headerTraceParent, t.Parent)
	}
}
