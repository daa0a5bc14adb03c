package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// Options are what the HTTP interface needs of its surroundings.
type Options struct {
	Logger *slog.Logger
	// Metrics is where the request metrics are registered; nil for none.
	Metrics prometheus.Registerer
	// ForwardKey is a secret that the nodes share. It proves that a request was passed on by another node.
	ForwardKey []byte
	// TrustedProxies are the networks whose X-Forwarded-For is believed; empty for none.
	TrustedProxies []*net.IPNet
	// Transport carries requests that are passed on; nil for a default.
	Transport http.RoundTripper
	// Quiet says of which requests the log tells only at level debug, unless the server fails; nil for none.
	Quiet func(*http.Request) bool
}

// New makes an Echo whose errors are problems and whose requests have an id, are logged, counted and recovered from
// panics, and are passed on to the node that owns the journal where this one does not.
func New(o Options) (*echo.Echo, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	metrics, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = errorHandler(o.Logger)
	e.JSONSerializer = serializer{}
	e.IPExtractor = addresses(o.TrustedProxies)
	e.Pre(requestID)
	e.Use(observe(o, metrics), recovered(o.Logger), wholePath, passOn(o))
	return e, nil
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

// serializer writes answers with the same codec as the log, whose maps are sorted and whose slices are never null.
type serializer struct{}

// Serialize writes an answer.
func (serializer) Serialize(c echo.Context, v any, _ string) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	_, err = c.Response().Write(b)
	return err
}

// Deserialize is not used: bodies are read by Body.
func (serializer) Deserialize(echo.Context, any) error {
	return NewProblem(http.StatusInternalServerError, "INTERNAL", "Bodies are read by web.Body.")
}

// wholePath lets only requests through that give every parameter of their route. An empty one names nothing, and in a
// handler it might be taken for no restriction at all.
func wholePath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		for _, name := range c.ParamNames() {
			if c.Param(name) == "" {
				return echo.ErrNotFound
			}
		}
		return next(c)
	}
}

// recovered turns a panic into a 500, with the stack in the log.
func recovered(log *slog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			defer func() {
				r := recover()
				if r == nil {
					return
				}
				if err, ok := r.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(r)
				}
				log.ErrorContext(c.Request().Context(), "panic", "request_id", RequestID(c), "panic", r, "stack", string(debug.Stack()))
				err = NewProblem(http.StatusInternalServerError, "INTERNAL",
					"The server failed to answer. The request id names the failure.").Because(fmt.Errorf("panic: %v", r))
			}()
			return next(c)
		}
	}
}

type metrics struct {
	seconds *prometheus.HistogramVec
	active  prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "perpetua_http_request_duration_seconds",
			Help:    "Time from a request to its answer, by route, method and status.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method", "route", "status"}),
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "perpetua_http_requests_active", Help: "Requests that are being answered.",
		}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.seconds, m.active} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register request metrics: %w", err)
		}
	}
	return m, nil
}

// observe counts every request and logs it: what went as it should, redirects and the like included, as debugging
// only, since thousands a second would bury the rest. It logs neither headers, bodies nor query strings: they may hold
// secrets.
func observe(o Options, m *metrics) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			if !c.IsWebSocket() { // a socket stays for hours
				m.active.Inc()
				defer m.active.Dec()
			}
			err := next(c)
			code := ""
			if err != nil {
				code = ProblemOf(err).Code
				c.Error(err) // writes the answer now, so that its status is known
			}
			route, method := c.Path(), c.Request().Method
			if route == "" || c.Response().Status == http.StatusNotFound && code == "NOT_FOUND" {
				route = "unknown" // client-made paths must not become label values
			}
			if !knownMethod(method) {
				method = "other"
			}
			took, status := time.Since(start), c.Response().Status
			if err == nil && c.IsWebSocket() && !c.Response().Committed {
				status = http.StatusSwitchingProtocols // and what took so long was the session
			} else {
				m.seconds.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
			}
			level := slog.LevelInfo
			if status < http.StatusBadRequest || o.Quiet != nil && status < http.StatusInternalServerError && o.Quiet(c.Request()) {
				level = slog.LevelDebug
			}
			if !o.Logger.Enabled(c.Request().Context(), level) {
				return nil
			}
			attrs := []slog.Attr{
				slog.String("request_id", RequestID(c)), slog.String("method", method), slog.String("route", route),
				slog.String("path", c.Request().URL.Path), slog.Int("status", status),
				slog.Duration("took", took), slog.Int64("bytes", c.Response().Size),
			}
			if code != "" {
				attrs = append(attrs, slog.String("code", code))
			}
			if p := PrincipalOf(c); p != nil {
				attrs = append(attrs, slog.String("user", p.Username), slog.String("broker", p.Broker))
			}
			o.Logger.LogAttrs(c.Request().Context(), level, "request", attrs...)
			return nil
		}
	}
}

func knownMethod(m string) bool {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return true
	}
	return false
}
