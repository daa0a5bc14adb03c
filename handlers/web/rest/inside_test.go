package rest

import (
	"bytes"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// insideOf serves one operation for the user u, and returns what calls it.
func insideOf(t *testing.T, o Options, answer operation.Operation) (*Server, func(c Call) Reply) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.RegisterOperations(NewAuth(keyHolders()), []Route{OperationRoute("POST", "/v1/things/:code", answer, access.ScopeTrade)})
	return s, func(c Call) Reply {
		c.Method, c.Route, c.Token, c.Address = "POST", "/v1/things/:code", newKey, "127.0.0.1"
		return s.Do(t.Context(), &c)
	}
}

// TestCallsAreCountedAndLogged: as requests over HTTP are, those that fail included; a panic is one of these.
func TestCallsAreCountedAndLogged(t *testing.T) {
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	_, call := insideOf(t, Options{Metrics: metrics, Logger: slog.New(slog.NewJSONHandler(&log, nil))}, func(a operation.Request) (int, operation.Appender, error) {
		switch a.Param("code") {
		case "panics":
			panic("for a test")
		case "fails":
			return 0, nil, problem.NotFound("UNKNOWN_THING", "There is no such thing.")
		}
		return http.StatusCreated, written(`{}`), nil
	})
	for code, want := range map[string]int{"works": 201, "fails": 404, "panics": 500, "": 404} {
		r := call(Call{Params: []string{code}})
		if r.Status != want || want >= 400 && !strings.Contains(string(r.Body), `"instance":"/v1/things/`+code+`"`) {
			t.Errorf("%s: %d %s", code, r.Status, r.Body)
		}
	}
	counted, err := testutil.GatherAndCount(metrics, "perpetua_http_request_duration_seconds")
	if err != nil || counted != 4 {
		t.Errorf("%d kinds of requests are counted, %v", counted, err)
	}
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP perpetua_http_requests_active Requests that are being answered.
# TYPE perpetua_http_requests_active gauge
perpetua_http_requests_active 0
`), "perpetua_http_requests_active"); err != nil {
		t.Error(err)
	}
	for _, part := range []string{`"msg":"panic"`, `"route":"/v1/things/:code","path":"/v1/things/fails","status":404`, `"user":"u"`, `"code":"INTERNAL"`} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %s:\n%s", part, log.String())
		}
	}
}

// TestNothingIsLeftOfACall has calls leave behind whatever an operation may note, and looks what the next one finds.
func TestNothingIsLeftOfACall(t *testing.T) {
	var found []operation.Scope
	_, call := insideOf(t, Options{}, func(a operation.Request) (int, operation.Appender, error) {
		before := *a.Scope
		before.ID, before.Admission.Principal = "", nil
		found = append(found, before)
		a.AnswerAt(record.LogPosition{Journal: "trading", Sequence: 7})
		if _, err := a.BareCommand(named("thing.make")); err != nil {
			return 0, nil, err
		}
		a.Session = operation.NewID()
		_ = a.PartProblem(problem.NotFound("UNKNOWN_THING", "There is no such thing."))
		return http.StatusOK, written(strings.Repeat("x", 2*maxRoom)), nil
	})
	spares := make(map[scalar.ID]bool)
	for range 20 {
		call(Call{Params: []string{"x"}, Key: "k", Keyed: true, Session: operation.NewID(), Body: []byte("{}")})
		if r := call(Call{Params: []string{"x"}}); len(r.Body) != 2*maxRoom || r.Position != "trading/0@7" {
			t.Fatalf("%d bytes at %s", len(r.Body), r.Position)
		}
		last := found[len(found)-1]
		if last.Spare.IsZero() || spares[last.Spare] {
			t.Fatalf("a call finds the id %s for its command", last.Spare)
		}
		spares[last.Spare] = true
		last.Spare, last.Answered = scalar.ID{}, operation.Answered{} // the memory is the same for all
		if want := (operation.Scope{Address: "127.0.0.1", Admission: access.Admission{Judged: -1}}); !reflect.DeepEqual(last, want) {
			t.Fatalf("a call finds %+v", last)
		}
	}
}
