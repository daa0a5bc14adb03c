package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// script is a server that gives one answer after the other, and the last one for ever.
type script struct {
	mu      sync.Mutex
	answers []func(http.ResponseWriter, *http.Request)
	asked   []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
	answer := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	answer(w, r)
}

func status(code int, body string, headers ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func startScript(t *testing.T, answers ...func(http.ResponseWriter, *http.Request)) (*script, *client, *strings.Builder) {
	t.Helper()
	s, said := &script{answers: answers}, &strings.Builder{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := newClient(server.URL, "test", slog.New(slog.NewTextHandler(said, nil)))
	t.Cleanup(c.close)
	return s, c, said
}

func TestClientComesBack(t *testing.T) {
	s, c, said := startScript(t, status(503, `{"code":"NOT_ACCEPTED"}`), status(429, `{}`, "Retry-After", "1"), status(412, `{}`),
		status(201, `{"ok":true}`, "X-Log-Position", "trading/0@17"))
	r, err := c.do(context.Background(), nil, http.MethodPost, "/v1/x", map[string]string{"a": "b"}, 0)
	if err != nil || r.status != 201 || r.sequence != 17 || len(s.asked) != 4 {
		t.Errorf("%+v, %v after %q", r, err, s.asked)
	}
	if n := strings.Count(said.String(), "waits"); n != 1 || !strings.Contains(said.String(), "goes on") {
		t.Errorf("said:\n%s", said)
	}
}

func TestClientGivesUpWhatTheServerCannotDo(t *testing.T) {
	s, c, _ := startScript(t, status(500, `{}`))
	r, err := c.do(context.Background(), nil, http.MethodGet, "/v1/x", nil, 0)
	if err != nil || r.status != 500 || len(s.asked) != patience {
		t.Errorf("%d, %v after %d requests", r.status, err, len(s.asked))
	}
}

func TestClientLogsInAgain(t *testing.T) {
	grant := func(token string) func(http.ResponseWriter, *http.Request) {
		return status(200, `{"access_token":"`+token+`"}`)
	}
	s, c, _ := startScript(t, grant("one"), status(401, `{}`), grant("two"), status(200, `[]`))
	u := &user{name: "u", password: "p"}
	if r, err := c.do(context.Background(), u, http.MethodGet, "/v1/x", nil, 0); err != nil || r.status != 200 {
		t.Errorf("%d, %v", r.status, err)
	}
	if got := strings.Join(s.asked, "; "); got != "POST /auth/jwt/login ; GET /v1/x Bearer one; POST /auth/jwt/login ; GET /v1/x Bearer two" {
		t.Error(got)
	}
	_, c, _ = startScript(t, status(400, `{"code":"LOGIN_BAD_CREDENTIALS"}`))
	if _, err := c.login(context.Background(), u); err != nil {
		t.Errorf("a token that is good is not used: %v", err)
	}
	if _, err := c.login(context.Background(), &user{name: "u"}); !errors.Is(err, errCredentials) {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestClientStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	_, c, _ := startScript(t, func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(503)
	})
	if _, err := c.do(ctx, nil, http.MethodGet, "/v1/x", nil, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFeedBeginsAgain lets a socket end in the middle of a record: the feed reads everything anew and goes on.
func TestFeedBeginsAgain(t *testing.T) {
	m := bitcoin(t, 1)
	order := `{"code":"o","customer_code":"c","symbol":"BTCUSDC_PERP","action":"buy","status":"partially_filled","amount":"0.010",` +
		`"limit_price":"65000.0","reference_id":"b0-1-1","filled_amount":"`
	reads, resumed := 0, make(chan string, 4)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/jwt/login", status(200, `{"access_token":"x"}`))
	mux.HandleFunc("GET /v1/orders", func(w http.ResponseWriter, r *http.Request) {
		if wants := r.Header.Get("X-Min-Log-Position"); wants != position(5) {
			t.Errorf("orders are read as of %q", wants)
		}
		reads++
		filled := `0.001"}`
		if reads > 1 {
			filled = `0.004"}`
		}
		status(200, "["+order+filled+"]", "X-Log-Position", position(int64(10*reads)))(w, r)
	})
	mux.HandleFunc("GET /v1/customers/c/positions", func(w http.ResponseWriter, r *http.Request) {
		amount := map[bool]string{true: "0.001", false: "0.004"}[reads == 1]
		status(200, `[{"symbol":"BTCUSDC_PERP","amount":"`+amount+`"}]`, "X-Log-Position", r.Header.Get("X-Min-Log-Position"))(w, r)
	})
	mux.HandleFunc("/v1/ws", func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		var request struct {
			ResumeFrom string `json:"resume_from"`
		}
		if conn.ReadJSON(&request) != nil {
			return
		}
		resumed <- request.ResumeFrom
		text := []string{`{"op":"subscribed","channel":"orders"}`, order + `0.004","position":"trading/0@11.1"}`}
		if request.ResumeFrom != position(10) {
			text = []string{text[0], order + `0.009","position":"trading/0@21"}`}
		}
		for _, m := range text {
			if conn.WriteMessage(websocket.TextMessage, []byte(m)) != nil {
				return
			}
		}
		if request.ResumeFrom != position(10) {
			_, _, _ = conn.ReadMessage() // until the feed ends
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	c := newClient(server.URL, "test", slog.New(slog.DiscardHandler))
	defer c.close()
	f := newFeed(c, &user{name: "u"}, []string{"c"}, []*market{m}, 5)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.run(ctx) })
	defer running.Wait()
	defer cancel()

	if first, second := <-resumed, <-resumed; first != position(10) || second != position(20) {
		t.Errorf("resumed from %s and %s", first, second)
	}
	for done := false; !done; {
		f.mu.Lock()
		news := f.news
		done = f.mirror != nil && f.seen == 21
		f.mu.Unlock()
		if !done {
			<-news
		}
	}
	err := f.look(ctx, func(own *mirror) {
		if p, orders := own.position("c", m.symbol), own.on(m.symbol); p != 9 || len(orders) != 1 || orders[0].remaining != 1 {
			text, _ := json.Marshal(orders)
			t.Errorf("the position is %d, the orders are %s", p, text)
		}
	})
	if err != nil {
		t.Error(err)
	}
	if err := f.await(ctx, 21); err != nil {
		t.Error(err)
	}
}

// TestFeedAuthenticatesAgain gives the user a new token while the socket stands: the socket hears of it.
func TestFeedAuthenticatesAgain(t *testing.T) {
	logins, told := atomic.Int32{}, make(chan string, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/jwt/login", func(w http.ResponseWriter, r *http.Request) {
		status(200, fmt.Sprintf(`{"access_token":"token-%d"}`, logins.Add(1)))(w, r)
	})
	mux.HandleFunc("GET /v1/orders", status(200, `[]`, "X-Log-Position", position(10)))
	u := &user{name: "u"}
	mux.HandleFunc("/v1/ws", func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		var request struct {
			Op   string `json:"op"`
			Data struct {
				Token string `json:"token"`
			} `json:"data"`
		}
		if conn.ReadJSON(&request) != nil || conn.WriteJSON(map[string]string{"op": "subscribed", "channel": "orders"}) != nil {
			return
		}
		if request.Op != "subscribe" || r.Header.Get("Authorization") != "Bearer token-1" {
			t.Errorf("%s with %s", request.Op, r.Header.Get("Authorization"))
		}
		u.forget()
		for conn.ReadJSON(&request) == nil { // until the feed ends
			told <- request.Op + " " + request.Data.Token
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	c := newClient(server.URL, "test", slog.New(slog.DiscardHandler))
	defer c.close()
	f := newFeed(c, u, nil, []*market{bitcoin(t, 1)}, 0)
	f.renewal = time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.run(ctx) })
	defer running.Wait()
	defer cancel()
	select {
	case got := <-told:
		if got != "authenticate token-2" {
			t.Errorf("the socket is told %s", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the socket is told nothing")
	}
}
