package rest

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
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// Options configures a Server.
type Options struct {
	Logger *slog.Logger
	// Metrics is the registry for the request metrics; it may be nil.
	Metrics prometheus.Registerer
	// TrustedProxies lists the networks from which X-Forwarded-For is accepted; it may be empty.
	TrustedProxies []*net.IPNet
	// Tracer records traces of requests; it may be nil.
	Tracer *trace.Tracer
	// CORSOrigins lists the origins that may call the interfaces; empty means any.
	CORSOrigins []string
	// Quiet reports whether a failed request is logged at debug level only, unless the server fails. It may be nil.
	Quiet func(*http.Request) bool
	// Polled lists routes that other nodes request several times a second. Requests to them are not traced, and they
	// are counted and logged only on errors.
	Polled []string
	// ReadOnly makes the server refuse every request that could change something; nil for a node of a venue.
	ReadOnly *ReadOnly
}

// New returns a server. It gives each request an ID, logs and counts requests, recovers from panics, and writes errors as
// problems.
func New(o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	metrics, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Pre(routeHead)
	e.HTTPErrorHandler = errorHandler(o.Logger, o.ReadOnly)
	e.JSONSerializer = serializer{}
	s := &Server{Echo: e, options: o, metrics: metrics, crossOrigin: crossOrigin(o.CORSOrigins), proxies: newProxies(o, time.Now), operations: make(map[operationKey]*executor)}
	e.IPExtractor = s.proxies.addresses()
	s.requests.New = func() any { return new(request) }
	s.calls.New = func() any { return new(inProcess) }
	e.Use(s.middleware)
	return s, nil
}

// Server handles every request, either over HTTP through Echo's router and one middleware, or as a call (Do). There
// is only one middleware because Echo builds the chain for each request.
type Server struct {
	*echo.Echo
	options  Options
	metrics  *metrics
	requests sync.Pool // of *request
	calls    sync.Pool // of *inProcess

	operations  map[operationKey]*executor
	crossOrigin echo.MiddlewareFunc
	proxies     *proxies
	rateLimit   rateLimit
}

func (s *Server) middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		answerHead(c)
		r := s.requests.Get().(*request)
		r.echoContext = c
		r.identify()
		s.proxies.check(r.Request())
		if s.options.Tracer != nil {
			s.trace(r)
		}
		s.observe(r, next)
		r.reset() // not reached after a panic, which ends the connection
		s.requests.Put(r)
		return nil
	}
}

// answer handles the request and returns any error that is not yet written. It converts a panic to a 500 and logs the
// stack.
func (s *Server) answer(r *request, next echo.HandlerFunc) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) { // it cuts the connection of a response that breaks off
				panic(p)
			}
			err = s.panicked(RequestOf(r), p)
		}
	}()
	if ambiguous(r.Request()) {
		r.Response().Header().Set(echo.HeaderConnection, "close") // the rest of the connection cannot be interpreted
		return problem.New(http.StatusBadRequest, "AMBIGUOUS_LENGTH",
			"The request has both a Content-Length and a Transfer-Encoding.")
	}
	if m := r.Request().Method; m != http.MethodGet && m != http.MethodHead && header(r.Request(), headerForwarded) != "" {
		return problem.NotAccepted(time.Second).Because(errForwarded)
	}
	if !wholePath(r) {
		return echo.ErrNotFound
	}
	if h := r.Response().Header(); r.Request().Method == http.MethodOptions {
		r.Response().Before(func() {
			if h.Get(echo.HeaderAllow) != "" { // there is such a path
				allow(r, s.options.ReadOnly)
			}
		})
	}
	if s.fromPage(r) {
		return s.crossOrigin(func(c echo.Context) error { return s.admit(c, next) })(r)
	}
	return s.admit(r, next)
}

// admit handles the request, unless this server only follows a venue that must answer it, or the limit of the client's network is
// exhausted.
func (s *Server) admit(c echo.Context, next echo.HandlerFunc) error {
	if s.options.ReadOnly != nil {
		if err := s.options.ReadOnly.check(c); err != nil {
			return err
		}
	}
	if err := s.rateLimit.count(c); err != nil {
		return err
	}
	return next(c)
}

// headerForwarded marks a request that a node of build 0.1.0 forwards as a whole, because it was started with
// --peer-streams=false or cannot open a stream to the owner.
const headerForwarded = "X-Perpetua-Forwarded"

// errForwarded is the reason for which a forwarded request is not accepted. The forwarding node has given the command an ID, a
// session, and the client's address, which do not reach this node: if the response were lost, the forwarding node would tell
// the client the ID of a command that no record has.
var errForwarded = errors.New("a node of build 0.1.0 has forwarded the request as a whole: start it without --peer-streams=false, or upgrade it")

// panicked logs a panic and returns the problem for it.
func (s *Server) panicked(a operation.Request, p any) error {
	s.options.Logger.ErrorContext(a.Context(), "panic", "request_id", a.ID, "panic", p, "stack", string(debug.Stack()))
	return problem.New(http.StatusInternalServerError, "INTERNAL",
		"The server failed to answer. The request id names the failure.").Because(fmt.Errorf("panic: %v", p))
}

// wholePath reports whether every parameter of the route has a value. A handler could interpret an empty one as no
// restriction.
func wholePath(c echo.Context) bool {
	for _, name := range c.ParamNames() {
		if c.Param(name) == "" {
			return false
		}
	}
	return true
}

// observe handles a request, counts it and logs it. It logs requests without errors at debug level only, because
// thousands per second would hide the rest. It never logs headers, bodies or query strings, because they may contain
// secrets.
func (s *Server) observe(r *request, next echo.HandlerFunc) {
	start := time.Now()
	socket, polled := r.IsWebSocket(), slices.Contains(s.options.Polled, r.Path())
	if !socket && !polled { // a WebSocket stays for hours
		s.metrics.active.Inc()
		defer s.metrics.active.Dec()
	}
	err := s.answer(r, next)
	if err != nil {
		r.Error(err) // write the response now to learn its status
	} else if polled {
		return
	}
	d := done{err: err, status: r.Response().Status, bytes: r.Response().Size, took: time.Since(start)}
	d.upgraded = err == nil && socket && !r.Response().Committed
	d.quiet = d.status >= http.StatusBadRequest && s.options.Quiet != nil && s.options.Quiet(r.Request())
	s.note(RequestOf(r), d)
}

// done is the result of a request.
type done struct {
	err      error
	status   int
	bytes    int64
	took     time.Duration
	upgraded bool // the connection became a WebSocket; took is the length of the session
	quiet    bool // log at debug level unless the server failed
}

// note counts and logs a completed request.
func (s *Server) note(a operation.Request, d done) {
	code := ""
	if d.err != nil {
		code = problem.Of(d.err).Code
		s.metrics.problems.WithLabelValues(code).Inc()
		if code == access.CodeRateLimited {
			s.metrics.limited.WithLabelValues(a.Admission.Limit.Policy()).Inc()
			d.quiet = d.quiet || a.Admission.Limit.Network // a flood of anonymous requests must not flood the log
		}
	}
	for _, part := range a.Problems {
		s.metrics.problems.WithLabelValues(part).Inc()
	}
	for _, failure := range a.Failures {
		s.options.Logger.ErrorContext(a.Context(), "a part of a request failed", "request_id", a.ID, "error", failure)
	}
	method, route, _ := a.Route()
	of := series{route, method, d.status}
	if of.route == "" || of.status == http.StatusNotFound && code == "NOT_FOUND" {
		of.route = "unknown" // paths chosen by clients must not become label values
	}
	if !knownMethod(of.method) {
		of.method = "other"
	}
	a.Traced.End(of.method, of.route, of.status, code)
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

func (s *Server) log(a operation.Request, level slog.Level, of series, code string, d done) {
	attrs := []slog.Attr{
		slog.String("request_id", a.ID), slog.String("method", of.method), slog.String("route", of.route),
		slog.String("path", loggedPath(of.route, a.Target())), slog.Int("status", of.status),
		slog.Duration("took", d.took), slog.Int64("bytes", d.bytes),
	}
	if code != "" {
		attrs = append(attrs, slog.String("code", code))
	}
	if p := a.Principal(); p != nil {
		attrs = append(attrs, slog.String("user", p.Username), slog.String("broker", p.Broker))
	}
	// Log the cause of a 503, which the client does not see. Server errors are logged separately.
	if of.status == http.StatusServiceUnavailable && d.err != nil {
		if cause := problem.Of(d.err).Unwrap(); cause != nil {
			attrs = append(attrs, slog.Any("cause", cause))
		}
	}
	s.options.Logger.LogAttrs(a.Context(), level, "request", attrs...)
}

// maxLoggedPath limits the length of a path in the log. Clients may send paths of a megabyte.
const maxLoggedPath = 1024

// loggedPath returns the path for the log. Clients may have sent a name or an address in place of an ID, so in paths
// about persons, elements that are neither IDs nor words of the route are replaced.
func loggedPath(route, path string) string {
	if len(path) > maxLoggedPath {
		path = path[:maxLoggedPath] + "…"
	}
	if !problem.IsOnboarding(path) && !strings.HasPrefix(path, "/admin/v1/persons") && !strings.HasPrefix(path, "/admin/v1/corporates") {
		return path
	}
	const base = 3 // elements before the first one that the client may choose
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
