package web

const (
	headerTraceParent = "Traceparent"
	headerTraceState  = "Tracestate"
)

// trace begins to tell of a request, unless it is a socket, which stays for hours, or a probe. Its command is to have the
// id that its trace has; if it is passed on, then with the trace context of here.
func (s *server) trace(r *request) {
	switch r.Path() {
	case "/healthz", "/readyz", "/metrics":
		return
	}
	if r.IsWebSocket() {
		return
	}
	in := r.Request()
	r.traced = s.options.Tracer.StartRequest(in.Context(), in.Header.Get(headerTraceParent), in.Header.Get(headerTraceState), NewID())
	in.Header.Set(headerTraceParent, r.traced.Parent)
	r.SetRequest(in.WithContext(r.traced.Context))
}
