package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// Options are what the HTTP interface needs of its surroundings.
type Options struct {
	Logger *slog.Logger
	// Metrics is where the request metrics are registered; nil for none.
	Metrics prometheus.Registerer
	// ForwardKey is a secret that the nodes share. It proves that a request was passed on by another node.
	ForwardKey []byte
	// Identity is the fold by which this node judges tokens and API keys. A request that another node passed on is judged
	// no earlier than that node's fold was; nil for no such wait.
	Identity IdentityFold
	// TrustedProxies are the networks whose X-Forwarded-For is believed; empty for none.
	TrustedProxies []*net.IPNet
	// Transport carries requests that are passed on; nil for a default.
	Transport http.RoundTripper
	// Patience is how long the answer to a request that was passed on is waited for; zero for as long as a command may
	// take.
	Patience time.Duration
	// Tracer tells of requests; nil for none.
	Tracer *trace.Tracer
	// CORSOrigins are the origins whose pages may call the interfaces; empty for any.
	CORSOrigins []string
	// Quiet says of which requests the log tells only at level debug, unless the server fails; nil for none.
	Quiet func(*http.Request) bool
	// Polled are routes that other nodes request several times a second. A request to one is not traced, and counted and logged
	// only if it ends with an error.
	Polled []string
}

// IdentityFold is how far a node has followed the identity journal.
type IdentityFold interface {
	Waiter
	Position() record.Position
}

// New makes a server whose errors are problems and whose requests have an id, are logged, counted and recovered from
// panics, and are passed on to the node that owns the journal where this one does not.
func New(o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	if o.Patience == 0 {
		o.Patience = commandDeadline
	}
	metrics, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Pre(routeHead)
	e.HTTPErrorHandler = errorHandler(o.Logger)
	e.JSONSerializer = serializer{}
	e.IPExtractor = addresses(o.TrustedProxies)
	s := &Server{Echo: e, options: o, metrics: metrics, crossOrigin: crossOrigin(o.CORSOrigins), operations: make(map[operationKey]*operation)}
	s.requests.New = func() any { return new(request) }
	s.calls.New = func() any { return new(inside) }
	e.Use(s.middleware)
	return s, nil
}

// addresses says where a request comes from. Without proxies of ours in front, that is the connection's peer: a header
// that anybody can write must not choose whose failed logins are counted.
func addresses(trusted []*net.IPNet) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, n := range trusted {
		options = append(options, echo.TrustIPRange(n))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// Server is what every request goes through: over HTTP, through Echo's router and one middleware, since Echo puts a chain
// of them together anew for each request; or as a call (Do).
type Server struct {
	*echo.Echo
	options  Options
	metrics  *metrics
	requests sync.Pool // of *request
	calls    sync.Pool // of *inside

	operations  map[operationKey]*operation
	crossOrigin echo.MiddlewareFunc
}

func (s *Server) middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		answerHead(c)
		r := s.requests.Get().(*request)
		r.Context = c
		r.identify()
		if s.options.Tracer != nil {
			s.trace(r)
		}
		s.observe(r, next)
		r.reset() // not after a panic, which ends the connection
		s.requests.Put(r)
		return nil
	}
}

// answer has the request answered, and returns what is left of it as an error. It turns a panic into a 500, with the
// stack in the log.
func (s *Server) answer(r *request, next echo.HandlerFunc) (err error) {
	defer func() {
		if p := recover(); p != nil {
			// The way to cut a connection: the proxy does so where the owner breaks off amid an answer that has begun.
			if aborts(p) {
				panic(p)
			}
			err = s.panicked(AskOf(r), p)
		}
	}()
	if ambiguous(r.Request()) {
		r.Response().Header().Set(echo.HeaderConnection, "close") // what follows may be anything
		return NewProblem(http.StatusBadRequest, "AMBIGUOUS_LENGTH",
			"The request has both a Content-Length and a Transfer-Encoding.")
	}
	if !wholePath(r) {
		return echo.ErrNotFound
	}
	if s.fromPage(r) {
		return s.crossOrigin(func(echo.Context) error { return s.hereOrThere(r, next) })(r)
	}
	return s.hereOrThere(r, next)
}

func aborts(p any) bool {
	err, ok := p.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

// panicked notes a panic, and returns what it is answered with.
func (s *Server) panicked(a Ask, p any) error {
	s.options.Logger.ErrorContext(a.Context(), "panic", "request_id", a.id, "panic", p, "stack", string(debug.Stack()))
	return NewProblem(http.StatusInternalServerError, "INTERNAL",
		"The server failed to answer. The request id names the failure.").Because(fmt.Errorf("panic: %v", p))
}

// wholePath reports whether the request gives every parameter of its route. An empty one names nothing, and in a
// handler it might be taken for no restriction at all.
func wholePath(c echo.Context) bool {
	for _, name := range c.ParamNames() {
		if c.Param(name) == "" {
			return false
		}
	}
	return true
}

// observe counts a request and logs it: what went as it should, redirects and the like included, as debugging only,
// since thousands a second would bury the rest. It logs neither headers, bodies nor query strings: they may hold
// secrets.
func (s *Server) observe(r *request, next echo.HandlerFunc) {
	start := time.Now()
	socket, polled := r.IsWebSocket(), slices.Contains(s.options.Polled, r.Path())
	if !socket && !polled { // a socket stays for hours
		s.metrics.active.Inc()
		defer s.metrics.active.Dec()
	}
	err := s.answer(r, next)
	if err != nil {
		r.Error(err) // writes the answer now, so that its status is known
	} else if polled {
		return
	}
	d := done{err: err, status: r.Response().Status, bytes: r.Response().Size, took: time.Since(start)}
	d.upgraded = err == nil && socket && !r.Response().Committed
	d.quiet = d.status >= http.StatusBadRequest && s.options.Quiet != nil && s.options.Quiet(r.Request())
	s.note(AskOf(r), d)
}

// done is how a request was answered.
type done struct {
	err      error
	status   int
	bytes    int64
	took     time.Duration
	upgraded bool // it became a socket, and what took so long was the session
	quiet    bool // the log need not tell of it unless the server failed
}

// note counts a request that was answered, and logs it.
func (s *Server) note(a Ask, d done) {
	code := ""
	if d.err != nil {
		code = ProblemOf(d.err).Code
		s.metrics.problems.WithLabelValues(code).Inc()
	}
	for _, part := range a.problems {
		s.metrics.problems.WithLabelValues(part).Inc()
	}
	for _, failure := range a.failures {
		s.options.Logger.ErrorContext(a.Context(), "a part of a request failed", "request_id", a.id, "error", failure)
	}
	method, route, _ := a.way.route()
	of := series{route, method, d.status}
	if of.route == "" || of.status == http.StatusNotFound && code == "NOT_FOUND" {
		of.route = "unknown" // client-made paths must not become label values
	}
	if !knownMethod(of.method) {
		of.method = "other"
	}
	a.traced.End(of.method, of.route, of.status, code)
	if d.upgraded {
		of.status = http.StatusSwitchingProtocols
	} else {
		s.metrics.of(of).Observe(d.took.Seconds())
	}
	level := slog.LevelInfo
	if of.status < http.StatusBadRequest || d.quiet && of.status < http.StatusInternalServerError {
		level = slog.LevelDebug
	}
	if s.options.Logger.Enabled(a.Context(), level) {
		s.log(a, level, of, code, d)
	}
}

func (s *Server) log(a Ask, level slog.Level, of series, code string, d done) {
	attrs := []slog.Attr{
		slog.String("request_id", a.id), slog.String("method", of.method), slog.String("route", of.route),
		slog.String("path", loggedPath(of.route, a.way.target())), slog.Int("status", of.status),
		slog.Duration("took", d.took), slog.Int64("bytes", d.bytes),
	}
	if code != "" {
		attrs = append(attrs, slog.String("code", code))
	}
	if p := a.principal; p != nil {
		attrs = append(attrs, slog.String("user", p.Username), slog.String("broker", p.Broker))
	}
	// Why something was not available, nobody else is told. A failure of our own has a line for itself.
	if of.status == http.StatusServiceUnavailable && d.err != nil {
		if cause := ProblemOf(d.err).Unwrap(); cause != nil {
			attrs = append(attrs, slog.Any("cause", cause))
		}
	}
	s.options.Logger.LogAttrs(a.Context(), level, "request", attrs...)
}

// maxLoggedPath bounds what a line of the log repeats of a path: anybody may send one of a megabyte.
const maxLoggedPath = 1024

// loggedPath is the path of a request as the log may hold it. In one about persons a client may have put a name or an address for
// an id: so of those, what is neither an id nor a word of the route is left out.
func loggedPath(route, path string) string {
	if len(path) > maxLoggedPath {
		path = path[:maxLoggedPath] + "…"
	}
	if !isOnboarding(path) && !strings.HasPrefix(path, "/admin/v1/persons") && !strings.HasPrefix(path, "/admin/v1/corporates") {
		return path
	}
	const base = 3 // elements before the first that may be a client's own
	words, elements := strings.Split(route, "/"), strings.Split(path, "/")
	for i := base; i < len(elements); i++ {
		if i < len(words) && elements[i] == words[i] {
			continue
		}
		if _, err := scalar.ParseID(elements[i]); err != nil {
			elements[i] = "…"
		}
	}
	return strings.Join(elements, "/")
}

func knownMethod(m string) bool {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return true
	}
	return false
}
