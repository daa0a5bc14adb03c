package web

import (
	"net/http"

	"github.com/perpetua-exchange/perpetua/streams/trace"
)

const (
	headerTraceParent = "Traceparent"
	headerTraceState  = "Tracestate"
)

// trace begins to tell of a request, unless it is a socket, which stays for hours, or a probe. Its command is to have the
// id that its trace has; if it is passed on, then with the trace context of here.
func (s *Server) trace(r *request) {
	switch r.Path() {
	case "/healthz", "/readyz", "/metrics":
		return
	}
	if r.IsWebSocket() {
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
