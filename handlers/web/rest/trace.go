package rest

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

const (
	headerTraceParent = "Traceparent"
	headerTraceState  = "Tracestate"
)

// trace starts the trace of a request. WebSockets, which stay for hours, probes and polled routes are not traced. The
// request's command gets the ID of the trace.
func (s *Server) trace(r *request) {
	if r.IsWebSocket() || slices.Contains(probes, r.Path()) || slices.Contains(s.options.Polled, r.Path()) {
		return
	}
	in := r.Request()
	from := trace.Sender{Parent: in.Header.Get(headerTraceParent), State: in.Header.Get(headerTraceState)}
	r.scope.Traced = s.options.Tracer.StartRequest(in.Context(), from, operation.NewID())
	r.SetRequest(in.WithContext(r.scope.Traced.Context))
}
