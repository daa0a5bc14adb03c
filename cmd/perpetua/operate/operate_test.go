package operate

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding"
	"github.com/perpetua-exchange/perpetua/handlers/trading"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestOperations: each route of the operator's interface has one operation, and none is of a route that is not there.
func TestOperations(t *testing.T) {
	routes := make(map[string]int)
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	owners := onboarding.Config{Box: box, Onboarding: follow.New(nil, domain.Rules(), 0), Now: time.Now}
	reads := slices.Concat(onboarding.New(owners).Operated(admin.Base), new(trading.Handler).Operated(admin.Base))
	for _, r := range admin.New(admin.Config{Reads: reads}).Routes() {
		routes[r.Method+" "+r.Path] = 0
	}
	named := make(map[string]bool)
	for _, o := range Operations() {
		route := o.Method + " " + o.Path
		if _, known := routes[route]; !known {
			t.Errorf("%s %s: there is no route %s", o.Group, o.Verb, route)
		}
		routes[route]++
		if name := o.Group + " " + o.Verb; named[name] || o.Help == "" || o.Method == http.MethodGet && o.Body != NoBody {
			t.Errorf("%s is there twice, without help, or a read with a body", name)
		} else {
			named[name] = true
		}
	}
	for route, n := range routes {
		if n != 1 {
			t.Errorf("%s has %d operations", route, n)
		}
	}
}

// venue is one that answers as it is told, and remembers what it was asked.
type venue struct {
	*httptest.Server
	asked   []string // method, target, token, key, body
	answers []func(http.ResponseWriter)
}

func newVenue(t *testing.T) *venue {
	v := new(venue)
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/auth/jwt/login" {
			if string(body) != "password=secret&username=operator" {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"detail":"LOGIN_BAD_CREDENTIALS"}`)
				return
			}
			_, _ = io.WriteString(w, `{"access_token":"T","token_type":"bearer"}`)
			return
		}
		v.asked = append(v.asked, strings.Join([]string{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"), string(body)}, " "))
		answer := v.answers[0]
		if len(v.answers) > 1 {
			v.answers = v.answers[1:]
		}
		answer(w)
	}))
	t.Cleanup(v.Close)
	return v
}

func answer(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// call runs a command against the venue.
func (v *venue) call(t *testing.T, stdin string, args ...string) (out, help string, err error) {
	t.Helper()
	env := map[string]string{"PERPETUA_ADMIN_URL": v.URL + "/", "PERPETUA_ADMIN_PASSWORD": "secret"}
	var o, e bytes.Buffer
	err = Command(t.Context(), args, settings.IO{In: strings.NewReader(stdin), Out: &o, Err: &e,
		Env: func(name string) (string, bool) { s, ok := env[name]; return s, ok }})
	return o.String(), e.String(), err
}

// TestCommand: what the line says is what the venue is asked, and its answer is printed.
func TestCommand(t *testing.T) {
	v := newVenue(t)
	v.answers = append(v.answers, answer(200, `{"id":"7","list":[]}`))
	file := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(file, []byte(`{"name":"f"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args, stdin, want string
	}{
		{"questionnaires list", "", "GET /admin/v1/questionnaires Bearer T  "},
		{"questionnaires list --page 2 --size=5", "", "GET /admin/v1/questionnaires?page=2&size=5 Bearer T  "},
		{"questionnaires create " + file + " --idempotency-key k", "", `POST /admin/v1/questionnaires Bearer T k {"name":"f"}`},
		{"questionnaires change --idempotency-key k 7 -", `{"name":"s"}`, `PATCH /admin/v1/questionnaires/7 Bearer T k {"name":"s"}`},
		{"questionnaires publish 7 --idempotency-key k", "", "POST /admin/v1/questionnaires/7/publish Bearer T k "},
		{"questionnaires publish 7 --json {} --idempotency-key k", "", "POST /admin/v1/questionnaires/7/publish Bearer T k {}"},
		{"due put-back expiry/1 --journal trading --idempotency-key k", "", "POST /admin/v1/due/expiry%2F1/put-back?journal=trading Bearer T k "},
		{"fees set A-1 BTCUSDC_PERP - --idempotency-key k", `{}`, "PUT /admin/v1/customers/A-1/fee-profile/BTCUSDC_PERP Bearer T k {}"},
		{"triggers request-information 7 --json {} --idempotency-key k", "", "POST /admin/v1/entitlement_triggers/7/request_information Bearer T k {}"},
		{"persons erasure 7", "", "GET /admin/v1/persons/7/erasure Bearer T  "},
	} {
		out, _, err := v.call(t, tt.stdin, strings.Fields(tt.args)...)
		if got := v.asked[len(v.asked)-1]; err != nil || got != tt.want {
			t.Errorf("%s\n asks  %q, %v\n wants %q", tt.args, got, err, tt.want)
		}
		if out != "{\n  \"id\": \"7\",\n  \"list\": []\n}\n" {
			t.Errorf("%s prints %q", tt.args, out)
		}
	}
}

// TestCommandFiles: what is no JSON is written byte for byte.
func TestCommandFiles(t *testing.T) {
	v := newVenue(t)
	v.answers = append(v.answers, answer(200, "PK\x03\x04\n\n"))
	if out, _, err := v.call(t, "", "persons", "export", "7"); err != nil || out != "PK\x03\x04\n\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestCommandRepeats: what the venue does not decide is asked again with the same key; what it refuses is told.
func TestCommandRepeats(t *testing.T) {
	v := newVenue(t)
	v.answers = append(v.answers, answer(503, `{"status":503,"code":"NOT_ACCEPTED","detail":"later","errors":[]}`), answer(201, `{}`))
	if _, _, err := v.call(t, "", "brokers", "create", "--json", "{}"); err != nil || len(v.asked) != 2 || v.asked[0] != v.asked[1] ||
		len(strings.Fields(v.asked[0])[4]) != 36 {
		t.Errorf("asked %q, %v", v.asked, err)
	}
	v.answers = append(v.answers[:0], answer(400, `{"status":400,"code":"VALIDATION_FAILED","detail":"The request has 2 faults.","errors":[{"field":"name","code":"REQUIRED","message":"is missing"},{"field":"","code":"X","message":"y"}]}`))
	_, _, err := v.call(t, "", "brokers", "create", "--json", "{}")
	if want := "400 VALIDATION_FAILED: The request has 2 faults.\n  name REQUIRED: is missing\n  the request X: y"; err == nil || err.Error() != want {
		t.Errorf("it says %v", err)
	}
	v.answers = append(v.answers[:0], answer(400, `{"status":400,"code":"VALIDATION_FAILED","detail":"The request is not valid: is missing.","errors":[{"field":"name","code":"REQUIRED","message":"is missing"}]}`))
	if _, _, err := v.call(t, "", "brokers", "create", "--json", "{}"); err == nil || err.Error() != "400 VALIDATION_FAILED\n  name REQUIRED: is missing" {
		t.Errorf("of one fault it says %v", err)
	}
	v.answers = append(v.answers[:0], answer(502, "<html>"))
	if _, _, err := v.call(t, "", "brokers", "list"); err == nil || err.Error() != `502 "<html>": Bad Gateway` {
		t.Errorf("of something else it says %v", err)
	}
	if _, _, err := v.call(t, "", "brokers", "list", "--user", "nobody"); err == nil || err.Error() != "the venue refuses the password of nobody from PERPETUA_ADMIN_PASSWORD" {
		t.Errorf("of a wrong password it says %v", err)
	}
}

// TestLoginRepeats: a login is repeated after as long as the venue asks, or longer after each refusal. It is not repeated if the venue
// refuses it, asks for more than half a minute, or does not respond.
func TestLoginRepeats(t *testing.T) {
	const (
		accepted = `{"access_token":"T"}`
		limited  = `{"status":429,"code":"RATE_LIMITED","detail":"too many"}`
		starting = `{"detail":"NOT_READY"}`
	)
	type response struct {
		status     int
		retryAfter string
		body       string
	}
	for _, test := range []struct {
		name      string
		responses []response
		waits     []time.Duration
		err       string // "" for a token
	}{
		{"after refusals", []response{{429, "3", limited}, {503, "", starting}, {503, "1", starting}, {200, "", accepted}}, []time.Duration{3 * time.Second, 2 * firstWait, 4 * firstWait}, ""},
		{"a date that is past", []response{{503, "Fri, 31 Dec 1999 23:59:59 GMT", starting}, {200, "", accepted}}, []time.Duration{firstWait}, ""},
		{"too many", slices.Repeat([]response{{503, "20", starting}}, tries), slices.Repeat([]time.Duration{20 * time.Second}, tries-1),
			"log in as operator: 503 NOT_READY: Service Unavailable\n  the venue asks to repeat the request after 20s"},
		{"a very long wait", []response{{429, "9223372037", limited}}, nil, "log in as operator: 429 RATE_LIMITED: too many\n  the venue asks to repeat the request after 24h0m0s"},
		{"a long wait", []response{{429, "31", limited}}, nil, "log in as operator: 429 RATE_LIMITED: too many\n  the venue asks to repeat the request after 31s"},
		{"another venue", []response{{503, "", `{"status":503,"code":"FENCED","detail":"a copy"}`}}, nil, "log in as operator: 503 FENCED: a copy"},
		{"a wrong password", []response{{400, "", `{"detail":"LOGIN_BAD_CREDENTIALS"}`}}, nil, "log in as operator: 400 LOGIN_BAD_CREDENTIALS: Bad Request"},
	} {
		left := test.responses
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); len(left) == 0 || string(body) != "password=secret&username=operator" {
				t.Errorf("%s: %d responses are left for %q", test.name, len(left), body)
				return
			}
			if left[0].retryAfter != "" {
				w.Header().Set("Retry-After", left[0].retryAfter)
			}
			answer(left[0].status, left[0].body)(w)
			left = left[1:]
		}))
		var waits []time.Duration
		c := newClient(server.URL)
		c.pause = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
		err := c.login(t.Context(), "operator", "secret")
		if test.err == "" && (err != nil || c.token != "T") || test.err != "" && (err == nil || err.Error() != test.err) {
			t.Errorf("%s: %q, %v, want %q", test.name, c.token, err, test.err)
		}
		if !slices.Equal(waits, test.waits) || len(left) > 0 {
			t.Errorf("%s: waits %v, want %v; %d responses are left", test.name, waits, test.waits, len(left))
		}
		server.Close()
		if waits = nil; c.login(t.Context(), "operator", "secret") == nil || waits != nil {
			t.Errorf("%s: waits %v for a venue that does not respond", test.name, waits)
		}
	}
}

// TestRetryAfter: the header has seconds or a date.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-7": 0, "1.5": 0, "soon": 0,
		"86400": maxRetryAfter, "86401": maxRetryAfter, "18446744073709551615": maxRetryAfter, "99999999999999999999": maxRetryAfter,
		"Fri, 02 Jan 2026 03:04:05 GMT": 0, "Fri, 02 Jan 2026 03:04:06 GMT": time.Second, "Friday, 02-Jan-26 03:04:16 GMT": 11 * time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT": maxRetryAfter, "Fri, 31 Dec 1999 23:59:59 GMT": 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

// TestRequestsThatCannotBeMade: a client with a wrong URL does not wait and try again.
func TestRequestsThatCannotBeMade(t *testing.T) {
	c := newClient("http://a b")
	c.pause = func(context.Context, time.Duration) error { t.Error("the client waits"); return nil }
	if err := c.login(t.Context(), "operator", "secret"); err == nil {
		t.Error("the login succeeds")
	}
	if _, err := c.do(t.Context(), http.MethodGet, "/", content{}, ""); err == nil {
		t.Error("the request succeeds")
	}
}

// TestCommandUsage: whatever cannot be meant is refused with what would be right, before the venue is asked.
func TestCommandUsage(t *testing.T) {
	v := newVenue(t)
	for args, want := range map[string]string{
		"nothing list":                 `there is no group "nothing" (perpetua admin help lists the groups and their verbs)`,
		"--data d brokers list":        "flags come after GROUP VERB (perpetua admin help lists them)",
		"brokers":                      "admin brokers: a verb is needed: list, create",
		"brokers burn":                 `admin brokers has no verb "burn": it has list, create`,
		"questionnaires show":          "usage: perpetua admin questionnaires show ID [flags]",
		"questionnaires show a b":      "usage: perpetua admin questionnaires show ID [flags]",
		"questionnaires create":        "usage: perpetua admin questionnaires create FILE [flags]",
		"questionnaires publish a b c": "usage: perpetua admin questionnaires publish ID [FILE] [flags]",
		"brokers create f --json {}":   "usage: perpetua admin brokers create FILE [flags]",
		"brokers list --status open":   "there is no flag --status (perpetua admin brokers list -h lists the flags)",
	} {
		_, _, err := v.call(t, "", strings.Fields(args)...)
		var usage *settings.UsageError
		if !errors.As(err, &usage) || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	for _, args := range []string{"triggers help", "triggers approve -h"} {
		_, help, err := v.call(t, "", strings.Fields(args)...)
		if !errors.Is(err, flag.ErrHelp) || !strings.Contains(help, "triggers approve ID FILE") {
			t.Errorf("%s: %v, %s", args, err, help)
		}
	}
	if len(v.asked) > 0 {
		t.Errorf("the venue was asked %q", v.asked)
	}
}

// TestCommandOnFolder: run.json of the data folder says where the venue is and what the password is.
func TestCommandOnFolder(t *testing.T) {
	v := newVenue(t)
	v.answers = append(v.answers, answer(200, `{}`))
	dir := t.TempDir()
	env := func(string) (string, bool) { return "", false }
	call := func(args ...string) error {
		var out bytes.Buffer
		return Command(t.Context(), append(args, "--data", dir), settings.IO{Out: &out, Err: &out, Env: env})
	}
	if err := call("brokers", "list"); err == nil || !strings.Contains(err.Error(), "nothing runs on the data folder") {
		t.Errorf("without a venue: %v", err)
	}
	run := local.RunFile{PID: os.Getpid(), REST: v.URL, Users: []local.User{{Username: "operator", Password: "secret"}}}
	if err := local.WriteRunFile(filepath.Join(dir, "run.json"), run); err != nil {
		t.Fatal(err)
	}
	if err := call("brokers", "list"); err == nil || !strings.Contains(err.Error(), "nothing runs on the data folder") {
		t.Errorf("on the copy of the folder of a venue: %v", err)
	}
	folder, err := local.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := call("brokers", "list"); err != nil || !slices.Equal(v.asked, []string{"GET /admin/v1/brokers Bearer T  "}) {
		t.Errorf("asked %q, %v", v.asked, err)
	}
	if err := call("brokers", "list", "--user", "stranger"); err == nil || !strings.Contains(err.Error(), "the password of stranger is not known") {
		t.Errorf("of a stranger: %v", err)
	}
}

// TestAPasswordThatWasChanged: run.json has the first passwords, so a refused one may be an old one.
func TestAPasswordThatWasChanged(t *testing.T) {
	v := newVenue(t)
	folder := t.TempDir()
	locked, err := local.OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer locked.Close()
	if err := local.WriteRunFile(locked.Path("run.json"), local.RunFile{PID: os.Getpid(), REST: v.URL, Users: []local.User{{Username: "operator", Password: "old"}}}); err != nil {
		t.Fatal(err)
	}
	err = Command(t.Context(), []string{"brokers", "list", "--data", folder}, settings.IO{Out: io.Discard, Err: io.Discard,
		Env: func(string) (string, bool) { return "", false }})
	if err == nil || !strings.Contains(err.Error(), "run.json, which has the first passwords: if it was changed, set PERPETUA_ADMIN_PASSWORD") {
		t.Error(err)
	}
}
