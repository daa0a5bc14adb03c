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

// trace starts the trace of a request, unless it is a socket, which stays for hours, a probe, or polled. The request's command
// gets the id of the trace. If the request is passed on, it carries the trace context of this node.
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

// within makes what is passed on of a request part of its trace.
func within(t trace.Request, in *http.Request) {
	if t.Parent != "" {
		in.Header.Set(headerTraceParent, t.Parent)
	}
}
