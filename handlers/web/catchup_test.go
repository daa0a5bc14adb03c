package web

import (
	"context"
	stdjson "encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// foldAt is a fold of the identity journal that stands at a sequence. wait is how it is waited for.
type foldAt struct {
	record.Follower
	sequence int64
	wait     func(ctx context.Context, sequence int64) error
}

func (f foldAt) Position() record.Position { return record.Position{Sequence: f.sequence} }

func (f foldAt) Wait(ctx context.Context, sequence int64) error {
	if sequence <= f.sequence {
		return nil
	}
	return f.wait(ctx, sequence)
}

var newKey = NewSecret()

// keyHolders are identities with the user u, who has the new key if it is known.
func keyHolders(known bool) *people {
	p := &people{accounts: map[string]Account{"u": active(RateLimit{})}, apiKeys: make(map[[32]byte]APIKey)}
	if known {
		p.learn()
	}
	return p
}

func (p *people) learn() {
	p.apiKeys[HashOf(newKey)] = APIKey{ID: NewID(), Username: "u", Scopes: []string{"trade"}}
}

// startJudge serves an operation for whoever has the scope, as startNode does for anybody. It counts what is submitted.
func startJudge(t *testing.T, p *people, fold foldAt, elsewhere string) (node *httptest.Server, submitted *int) {
	t.Helper()
	submitted = new(int)
	auth := NewAuth(NewTokens(p, issuer, time.Now))
	s, err := New(Options{ForwardKey: []byte("shared"), Identity: fold})
	if err != nil {
		t.Fatal(err)
	}
	routes := []Route{OperationRoute("POST", "/v1/things", func(a Request) (int, Appender, error) {
		b := a.OnlyForm(a.Content())
		b.String("name")
		if err := b.Done(); err != nil {
			return 0, nil, err
		}
		cmd, err := a.NewCommand(named("thing.make"), b)
		if err != nil {
			return 0, nil, err
		}
		_, err = Submit(a, submitFunc(func(decide.Command) (submit.Result, error) {
			if elsewhere != "" {
				return submit.Result{}, &submit.ElsewhereError{URL: elsewhere}
			}
			*submitted++
			return submit.Result{Position: record.LogPosition{Journal: "trading", Sequence: 8}}, nil
		}), "trading", cmd)
		return http.StatusCreated, written(`{"address":"` + a.client() + `"}`), err
	}, ScopeTrade)}
	auth.Register(s.Echo, routes)
	s.RegisterOperations(auth, routes)
	node = httptest.NewServer(s)
	t.Cleanup(node.Close)
	return node, submitted
}

// written is an answer as it is sent.
type written string

func (w written) AppendJSON(b []byte) ([]byte, error) { return append(b, w...), nil }

// waysIn are the ways in which a request with the new key comes to a node: over HTTP, and over a socket.
var waysIn = map[string]func(t *testing.T, node *httptest.Server) (status int, code string){
	"HTTP": func(t *testing.T, node *httptest.Server) (int, string) {
		status, _, answer := send(t, node.URL+"/v1/things", "Authorization", "Bearer "+newKey)
		code, _ := answer["code"].(string)
		return status, code
	},
	"a socket": func(t *testing.T, node *httptest.Server) (int, string) {
		call := Call{Method: "POST", Route: "/v1/things", Body: []byte(`{"name":"x"}`), Token: newKey, Address: "127.0.0.1"}
		r := node.Config.Handler.(*Server).Do(t.Context(), &call)
		var answer struct{ Code string }
		if err := stdjson.Unmarshal(r.Body, &answer); err != nil {
			t.Errorf("%v in %s", err, r.Body)
		}
		return r.Status, answer.Code
	},
}

// A key that the node which took the request knows already, and the owner does not yet: the owner waits for its fold.
func TestPassOnWaitsForTheIdentityJournal(t *testing.T) {
	for way, ask := range waysIn {
		t.Run(way, func(t *testing.T) {
			behind := keyHolders(false)
			asked, applied := make(chan int64, 1), make(chan struct{})
			owner, _ := startJudge(t, behind, foldAt{sequence: 6, wait: func(ctx context.Context, sequence int64) error {
				asked <- sequence
				select {
				case <-applied:
				case <-ctx.Done():
				}
				return ctx.Err()
			}}, "")
			first, _ := startJudge(t, keyHolders(true), foldAt{sequence: 7}, owner.URL)
			answered := make(chan int, 1)
			go func() {
				status, _ := ask(t, first)
				answered <- status
			}()
			select {
			case sequence := <-asked:
				if sequence != 7 {
					t.Errorf("it waits for %d", sequence)
				}
			case status := <-answered:
				t.Fatalf("%d before the owner's fold has the key", status)
			}
			behind.learn()
			close(applied)
			if status := <-answered; status != http.StatusCreated {
				t.Errorf("%d once it has", status)
			}
		})
	}
}

// A fold that does not get there in time, or has ended: nothing was submitted, and the answer says so.
func TestPassOnWaitsNoLongerThanARead(t *testing.T) {
	for way, ask := range waysIn {
		for _, failed := range []error{context.DeadlineExceeded, &record.DivergedError{Journal: "identity"}} {
			limits := make(chan time.Duration, 1)
			owner, submitted := startJudge(t, keyHolders(true), foldAt{sequence: 6, wait: func(ctx context.Context, _ int64) error {
				end, _ := ctx.Deadline()
				limits <- time.Until(end)
				return failed
			}}, "")
			first, _ := startJudge(t, keyHolders(true), foldAt{sequence: 7}, owner.URL)
			status, code := ask(t, first)
			if status != http.StatusServiceUnavailable || code != submit.CodeNotAccepted || *submitted != 0 {
				t.Errorf("over %s, %v: %d %s, %d submitted", way, failed, status, code, *submitted)
			} else if limit := <-limits; limit <= 0 || limit > waitLimit {
				t.Errorf("over %s it waits %v", way, limit)
			}
		}
	}
}

// A revocation that only the owner knows of counts.
func TestPassOnIsJudgedAgain(t *testing.T) {
	owner, submitted := startJudge(t, keyHolders(false), foldAt{sequence: 9}, "")
	first, _ := startJudge(t, keyHolders(true), foldAt{sequence: 7}, owner.URL)
	for way, ask := range waysIn {
		if status, code := ask(t, first); status != http.StatusUnauthorized || *submitted != 0 {
			t.Errorf("over %s: %d %s, %d submitted", way, status, code, *submitted)
		}
	}
}

// A client that writes a mark itself is not waited for, chooses nothing, and is judged as if it had written none.
func TestAForgedMarkGainsNothing(t *testing.T) {
	var waited atomic.Bool
	// Before the first record, so that a wait for any would show.
	fold := foldAt{sequence: -1, wait: func(context.Context, int64) error { waited.Store(true); return nil }}
	r := httptest.NewRequest("POST", "/v1/things", nil)
	m := mark{id: NewID(), session: NewID(), identity: 7, address: "203.0.113.5"}
	other := mark{m.id, m.session, 8, m.address}
	forged := map[string]string{
		"nonsense": "x", "nothing but dots": "....", "no proof": m.id.String() + ".00." + m.session.String() + ".7.203.0.113.5",
		"another key's proof": m.sign([]byte("a guess"), r), "no key's proof": m.sign(nil, r),
		"no id":            mark{identity: 7}.sign([]byte("a guess"), r),
		"another position": m.id.String() + "." + other.proof([]byte("shared"), r) + "." + m.session.String() + ".7.203.0.113.5",
		"another route":    m.sign([]byte("shared"), httptest.NewRequest("POST", "/v1/others", nil)),
	}
	for _, known := range []bool{true, false} {
		owner, _ := startJudge(t, keyHolders(known), fold, "")
		want := map[bool]int{true: http.StatusCreated, false: http.StatusUnauthorized}[known]
		for name, text := range forged {
			status, _, answer := send(t, owner.URL+"/v1/things", "Authorization", "Bearer "+newKey, headerForwarded, text)
			if status != want || waited.Load() || known && answer["address"] != "127.0.0.1" {
				t.Errorf("%s: %d %v, waited %v", name, status, answer, waited.Load())
			}
		}
		status, _, _ := send(t, owner.URL+"/v1/things", "Authorization", "Bearer "+newKey, headerForwarded, m.sign([]byte("shared"), r))
		if status != want || !waited.Load() {
			t.Errorf("a node's own: %d, waited %v", status, waited.Load())
		}
		waited.Store(false)
	}
}

// A request that nobody judged waits for nothing.
func TestAMarkOfNobody(t *testing.T) {
	r := &request{Context: echo.New().NewContext(httptest.NewRequest("POST", "/v1/things", nil), httptest.NewRecorder())}
	s := &Server{options: Options{Identity: foldAt{sequence: 7}}}
	if at := s.letInAt(RequestOf(r)); at != -1 {
		t.Errorf("let in by nobody at %d", at)
	}
	m := mark{id: NewID(), session: scalar.ID{}, identity: -1, address: "2001:db8::7"}
	if got := provenMark([]byte("k"), m.sign([]byte("k"), r.Request()), r.Request()); got != m {
		t.Errorf("%+v became %+v", m, got)
	}
}
