package rest

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem/problemtest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// serve makes an Echo with one route that fails with the error, at a path of each interface.
func serve(t testing.TB, o Options, h echo.HandlerFunc) *Server {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/things", "/v1/things/:code", "/api/v1/things", "/auth/x"} {
		e.GET(path, h)
		e.POST(path, h)
	}
	return e
}

func ask(e http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func problemIn(t testing.TB, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("content type %q with %d %s", got, w.Code, w.Body)
	}
	var p map[string]any
	if err := stdjson.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if p["status"] != float64(w.Code) || p["request_id"] != w.Header().Get(operation.HeaderRequestID) || p["request_id"] == "" {
		t.Errorf("the problem %v does not match status %d and request id %q", p, w.Code, w.Header().Get(operation.HeaderRequestID))
	}
	for _, member := range []string{"type", "title", "detail", "instance", "code", "errors"} {
		if _, ok := p[member]; !ok {
			t.Errorf("the problem has no %s: %s", member, w.Body)
		}
	}
	return p
}

func TestErrorsBecomeProblems(t *testing.T) {
	id := scalar.ID{1}
	refusal := func(k decide.Kind) error {
		return &submit.RefusedError{Refusal: &decide.Refusal{Kind: k, Code: "SOME_CODE", Field: "amount", Message: "no"}}
	}
	tests := []struct {
		name   string
		err    error
		status int
		code   string
		retry  string
	}{
		{"invalid", problem.Invalid(validation.FieldError{Path: validation.At("a"), Code: validation.Required, Message: "m"}), 400, "VALIDATION_FAILED", ""},
		{"wrapped", fmt.Errorf("list orders: %w", problem.NotFound("ORDER_NOT_FOUND", "x")), 404, "ORDER_NOT_FOUND", ""},
		{"refusal invalid", refusal(decide.Invalid), 400, "SOME_CODE", ""},
		{"refusal not found", refusal(decide.NotFound), 404, "SOME_CODE", ""},
		{"refusal conflict", refusal(decide.Conflict), 409, "SOME_CODE", ""},
		{"refusal unacceptable", refusal(decide.Unacceptable), 422, "SOME_CODE", ""},
		{"refusal too large", refusal(decide.TooLarge), 413, "SOME_CODE", ""},
		{"refusal forbidden", refusal(decide.Forbidden), 403, "SOME_CODE", ""},
		{"not accepted", &submit.NotAcceptedError{RetryAfter: 1500 * time.Millisecond}, 503, "NOT_ACCEPTED", "2"},
		{"not accepted at once", &submit.NotAcceptedError{}, 503, "NOT_ACCEPTED", "1"},
		{"unknown", fmt.Errorf("submit: %w", &submit.OutcomeUnknownError{CommandID: id}), 503, "OUTCOME_UNKNOWN", "1"},
		{"diverged", &record.DivergedError{Journal: "trading"}, 503, "LOG_DIVERGED", ""},
		{"broken", &record.BrokenRecordError{Journal: "trading"}, 503, "LOG_BROKEN", ""},
		{"rules failed", &submit.DecideError{Cause: errors.New("secret")}, 500, "INTERNAL", ""},
		{"anything", errors.New("secret"), 500, "INTERNAL", ""},
		{"deadline", context.DeadlineExceeded, 503, "TIMEOUT", "1"},
		{"deadline of a read", problem.SourceFailed(fmt.Errorf("read: %w", context.DeadlineExceeded)), 503, "SOURCE_UNAVAILABLE", "1"},
		{"failed read", problem.SourceFailed(problem.Unavailable("TIMEOUT", "x", time.Second)), 503, "TIMEOUT", "1"},
		{"echo", echo.NewHTTPError(http.StatusTeapot, "secret"), 418, "IM_A_TEAPOT", ""},
		{"too many bytes", &http.MaxBytesError{Limit: 1}, 413, "BODY_TOO_LARGE", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := serve(t, Options{}, func(echo.Context) error { return test.err })
			w := ask(e, "GET", "/v1/things", "")
			p := problemIn(t, w)
			if w.Code != test.status || p["code"] != test.code || w.Header().Get("Retry-After") != test.retry {
				t.Errorf("got %d %v, Retry-After %q; want %d %s, %q", w.Code, p["code"], w.Header().Get("Retry-After"), test.status, test.code, test.retry)
			}
			if strings.HasPrefix(test.name, "refusal") && fmt.Sprint(p["errors"]) != "[map[code:SOME_CODE field:amount message:no]]" {
				t.Errorf("the fault does not name its field: %v", p["errors"])
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("the answer gives the cause away: %s", w.Body)
			}
			if test.code == "OUTCOME_UNKNOWN" && p["command_id"] != id.String() {
				t.Errorf("the command's id is missing: %s", w.Body)
			}
			if p["instance"] != "/v1/things" {
				t.Errorf("instance is %v", p["instance"])
			}
		})
	}
}

func TestEchoErrors(t *testing.T) {
	e := serve(t, Options{}, func(c echo.Context) error { return c.NoContent(204) })
	if p := problemIn(t, ask(e, "GET", "/v1/nothing", "")); p["code"] != "NOT_FOUND" || p["status"] != 404.0 {
		t.Errorf("an unknown route: %v", p)
	}
	w := ask(e, "DELETE", "/v1/things", "")
	if p := problemIn(t, w); p["code"] != "METHOD_NOT_ALLOWED" || w.Header().Get("Allow") == "" {
		t.Errorf("another method: %v, Allow %q", p, w.Header().Get("Allow"))
	}
}

// A path or a name that is no text must not leave the client with an empty 200.
func TestErrorsAboutWhatIsNoText(t *testing.T) {
	e := serve(t, Options{}, func(c echo.Context) error { return Query(c).Done() })
	for path, status := range map[string]int{"/v1/%ff": 404, "/v1/things?%ff=1": 400, "/v1/things/%ff?x=1": 400} {
		w := ask(e, "GET", path, "")
		p := problemIn(t, w)
		if w.Code != status {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, status)
		}
		if want, _, _ := strings.Cut(path, "?"); !strings.EqualFold(p["instance"].(string), want) {
			t.Errorf("%s: instance is %v", path, p["instance"])
		}
	}
	if w := ask(e, "GET", "/api/v1/things?%ff=1", ""); w.Code != 422 || !stdjson.Valid(w.Body.Bytes()) {
		t.Errorf("the onboarding interface: got %d %q, want 422", w.Code, w.Body)
	}
}

func TestOnboardingErrors(t *testing.T) {
	tests := []struct {
		path string
		err  error
		code int
		want string
	}{
		{"/api/v1/things", problem.NotFound("PERSON_NOT_FOUND", "x"), 404, `{"detail":"PERSON_NOT_FOUND"}`},
		{"/auth/x", problem.Unauthorized("x"), 401, `{"detail":"Unauthorized"}`},
		{"/api/v1/things", problem.Forbidden("x"), 403, `{"detail":"Forbidden"}`},
		{"/api/v1/things", errors.New("secret"), 500, `{"detail":"Internal Server Error"}`},
		{"/api/v1/things", &decide.Refusal{Kind: decide.Conflict, Code: "IDEMPOTENCY_KEY_REUSED"}, 422, `{"detail":"IDEMPOTENCY_KEY_REUSED"}`},
		{"/api/v1/things", problem.Invalid(validation.FieldError{Path: validation.At("username"), Kind: validation.Missing}, validation.FieldError{Code: validation.UnknownField, Path: validation.At("a", 2, "b"), Input: 1}), 422,
			`{"detail":[{"type":"missing","loc":["body","username"],"msg":"Field required","input":null},{"type":"extra_forbidden","loc":["body","a",2,"b"],"msg":"Extra inputs are not permitted","input":1}]}`},
	}
	for _, test := range tests {
		e := serve(t, Options{}, func(echo.Context) error { return test.err })
		w := ask(e, "GET", test.path, "")
		if w.Code != test.code || w.Body.String() != test.want || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("got %d %s (%s), want %d %s", w.Code, w.Body, w.Header().Get("Content-Type"), test.code, test.want)
		}
	}
	e := serve(t, Options{}, nil)
	if w := ask(e, "GET", "/api/v1/nothing", ""); w.Body.String() != `{"detail":"Not Found"}` || w.Code != 404 {
		t.Errorf("an unknown route: %d %s", w.Code, w.Body)
	}
}

func TestProblemWithOrder(t *testing.T) {
	e := serve(t, Options{}, func(echo.Context) error {
		return problem.Rejected("INSUFFICIENT_MARGIN", "x").WithOrder(map[string]string{"code": "o1"})
	})
	p := problemIn(t, ask(e, "POST", "/v1/things", ""))
	if order, _ := p["order"].(map[string]any); order["code"] != "o1" || p["status"] != 422.0 {
		t.Errorf("the order is missing: %v", p)
	}
}

func TestPanicIsOneFailure(t *testing.T) {
	var logged bytes.Buffer
	e := serve(t, Options{Logger: slog.New(slog.NewJSONHandler(&logged, nil))}, func(echo.Context) error { panic("boom") })
	if p := problemIn(t, ask(e, "GET", "/v1/things", "")); p["status"] != 500.0 || strings.Contains(fmt.Sprint(p), "boom") {
		t.Errorf("a panic is answered with %v", p)
	}
	if !strings.Contains(logged.String(), "boom") || !strings.Contains(logged.String(), "server_test.go") {
		t.Error("the panic and its stack are not in the log")
	}
}

func TestAccessLogAndMetrics(t *testing.T) {
	var logged bytes.Buffer
	registry := prometheus.NewRegistry()
	all := &slog.HandlerOptions{Level: slog.LevelDebug}
	e := serve(t, Options{Logger: slog.New(slog.NewJSONHandler(&logged, all)), Metrics: registry}, func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]any{"b": 1, "a": []int(nil)})
	})
	w := ask(e, "POST", "/v1/things/C1?token=hush", `{"password":"hush"}`, "Authorization", "Bearer hush", operation.HeaderRequestID, "mine-1")
	if w.Body.String() != `{"a":[],"b":1}` || w.Header().Get(operation.HeaderRequestID) != "mine-1" {
		t.Errorf("got %s with request id %q", w.Body, w.Header().Get(operation.HeaderRequestID))
	}
	ask(e, "GET", "/random/path/1", "", operation.HeaderRequestID, "not plain\x01")
	text := logged.String()
	if strings.Contains(text, "hush") {
		t.Errorf("the log holds a secret: %s", text)
	}
	for _, want := range []string{`"request_id":"mine-1"`, `"route":"/v1/things/:code"`, `"status":200`, `"status":404`, `"code":"NOT_FOUND"`,
		`"level":"DEBUG"`, `"level":"INFO"`} { // what went well, and what did not
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %s: %s", want, text)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "route" {
					routes = append(routes, l.GetValue())
				}
			}
		}
	}
	if got := strings.Join(routes, " "); got != "unknown /v1/things/:code" && got != "/v1/things/:code unknown" {
		t.Errorf("the routes counted are %q", got)
	}
}

// TestPolledRoutes: what nodes ask each other several times a second is not measured, unless it fails.
func TestPolledRoutes(t *testing.T) {
	var logged bytes.Buffer
	registry, spans := prometheus.NewRegistry(), tracetest.NewSpanRecorder()
	for _, polled := range []bool{true, false} {
		o := Options{Logger: slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: registry,
			Tracer: trace.New(1, sdk.WithSpanProcessor(spans))}
		if polled {
			o.Polled = []string{"/v1/things/:code"}
		}
		status := http.StatusOK
		e := serve(t, o, func(c echo.Context) error {
			if status == http.StatusForbidden {
				return problem.Forbidden("not here")
			}
			return c.NoContent(status)
		})
		for _, answered := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusForbidden} {
			logged.Reset()
			spans.Reset()
			status = answered
			before := requestsCounted(t, registry)
			if w := ask(e, "POST", "/v1/things/C1", "{}"); w.Code != answered {
				t.Fatal(w.Code)
			}
			want := !polled || answered == http.StatusForbidden
			counted := requestsCounted(t, registry) > before
			if counted != want || strings.Contains(logged.String(), `"msg":"request"`) != want {
				t.Errorf("polled %v, %d: counted %v, logged %q", polled, answered, counted, logged.String())
			}
			if traced := len(spans.Started()) > 0; traced == polled {
				t.Errorf("polled %v, %d: traced %v", polled, answered, traced)
			}
		}
		registry = prometheus.NewRegistry() // each server registers its own
	}
}

// requestsCounted returns how many requests the metrics have counted.
func requestsCounted(t *testing.T, registry *prometheus.Registry) (n uint64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			n += m.GetHistogram().GetSampleCount()
		}
	}
	return n
}

// waiter reaches one position and no other.
type waiter struct {
	at  int64
	err error
}

func (w waiter) Wait(ctx context.Context, sequence int64) error {
	if w.err != nil || sequence <= w.at {
		return w.err
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestLoggedPathIsBounded(t *testing.T) {
	var logged bytes.Buffer
	e := serve(t, Options{Logger: slog.New(slog.NewJSONHandler(&logged, nil))}, func(echo.Context) error { return nil })
	if w := ask(e, "GET", "/v1/"+strings.Repeat("x", 100_000), ""); w.Code != 404 {
		t.Fatalf("got %d", w.Code)
	}
	if n := logged.Len(); n < maxLoggedPath || n > 2*maxLoggedPath {
		t.Errorf("the log has %d bytes: %.300s", n, logged.String())
	}
}

// TestTheLogSaysWhySomethingIsAway: whoever runs the node has to know; a client does not.
func TestTheLogSaysWhySomethingIsAway(t *testing.T) {
	var logged bytes.Buffer
	e := serve(t, Options{Logger: slog.New(slog.NewJSONHandler(&logged, nil))}, func(echo.Context) error {
		return problem.Unavailable("KEYS_UNAVAILABLE", "The keys can't be read.", time.Second).Because(errors.New("the file is readable for others"))
	})
	w := ask(e, "GET", "/v1/things/x", "")
	if w.Code != 503 || strings.Contains(w.Body.String(), "others") || !strings.Contains(logged.String(), `"cause":"the file is readable for others"`) {
		t.Errorf("%d %s, and the log has %s", w.Code, w.Body, logged.String())
	}
}

// TestNoNamesInLoggedPaths: what clients take for an id may be a name.
func TestNoNamesInLoggedPaths(t *testing.T) {
	const id = "0b6ab0c5-2a6b-8a55-9f2a-7d1e9f1c5a11"
	for _, test := range []struct{ route, path, want string }{
		{"/api/v1/persons/:person_id/documents", "/api/v1/persons/" + id + "/documents", "/api/v1/persons/" + id + "/documents"},
		{"/api/v1/persons/:person_id/documents", "/api/v1/persons/anna@example.org/documents", "/api/v1/persons/…/documents"},
		{"unknown", "/api/v1/people/anna/" + id, "/api/v1/…/…/" + id},
		{"/admin/v1/persons/:person_id", "/admin/v1/persons/anna", "/admin/v1/persons/…"},
		{"/v1/customers/:code", "/v1/customers/ANNA", "/v1/customers/ANNA"},
	} {
		if got := loggedPath(test.route, test.path); got != test.want {
			t.Errorf("%s is logged as %s", test.path, got)
		}
	}
	var logged bytes.Buffer
	e := serve(t, Options{Logger: slog.New(slog.NewJSONHandler(&logged, nil))}, func(echo.Context) error { return nil })
	if w := ask(e, "GET", "/api/v1/persons/anna@example.org", ""); w.Code != 404 || logged.Len() == 0 || strings.Contains(logged.String(), "anna") {
		t.Errorf("%d, and the log has %s", w.Code, logged.String())
	}
}

func TestAwait(t *testing.T) {
	tests := []struct {
		header string
		source waiter
		status int
	}{
		{"", waiter{}, 200},
		{"trading/0@5", waiter{at: 5}, 200},
		{"identity/0@5", waiter{at: 5}, 412},
		{"trading/1@5", waiter{at: 5}, 412},
		{"trading/0@5", waiter{err: errors.New("gone")}, 503},
		{"trading/0@5", waiter{err: context.DeadlineExceeded}, 412},
		{"trading", waiter{}, 400},
		{"trading/0@x", waiter{}, 400},
		{"trading/0@-7", waiter{}, 400},
		{"trading/0@99999999999999999999", waiter{}, 400},
	}
	for _, test := range tests {
		e := serve(t, Options{}, func(c echo.Context) error {
			if err := Await(c, "trading", test.source); err != nil {
				return err
			}
			SetReadPosition(c, "trading", 9)
			return c.NoContent(200)
		})
		var headers []string
		if test.header != "" {
			headers = []string{operation.HeaderMinLogPosition, test.header}
		}
		w := ask(e, "GET", "/v1/things", "", headers...)
		if w.Code != test.status {
			t.Errorf("%q: got %d %s, want %d", test.header, w.Code, w.Body, test.status)
		}
		if w.Code == 200 && w.Header().Get(operation.HeaderLogPosition) != "trading/0@9" {
			t.Errorf("the answer's position is %q", w.Header().Get(operation.HeaderLogPosition))
		}
	}
}

// A read must not be served as of the lower of two positions, nor of none since the first one is empty.
func TestAwaitWithTwoPositions(t *testing.T) {
	for _, first := range []string{"trading/0@1", ""} {
		c := get("")
		c.Request().Header[operation.HeaderMinLogPosition] = []string{first, "trading/0@9"}
		err := Await(c, "trading", waiter{at: 5})
		if got := strings.Join(problemtest.Found(t, err), ", "); got != "X-Min-Log-Position DUPLICATE_FIELD" {
			t.Errorf("after %q: got %q", first, got)
		}
	}
}

func TestAwaitIsBounded(t *testing.T) {
	c := get("")
	c.Request().Header.Set(operation.HeaderMinLogPosition, "trading/0@5")
	deadline := make(chan time.Duration, 1)
	err := Await(c, "trading", waitFunc(func(ctx context.Context) error {
		at, ok := ctx.Deadline()
		if ok {
			deadline <- time.Until(at)
		}
		return context.DeadlineExceeded
	}))
	if d := <-deadline; d > 2*time.Second || problem.Of(err).Status != 412 {
		t.Errorf("a read waits %v and then says %v", d, err)
	}
}

type waitFunc func(context.Context) error

func (f waitFunc) Wait(ctx context.Context, _ int64) error { return f(ctx) }

func TestNewCommand(t *testing.T) {
	c := post(`{"reference_id":"r"}`)
	RequestOf(c).Admission.Principal = &access.Principal{Username: "u", Broker: "b", Customer: "C1"}
	b := BodyOnly(c)
	cmd, err := RequestOf(c).NewCommand(named("order.place"), b)
	if err != nil || cmd.Type != "order.place" || cmd.Payload != named("order.place") || cmd.Actor != (decide.Actor{Sub: "u", Broker: "b", Customer: "C1"}) {
		t.Errorf("the command is %+v, %v", cmd, err)
	}
	if len(cmd.Metadata.Fingerprint) != 32 || cmd.Metadata.Key != "" || cmd.ID[6]>>4 != 7 || cmd.ID[8]>>6 != 2 {
		t.Errorf("the command keeps %+v and has the id %v", cmd.Metadata, cmd.ID)
	}
	plain, err := RequestOf(post(`{}`)).NewCommand(named("order.place"), BodyOnly(post(`{}`)))
	if err != nil || plain.Metadata != (decide.Metadata{}) {
		t.Errorf("without key and reference the command keeps %+v, %v", plain.Metadata, err)
	}
	for header, ok := range map[string]bool{"a-B.9:_": true, "": false, "a b": false, strings.Repeat("x", 65): false, "ä": false} {
		c := post(`{}`)
		c.Request().Header.Set(operation.HeaderIdempotencyKey, header)
		cmd, err := RequestOf(c).NewCommand(named("t"), BodyOnly(c))
		if ok != (err == nil) || ok && (cmd.Metadata.Key != header || cmd.Metadata.Fingerprint == "") {
			t.Errorf("key %q: %+v, %v", header, cmd.Metadata, err)
		}
	}
	twice := post(`{}`)
	twice.Request().Header[operation.HeaderIdempotencyKey] = []string{"a", "b"}
	if _, err := RequestOf(twice).NewCommand(named("t")); err == nil {
		t.Error("two keys are accepted")
	}
}

func TestNewIDIsInOrderOfTime(t *testing.T) {
	before := time.Now().UnixMilli()
	id := operation.NewID()
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	if ms < before || ms > time.Now().UnixMilli() || operation.NewID() == id {
		t.Errorf("the id %v has the time %d", id, ms)
	}
}

func TestParam(t *testing.T) {
	var got string
	e := serve(t, Options{}, func(c echo.Context) error {
		got = Param(c, "code")
		return c.NoContent(204)
	})
	for path, want := range map[string]string{"C1": "C1", "a%2Fb": "a/b", "a%20b": "a b", "%00": "\ufffd", "%ff": "\ufffd", "a%2F%ff": "a/\ufffd", "%E2%82%AC": "€"} {
		if ask(e, "GET", "/v1/things/"+path, ""); got != want {
			t.Errorf("%s reads as %q, want %q", path, got, want)
		}
	}
}

// A header that anybody can write must not choose whose failed logins are counted; one that a proxy of ours wrote must.
func TestAddress(t *testing.T) {
	_, proxies, err := net.ParseCIDR("10.1.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		trusted []*net.IPNet
		peer    string
		header  string
		want    string
	}{
		{"no proxies", nil, "192.0.2.1:1", "8.8.8.8", "192.0.2.1"},
		{"no proxies, loopback", nil, "127.0.0.1:1", "8.8.8.8", "127.0.0.1"},
		{"no proxies, private", nil, "10.1.2.3:1", "8.8.8.8", "10.1.2.3"},
		{"a proxy", []*net.IPNet{proxies}, "10.1.2.3:1", "8.8.8.8", "8.8.8.8"},
		{"a proxy, with what the client wrote", []*net.IPNet{proxies}, "10.1.2.3:1", "9.9.9.9, 8.8.8.8", "8.8.8.8"},
		{"another peer", []*net.IPNet{proxies}, "10.2.0.1:1", "8.8.8.8", "10.2.0.1"},
		{"another peer, loopback", []*net.IPNet{proxies}, "127.0.0.1:1", "8.8.8.8", "127.0.0.1"},
	} {
		var got string
		e := serve(t, Options{TrustedProxies: test.trusted}, func(c echo.Context) error {
			got = c.RealIP()
			return c.NoContent(204)
		})
		r := httptest.NewRequest("GET", "/v1/things", nil)
		r.RemoteAddr = test.peer
		r.Header.Set("X-Forwarded-For", test.header)
		r.Header.Set("X-Real-Ip", "8.8.4.4")
		e.ServeHTTP(httptest.NewRecorder(), r)
		if got != test.want {
			t.Errorf("%s: the address is %s, want %s", test.name, got, test.want)
		}
	}
}

type submitFunc func(decide.Command) (submit.Result, error)

func (f submitFunc) Submit(_ context.Context, _ string, c decide.Command) (submit.Result, error) {
	return f(c)
}

func TestSubmitSetsThePosition(t *testing.T) {
	at := record.LogPosition{Journal: "trading", Sequence: 4}
	for _, err := range []error{nil, &submit.RefusedError{Refusal: decide.Refuse(decide.NotFound, "X", "y"), AsOf: at}} {
		e := serve(t, Options{}, func(c echo.Context) error {
			cmd, cmdErr := RequestOf(c).NewCommand(named("t"))
			if cmdErr != nil {
				return cmdErr
			}
			if _, err := operation.Submit(RequestOf(c), submitFunc(func(decide.Command) (submit.Result, error) {
				return submit.Result{Position: at}, err
			}), "trading", cmd); err != nil {
				return err
			}
			return c.NoContent(204)
		})
		if w := ask(e, "POST", "/v1/things", ""); w.Header().Get(operation.HeaderLogPosition) != "trading/0@4" {
			t.Errorf("after %v the position is %q", err, w.Header().Get(operation.HeaderLogPosition))
		}
	}
}

// named is a payload of which only the command's type counts.
type named string

// CommandType implements decide.Payload.
func (n named) CommandType() string { return string(n) }

// Reconstruct implements decide.Payload.
func (named) Reconstruct(*decide.Evidence) error { return nil }

// failing is a follower that fails while it is viewed: the state that it shows is no record's.
type failing struct {
	record.Follower
	waiter
	err error
}

func (f *failing) View(look func(decide.State, record.Position)) {
	look(identity.Rules().NewState(), record.Position{Sequence: 7})
	f.err = &record.BrokenRecordError{}
}

func (f *failing) Wait(ctx context.Context, sequence int64) error {
	return f.waiter.Wait(ctx, sequence)
}

func (f *failing) Err() error { return f.err }

func (f *failing) CaughtUp() <-chan struct{} { return record.AtOnce() }

// starting is a follower of a node that starts.
type starting struct {
	fold
	caughtUp chan struct{}
}

func (f *starting) CaughtUp() <-chan struct{} { return f.caughtUp }

func (f *starting) View(look func(decide.State, record.Position)) {
	look(identity.Rules().NewState(), record.Before)
}

// TestAViewOfAStartingNodeIsNoAnswer: until a follower has applied the records that the log has, its state proves nothing
// absent. The view waits for it, and gives up after a while.
func TestAViewOfAStartingNodeIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &starting{caughtUp: make(chan struct{})}
		var views atomic.Int64
		look := func(decide.State, int64) error { views.Add(1); return nil }
		all := func(c echo.Context) error {
			return ViewAll(c, map[string]record.Follower{"onboarding": &fold{}, "trading": f}, func(name string, _ decide.State) {
				if name == "trading" {
					views.Add(1)
				}
			})
		}
		one := func(c echo.Context) error { return View(c, "trading", f, look) }
		decided := func(c echo.Context) error { return ViewDecided(c, "trading", f, look) }
		for name, view := range map[string]func(echo.Context) error{"one": one, "decided": decided, "all": all} {
			if p := problem.Of(view(get(""))); p.Status != 503 || p.Code != "NOT_READY" || views.Load() > 0 {
				t.Errorf("%s: the answer is %d %s after %d views", name, p.Status, p.Code, views.Load())
			}
		}
		answer := make(chan error)
		for _, view := range []func(echo.Context) error{one, decided, all} {
			go func() { answer <- view(get("")) }()
		}
		synctest.Wait()
		close(f.caughtUp)
		for range 3 {
			if err := <-answer; err != nil {
				t.Errorf("a view that waited: %v", err)
			}
		}
		if n := views.Load(); n != 3 {
			t.Errorf("%d views after the node has started", n)
		}
	})
}

func TestAViewOfAFollowerThatFailsIsNoAnswer(t *testing.T) {
	err := View(get(""), "trading", &failing{}, func(decide.State, int64) error { return nil })
	if err == nil || problem.Of(err).Status != 503 {
		t.Errorf("the answer is %v", err)
	}
}
