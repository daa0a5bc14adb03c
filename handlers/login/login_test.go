package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/lestrrat-go/jwx/v2/jwt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// cheap is the cost of hashes in tests that do not look at it.
var cheap = cost{memory: 8, passes: 1, lanes: 1}

// memoryState is a follower that holds its state itself.
type memoryState struct {
	record.Follower
	mu       sync.Mutex
	state    *identity.State
	sequence int64
	wait     func(sequence int64) error // what waiting comes to; nil for nothing to wait for
	listen   func(record.Entry, decide.State)
	caughtUp chan struct{}                    // nil for a state that has all records
	timed    func(record.Entry, decide.State) // as listen, of ListenFrom
}

// CaughtUp implements record.Follower.
func (m *memoryState) CaughtUp() <-chan struct{} {
	if m.caughtUp == nil {
		return record.AtOnce()
	}
	return m.caughtUp
}

func (m *memoryState) ListenFrom(start func(decide.State, record.Position), call func(record.Entry, decide.State)) (stop func()) {
	m.View(start)
	m.timed = call
	return func() { m.timed = nil }
}

func (m *memoryState) Listen(call func(record.Entry, decide.State)) { m.listen = call }

func (m *memoryState) Wait(_ context.Context, sequence int64) error {
	if m.wait == nil {
		return nil
	}
	return m.wait(sequence)
}

func (m *memoryState) View(look func(decide.State, record.Position)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	look(m.state, record.Position{Sequence: m.sequence})
}

// desk is a login service over a state in memory, with a clock that only the test moves.
type desk struct {
	t      testing.TB
	mu     sync.Mutex
	at     time.Time
	box    *seal.Box
	memory *memoryState
	server *rest.Server
	login  *Handler
	tokens *access.Tokens
	log    bytes.Buffer
}

func (d *desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

func (d *desk) pass(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = d.at.Add(t)
}

// do has a command decided and folds what it causes.
func (d *desk) do(kind string, payload any) {
	d.t.Helper()
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	d.memory.sequence++
	at := decide.Stamp{Sequence: d.memory.sequence, Time: scalar.TimeOf(d.now())}
	c := decide.Command{Type: kind, Actor: decide.Actor{System: "test"}, Payload: payload}
	decision, err := d.memory.state.Decide(at, c)
	if err != nil {
		d.t.Fatalf("%s: %v", kind, err)
	}
	d.memory.state.Evolve(at, c.Recorded(), decision.Outcome, decision.Events)
	for _, listen := range []func(record.Entry, decide.State){d.memory.listen, d.memory.timed} {
		if listen != nil {
			listen(record.Entry{Record: &record.Record{Time: at.Time, Events: decision.Events}}, d.memory.state)
		}
	}
}

func (d *desk) addUser(u identity.RegisterUser, password string) {
	d.t.Helper()
	u.Broker = "alpha"
	u.PasswordHash = d.seal(u.Username, password)
	d.do(identity.CommandRegisterUser, &u)
}

// seal returns the sealed hash of a user's password.
func (d *desk) seal(username, password string) identity.Sealed {
	d.t.Helper()
	sealed, err := sealHash(d.box, username, hashPassword(password, cheap))
	if err != nil {
		d.t.Fatal(err)
	}
	return sealed
}

func (d *desk) addKey() string {
	d.t.Helper()
	k, err := NewSigningKey(d.box)
	if err != nil {
		d.t.Fatal(err)
	}
	d.do(identity.CommandAddSigningKey, k)
	return k.KID
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	box, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, at: time.Unix(1_800_000_000, 0), box: box, memory: &memoryState{state: identity.NewState()}}
	d.do(identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: "alpha", Name: "Alpha"})
	scopes := []string{identity.ScopeTrade, identity.ScopeRead}
	d.addUser(identity.RegisterUser{Username: "user", Scopes: scopes, IsActive: true, IsVerified: true}, "right")
	d.addUser(identity.RegisterUser{Username: "account", Scopes: scopes, IsActive: true, IsVerified: true, CustomerCode: "C1"}, "right")
	d.addUser(identity.RegisterUser{Username: "inactive", Scopes: scopes, IsVerified: true}, "right")
	d.addUser(identity.RegisterUser{Username: "unverified", Scopes: scopes, IsActive: true}, "right")
	d.login = newHandler(Options{Identity: d.memory, Box: box, Issuer: DefaultIssuer, Now: d.now, Hashes: 2}, cheap)
	d.tokens = access.NewTokens(NewDirectory(d.memory), DefaultIssuer, d.now)
	if d.server, err = rest.New(rest.Options{Logger: slog.New(slog.NewJSONHandler(&d.log, nil))}); err != nil {
		t.Fatal(err)
	}
	d.login.Register(d.server.Echo)
	return d
}

func (d *desk) post(body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/auth/jwt/login", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, r)
	return w
}

func (d *desk) try(username, password, address string) *httptest.ResponseRecorder {
	return d.post(url.Values{"username": {username}, "password": {password}}.Encode(), func(r *http.Request) {
		if address != "" {
			r.RemoteAddr = address
		}
	})
}

// token logs in and returns the token.
func (d *desk) token(username string) string {
	d.t.Helper()
	w := d.try(username, "right", "")
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 {
		d.t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	return answer.AccessToken
}

func TestLogin(t *testing.T) {
	d := newDesk(t)
	kid := d.addKey()
	w := d.try("user", "right", "")
	token := d.token("user")
	if !strings.HasPrefix(w.Body.String(), `{"access_token":"`) || !strings.HasSuffix(w.Body.String(), `","token_type":"bearer"}`) || w.Code != 200 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("the headers are %v", w.Header())
	}
	message, err := jws.Parse([]byte(token))
	if err != nil {
		t.Fatal(err)
	}
	header := message.Signatures()[0].ProtectedHeaders()
	if header.KeyID() != kid || header.Algorithm() != "EdDSA" {
		t.Errorf("the token's header is %v", header)
	}
	var claims map[string]any
	if err := json.Unmarshal(message.Payload(), &claims); err != nil {
		t.Fatal(err)
	}
	at := float64(d.at.Unix())
	want := map[string]any{"sub": "user", "broker": "alpha", "scope": "trade read", "iss": "perpetua", "iat": at, "exp": at + 3600, "jti": claims["jti"],
		"password_changed": at * 1e6}
	if fmt.Sprint(claims) != fmt.Sprint(want) || claims["jti"] == "" {
		t.Errorf("the claims are %v, want %v", claims, want)
	}
	p, err := d.tokens.Verify(d.token("account"), "")
	if err != nil || p.Customer != "C1" {
		t.Errorf("the token of one account: %+v, %v", p, err)
	}
	d.pass(Lifetime - time.Second)
	if _, err := d.tokens.Verify(token, ""); err != nil {
		t.Errorf("a second before its end the token is %v", err)
	}
	d.pass(time.Second)
	if _, err := d.tokens.Verify(token, ""); err == nil {
		t.Error("the token is good for more than 3600 s")
	}
}

func TestLoginRefusals(t *testing.T) {
	const missing = `{"type":"missing","loc":["body","%s"],"msg":"Field required","input":null}`
	user, password := fmt.Sprintf(missing, "username"), fmt.Sprintf(missing, "password")
	bad := `{"detail":"LOGIN_BAD_CREDENTIALS"}`
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"wrong password", "username=user&password=wrong", 400, bad},
		{"unknown user", "username=nobody&password=right", 400, bad},
		{"another case", "username=User&password=right", 400, bad},
		{"inactive", "username=inactive&password=right", 400, bad},
		{"inactive with a wrong password", "username=inactive&password=wrong", 400, bad},
		{"unverified", "username=unverified&password=right", 400, `{"detail":"LOGIN_USER_NOT_VERIFIED"}`},
		{"unverified with a wrong password", "username=unverified&password=wrong", 400, bad},
		{"nothing", "", 422, `{"detail":[` + user + `,` + password + `]}`},
		{"no password", "username=user", 422, `{"detail":[` + password + `]}`},
		{"empty username", "username=&password=x", 422, `{"detail":[` + user + `]}`},
		{"empty both", "username=&password=", 422, `{"detail":[` + user + `,` + password + `]}`},
		{"grant type", "username=user&password=right&grant_type=refresh_token", 422, `{"detail":[{"type":"string_pattern_mismatch","loc":["body","grant_type"],"msg":"String should match pattern '^password$'","input":"refresh_token"}]}`},
		{"all of it", "grant_type=x", 422, `{"detail":[{"type":"string_pattern_mismatch","loc":["body","grant_type"],"msg":"String should match pattern '^password$'","input":"x"},` + user + `,` + password + `]}`},
		{"NUL", "username=a%00b&password=x", 422, `{"detail":[{"type":"value_error","loc":["body","username"],"msg":"Value error, the text holds a control character","input":"a\u0000b"}]}`},
		{"NUL in the password", "username=a&password=secret%00", 422, `{"detail":[{"type":"value_error","loc":["body","password"],"msg":"Value error, the text holds a control character","input":null}]}`},
		{"invalid UTF-8", "username=%ff&password=x", 422, `{"detail":[{"type":"string_unicode","loc":["body","username"],"msg":"Input should be a valid string, unable to parse raw data as a unicode string","input":null}]}`},
		{"long password", "username=a&password=" + strings.Repeat("x", 1025), 422, `{"detail":[{"type":"string_too_long","loc":["body","password"],"msg":"String should have at most 1024 characters","input":null}]}`},
		{"bad escape", "username=%zz", 422, `{"detail":[{"type":"value_error","loc":["body"],"msg":"Value error, the form is not encoded correctly","input":null}]}`},
		{"huge", "username=" + strings.Repeat("x", 100_000), 413, `{"detail":"BODY_TOO_LARGE"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.addKey()
			w := d.post(test.body, nil)
			if w.Code != test.status || w.Body.String() != test.want {
				t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, test.status, test.want)
			}
			if strings.Contains(d.log.String(), "right") || strings.Contains(d.log.String(), "wrong") {
				t.Errorf("the log holds a password: %s", d.log.String())
			}
		})
	}
}

// TestLoginWaitsForThePosition logs in a user that another node has just made. The record comes while the login waits.
func TestLoginWaitsForThePosition(t *testing.T) {
	for _, test := range []struct {
		name, position string
		reached        error // what waiting for the record comes to
		status         int
		want           string // what the answer begins with
	}{
		{"no position", "", nil, 400, `{"detail":"LOGIN_BAD_CREDENTIALS"}`},
		{"the user's position", "identity/0@42", nil, 200, `{"access_token":`},
		{"a position that does not come", "identity/0@42", context.DeadlineExceeded, 412, `{"detail":"LOG_POSITION_NOT_REACHED"}`},
		{"another journal's", "trading/0@42", nil, 412, `{"detail":"LOG_POSITION_NOT_REACHED"}`},
		{"no position at all", "42", nil, 422, `{"detail":[{"type":"value_error","loc":["header","X-Min-Log-Position"],`},
		{"a fold that has ended", "identity/0@42", errors.New("the fold has ended"), 503, `{"detail":"SOURCE_UNAVAILABLE"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.addKey()
			d.memory.wait = func(sequence int64) error {
				if sequence != 42 {
					t.Errorf("it waits for %d", sequence)
				}
				d.addUser(identity.RegisterUser{Username: "late", Scopes: []string{identity.ScopeRead}, IsActive: true, IsVerified: true}, "right")
				return test.reached
			}
			w := d.post("username=late&password=right", func(r *http.Request) {
				if test.position != "" {
					r.Header.Set(operation.HeaderMinLogPosition, test.position)
				}
			})
			if w.Code != test.status || !strings.HasPrefix(w.Body.String(), test.want) {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, test.status, test.want)
			}
		})
	}
}

func TestLoginForms(t *testing.T) {
	d := newDesk(t)
	d.addKey()
	for _, body := range []string{
		"username=user&password=right&grant_type=password", "username=user&password=right&grant_type=",
		"username=user&password=right&scope=&client_id=&client_secret=", "username=x&username=user&password=right",
	} {
		if w := d.post(body, nil); w.Code != 200 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	charset := func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	}
	if w := d.post("username=user&password=right", charset); w.Code != 200 {
		t.Errorf("with a charset: %d %s", w.Code, w.Body)
	}
	asJSON := func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }
	if w := d.post(`{"username":"user","password":"right"}`, asJSON); w.Code != 422 {
		t.Errorf("as JSON: %d %s", w.Code, w.Body)
	}
}

func TestLoginWithoutKey(t *testing.T) {
	d := newDesk(t)
	if w := d.try("user", "right", ""); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestLoginAtAStartingNode: a node that has not read all users cannot say that one does not exist. Guesses count as ever.
func TestLoginAtAStartingNode(t *testing.T) {
	d := newDesk(t)
	d.addKey()
	starting := true
	d.login.starting = func() bool { return starting }
	if w := d.try("later", "right", ""); w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "NOT_READY") {
		t.Errorf("an unknown user: %d %s", w.Code, w.Body)
	}
	if w := d.try("user", "right", ""); w.Code != 200 {
		t.Errorf("a known user: %d %s", w.Code, w.Body)
	}
	for range 50 {
		if w := d.try("user", "wrong", ""); w.Code == 429 {
			break
		} else if w.Code != 503 {
			t.Fatalf("a wrong password: %d %s", w.Code, w.Body)
		}
	}
	if w := d.try("user", "wrong", ""); w.Code != 429 {
		t.Errorf("after many wrong passwords: %d %s", w.Code, w.Body)
	}
	starting = false
	if w := d.try("later", "right", ""); w.Code != 400 {
		t.Errorf("an unknown user of a node that has started: %d %s", w.Code, w.Body)
	}
}

func TestLoginWithAnotherMasterKey(t *testing.T) {
	d := newDesk(t)
	d.addKey()
	if err := CheckSeal(d.memory, d.box); err != nil {
		t.Errorf("the right master key: %v", err)
	}
	other, err := seal.New(bytes.Repeat([]byte{8}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	var wrong *seal.WrongKeyError
	if err := CheckSeal(d.memory, other); !errors.As(err, &wrong) {
		t.Errorf("another master key: %v", err)
	}
	d.login.box = other
	if w := d.try("user", "right", ""); w.Code != 500 || w.Body.String() != `{"detail":"Internal Server Error"}` {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if _, wait, _ := d.login.attempts.begin(context.Background(), pair{"user", "192.0.2.1"}); wait != 0 {
		t.Error("the server's own failure counts against the user")
	}
}

func TestFailedAttemptsAreDelayed(t *testing.T) {
	d := newDesk(t)
	d.addKey()
	want := func(w *httptest.ResponseRecorder, status int, retry string) {
		t.Helper()
		if w.Code != status || w.Header().Get("Retry-After") != retry {
			t.Errorf("got %d %s, Retry-After %q; want %d, %q", w.Code, w.Body, w.Header().Get("Retry-After"), status, retry)
		}
	}
	for range freeFailures {
		want(d.try("user", "wrong", ""), 400, "")
	}
	want(d.try("user", "right", ""), 429, "1")
	want(d.try("user", "right", "198.51.100.1:1"), 200, "") // the user from elsewhere is not locked out
	want(d.try("account", "right", ""), 200, "")            // nor is another user from here
	delay := time.Second
	for range 12 {
		d.pass(delay - time.Millisecond)
		want(d.try("user", "right", ""), 429, "1")
		d.pass(time.Millisecond)
		want(d.try("user", "wrong", ""), 400, "")
		delay = min(2*delay, longestDelay)
		want(d.try("user", "wrong", ""), 429, fmt.Sprint(int(delay.Seconds())))
	}
	if delay != 15*time.Minute {
		t.Errorf("the longest delay is %v", delay)
	}
	d.pass(delay)
	want(d.try("user", "right", ""), 200, "")
	want(d.try("user", "wrong", ""), 400, "") // counting starts anew
	want(d.try("user", "right", ""), 200, "")

	for range freeFailures {
		want(d.try("ghost", "wrong", "[2001:db8::1]:1"), 400, "")
	}
	want(d.try("ghost", "wrong", "[2001:db8::2]:1"), 429, "1") // the same network
	want(d.try("ghost", "wrong", "[2001:db8:1::2]:1"), 400, "")
	header := func(r *http.Request) {
		r.RemoteAddr = "[2001:db8::1]:1"
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
	}
	want(d.post("username=ghost&password=wrong", header), 429, "1")
}

func TestVolleyGetsNoFurtherThanARow(t *testing.T) {
	d := newDesk(t)
	d.addKey()
	codes := make(chan int, 40)
	var group sync.WaitGroup
	for range cap(codes) {
		group.Go(func() { codes <- d.try("user", "wrong", "").Code })
	}
	group.Wait()
	close(codes)
	count := map[int]int{}
	for c := range codes {
		count[c]++
	}
	if count[400] != freeFailures || count[429] != cap(codes)-freeFailures {
		t.Errorf("the answers are %v", count)
	}
}

// A flood from one place is turned away there, keeps nobody else out, and leaves nothing behind.
func TestFloodFromOneAddress(t *testing.T) {
	d := newDesk(t)
	d.addKey()
	for range cap(d.login.slots) { // no hash gets done, so that logins stay under way
		d.login.slots <- struct{}{}
	}
	done := make(chan int)
	for i := range 3 * maxWaitingFrom {
		go func() { done <- d.try(fmt.Sprintf("ghost%d", i), "wrong", "198.51.100.1:1").Code }()
	}
	for range 2 * maxWaitingFrom { // those beyond the bound are answered while the others wait
		if code := <-done; code != http.StatusServiceUnavailable {
			t.Fatalf("got %d, want 503", code)
		}
	}
	other := make(chan int)
	go func() { other <- d.try("user", "right", "").Code }()
	for range cap(d.login.slots) {
		<-d.login.slots
	}
	if code := <-other; code != http.StatusOK {
		t.Errorf("somebody else got %d", code)
	}
	for range maxWaitingFrom {
		if code := <-done; code != http.StatusBadRequest {
			t.Errorf("one that waited got %d", code)
		}
	}
	if q := &d.login.queue; q.total != 0 || len(q.from) != 0 {
		t.Errorf("%d logins are still counted, from %v", q.total, q.from)
	}
}

func TestQueueIsBounded(t *testing.T) {
	var q queue
	for i := range maxWaiting {
		if !q.enter(fmt.Sprint(i / maxWaitingFrom)) {
			t.Fatalf("login %d is turned away", i)
		}
	}
	if q.enter("elsewhere") {
		t.Error("one more is let in")
	}
	q.leave("0")
	if !q.enter("elsewhere") {
		t.Error("nobody is let in after one has left")
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	a := newAttempts(func() time.Time { return at })
	try := func(account string, o outcome) {
		tracked, wait, err := a.begin(context.Background(), pair{account, "x"})
		if err != nil || wait > 0 {
			t.Fatal(wait, err)
		}
		a.finish(tracked, o)
	}
	for i := range maxTracked + 100 {
		try(fmt.Sprint(i), failed)
	}
	if n := len(a.entries); n != maxTracked || a.recent.Len() != n {
		t.Errorf("%d pairs are tracked and %d listed, want %d", n, a.recent.Len(), maxTracked)
	}
	at = at.Add(forgetAfter)
	try("one", succeeded)
	if n := len(a.entries); n != 0 || a.recent.Len() != 0 {
		t.Errorf("an hour later %d pairs are tracked", n)
	}
	held, _, err := a.begin(context.Background(), pair{"one", "x"})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := a.begin(gone, pair{"one", "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that went away: %v", err)
	}
	a.finish(held, undecided)
	if len(a.entries) != 0 {
		t.Error("an attempt that counts for nothing is remembered")
	}
}

// TestAStartingNodePublishesNoKeys: it may lack some, and what it publishes is kept by others.
func TestAStartingNodePublishesNoKeys(t *testing.T) {
	d := newDesk(t)
	kid := d.addKey()
	d.memory.caughtUp = make(chan struct{})
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		d.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/.well-known/jwks.json", nil))
		return w
	}
	if w := ask(); w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), kid) {
		t.Errorf("while it starts: %d %v %s", w.Code, w.Header(), w.Body)
	}
	close(d.memory.caughtUp)
	if w := ask(); w.Code != 200 || !strings.Contains(w.Body.String(), kid) {
		t.Errorf("then: %d %s", w.Code, w.Body)
	}
}

func TestKeyRotationWithoutDowntime(t *testing.T) {
	d := newDesk(t)
	first := d.addKey()
	old := d.token("user")
	d.pass(time.Minute)
	second := d.addKey()
	kids := func() string {
		r := httptest.NewRecorder()
		d.server.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/.well-known/jwks.json", nil))
		set, err := jwk.Parse(r.Body.Bytes())
		if err != nil || r.Code != 200 {
			t.Fatalf("%d %s: %v", r.Code, r.Body, err)
		}
		for _, token := range []string{old, d.token("user")} { // a stock verifier can use the set
			clock := jwt.WithClock(jwt.ClockFunc(d.now))
			if _, err := jwt.Parse([]byte(token), jwt.WithKeySet(set), clock); err != nil && set.Len() == 2 {
				t.Errorf("the set does not verify a token: %v", err)
			}
		}
		var out []string
		for i := range set.Len() {
			k, _ := set.Key(i)
			out = append(out, k.KeyID())
		}
		return strings.Join(out, " ")
	}
	if got := kids(); got != first+" "+second {
		t.Errorf("published are %s", got)
	}
	d.pass(time.Duration(identity.KeyDelay) * time.Microsecond)
	fresh := d.token("user")
	message, err := jws.Parse([]byte(fresh))
	if err != nil || message.Signatures()[0].ProtectedHeaders().KeyID() != second {
		t.Errorf("the newest key does not sign (%v)", err)
	}
	for name, token := range map[string]string{"old": old, "new": fresh} {
		if _, err := d.tokens.Verify(token, ""); err != nil {
			t.Errorf("the %s token: %v", name, err)
		}
	}
	d.do(identity.CommandRetireSigningKey, &identity.RetireSigningKey{KID: first})
	if _, err := d.tokens.Verify(old, ""); err == nil {
		t.Error("a token of the retired key is accepted")
	}
	if _, err := d.tokens.Verify(fresh, ""); err != nil {
		t.Error(err)
	}
	if got := kids(); got != second {
		t.Errorf("published are %s", got)
	}
}

func TestDirectory(t *testing.T) {
	d := newDesk(t)
	directory := NewDirectory(d.memory)
	d.do(identity.CommandChangeUser, &identity.ChangeUser{Username: "user", RateLimit: &identity.RateLimit{PerSecond: 2, Burst: 3}})
	if a, ok := directory.Account("user"); !ok || !a.Active || a.RateLimit != (access.RateLimit{PerSecond: 2, Burst: 3}) {
		t.Errorf("got %+v %v", a, ok)
	}
	if a, ok := directory.Account("inactive"); !ok || a.Active || a.RateLimit != (access.RateLimit{}) {
		t.Errorf("got %+v %v", a, ok)
	}
	if a, _ := directory.Account("account"); a.Broker != "alpha" || a.Customer != "C1" || len(a.Scopes) != 2 {
		t.Errorf("got %+v", a)
	}
	if _, ok := directory.Account("nobody"); ok {
		t.Error("nobody has an account")
	}
	if _, ok := directory.PublicKey("nothing"); ok {
		t.Error("an unknown key is known")
	}
}

// FuzzCredentials looks for a form that is read with something in it that must not get further.
func FuzzCredentials(f *testing.F) {
	for _, s := range []string{"", "username=a&password=b", "username=%00&password=%ff", "grant_type=x;", "username=a&username=b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest(http.MethodPost, "/auth/jwt/login", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		username, password, err := credentials(echo.New().NewContext(r, httptest.NewRecorder()))
		if err != nil {
			return
		}
		for _, s := range []string{username, password} {
			if s == "" || len(s) > MaxPassword || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
				t.Fatalf("%q gives %q", body, s)
			}
		}
	})
}
