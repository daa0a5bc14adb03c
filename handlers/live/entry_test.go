package live_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// enterOn sends order entry with an id.
func enterOn(c *livetest.Client, id string) {
	c.SendText([]byte(fmt.Sprintf(`{"op":"order.place","id":%q,"data":{"customer_code":"A1","reference_id":%q}}`, id, id)))
}

// TestEntriesAreBoundedAndInOrder: a route is called for one request after the other, each with the token of the
// connection; one more than may be under way is refused; and what the route answers is the result.
func TestEntriesAreBoundedAndInOrder(t *testing.T) {
	v := newVenue(t, live.Limits{Entries: 3}, nil)
	var mu sync.Mutex
	var seen []string
	release := make(chan struct{})
	v.rest.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen = append(seen, r.Method+" "+r.URL.Path+" "+strings.ReplaceAll(string(body), " ", "")+" "+r.Header.Get("Content-Type"))
		mu.Unlock()
		<-release
		w.Header().Set("X-Log-Position", "trading/0@7")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"code":"x"}`)
	}))
	token := v.token("alpha", "", time.Hour, "trade")
	c := v.dial(token)
	for n := range 4 {
		enterOn(c, fmt.Sprint(n))
	}
	if m := c.Next("the refusal", func(m livetest.Message) bool { return m.Op == "error" }); m.Code != string(live.RateLimited) || m.Fields()["id"] != "3" {
		t.Errorf("%s", m.Raw)
	}
	close(release)
	for n := range 3 {
		m := c.Next("a result", func(m livetest.Message) bool { return m.Op == "result" })
		if f := m.Fields(); f["id"] != fmt.Sprint(n) || f["status"] != "201" || f["position"] != "trading/0@7" || f["data"] != `{"code":"x"}` {
			t.Errorf("%s", m.Raw)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for n, got := range seen {
		if want := fmt.Sprintf(`POST /v1/customers/A1/orders {"reference_id":"%d"} application/json`, n); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	anonymous := v.dial("")
	enterOn(anonymous, "1")
	if m := anonymous.Next("the refusal", func(m livetest.Message) bool { return m.Op == "error" }); m.Code != string(live.AuthenticationRequired) {
		t.Errorf("%s", m.Raw)
	}
}

// arm opens a connection whose orders are canceled at its end, and returns the session's id.
func arm(t *testing.T, v *venue) (*livetest.Client, scalar.ID) {
	t.Helper()
	c := v.dial("")
	token := v.token("alpha", "", time.Hour, "trade")
	for range 2 { // a second time changes nothing
		c.Send(livetest.Request{Op: "authenticate", Data: map[string]any{"token": token, "cancel_on_disconnect": true}})
		c.Next("authenticated", func(m livetest.Message) bool { return m.Op == "authenticated" })
	}
	return c, opened(v).Session
}

// opened returns what the hub told of the session that it opened last. It also tells now and then that it lives.
func opened(v *venue) (last *trading.OpenSession) {
	v.telling.Lock()
	defer v.telling.Unlock()
	for _, p := range v.told {
		if open, ok := p.(*trading.OpenSession); ok {
			last = open
		}
	}
	return last
}

// TestTheEndOfASessionIsTold: until the engine has heard of it, however the connection ended.
func TestTheEndOfASessionIsTold(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c, session := arm(t, v)
	if m := c.Ask(livetest.Request{Op: "authenticate", Data: map[string]any{"token": v.reader("alpha"), "cancel_on_disconnect": 1}}); m.Code != string(live.InvalidMessage) {
		t.Errorf("%s", m.Raw)
	}
	v.telling.Lock()
	v.deaf = true
	v.telling.Unlock()
	c.Close()
	ends := func() (n int) {
		v.telling.Lock()
		defer v.telling.Unlock()
		for _, p := range v.told {
			if end, ok := p.(*trading.EndSession); ok && end.Session == session {
				n++
			}
		}
		return n
	}
	v.until(t, "the end to be told again", func() bool { return ends() >= 2 })
	v.telling.Lock()
	v.deaf = false
	v.telling.Unlock()
	v.until(t, "the session to end", func() bool {
		v.mu.RLock()
		defer v.mu.RUnlock()
		return slices.ContainsFunc(v.entries, func(e record.Entry) bool {
			end, ok := e.Record.Events[0].(*trading.SessionEnded)
			return ok && end.Session == session
		})
	})
	deaf := v.dial("")
	v.telling.Lock()
	v.deaf = true
	v.telling.Unlock()
	if m := deaf.Ask(livetest.Request{Op: "authenticate", Data: map[string]any{"token": v.token("alpha", "", time.Hour, "trade"), "cancel_on_disconnect": true}}); m.Code != string(live.UpstreamError) {
		t.Errorf("the engine does not hear: %s", m.Raw)
	}
	v.telling.Lock()
	v.deaf = false
	v.telling.Unlock()
	reader := v.dial("")
	if m := reader.Ask(livetest.Request{Op: "authenticate", Data: map[string]any{"token": v.reader("alpha"), "cancel_on_disconnect": true}}); m.Code != string(live.Forbidden) {
		t.Errorf("without the scope: %s", m.Raw)
	}
}

// TestALostGatewayClosesItsConnections: those whose sessions have ended with it, and no others.
func TestALostGatewayClosesItsConnections(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c, _ := arm(t, v)
	other := v.dial(v.reader("alpha"))
	gateway := opened(v).Gateway
	v.telling.Lock()
	v.evolve(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, decide.Decision{Outcome: decide.Accepted,
		Events: []decide.Event{&trading.Step{Work: trading.WorkGateway}, &trading.GatewayLost{Gateway: gateway}}})
	v.telling.Unlock()
	if m := c.Next("why", func(m livetest.Message) bool { return m.Op == "error" }); m.Code != string(live.UpstreamError) || !strings.Contains(m.Message, "canceled") {
		t.Errorf("%s", m.Raw)
	}
	if code, reason := c.Closed(); code != websocket.CloseInternalServerErr || reason != string(live.UpstreamError) {
		t.Errorf("closed with %d %s", code, reason)
	}
	if m := other.Ask(livetest.Request{Op: "ping"}); m.Op != "pong" {
		t.Errorf("%s", m.Raw)
	}
}

// refusedOrEntered enters an order and waits until it has come to the route or was refused, and reports the latter.
func refusedOrEntered(t *testing.T, v *venue, c *livetest.Client, entered <-chan struct{}) (refused bool) {
	t.Helper()
	enterOn(c, "too late")
	v.until(t, "an order to be entered or refused", func() bool {
		select {
		case <-entered:
			return true
		default:
		}
		all := c.Messages()
		i := slices.IndexFunc(all, func(m livetest.Message) bool { return m.Op == "result" })
		if i < 0 {
			return false
		}
		if m := all[i]; m.Fields()["status"] != "503" || !strings.Contains(string(m.Raw), `"code":"NOT_ACCEPTED"`) {
			t.Errorf("%s", m.Raw)
		}
		refused = true
		return true
	})
	return refused
}

// TestPartingAnswersWhatIsUnderWay: when a node begins to stop, the orders that are under way are answered, new ones are refused
// as never decided, and then the connections end whose orders are to be canceled at their end, of which the engine has heard when
// the node goes on to stop. Nobody else notices anything.
func TestPartingAnswersWhatIsUnderWay(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	entered, release := make(chan struct{}, 200), make(chan struct{})
	v.rest.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-release
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"code":"x"}`)
	}))
	c, session := arm(t, v)
	enterOn(c, "under way")
	<-entered
	parted := make(chan struct{})
	go func() { defer close(parted); v.hub.Part(t.Context()) }()
	// An order that comes before the node begins to stop waits for its answer like the first. So each try has a connection of
	// its own: one connection may have no more than so many under way.
	var other *livetest.Client
	v.until(t, "an order to be refused", func() bool {
		other = v.dial(v.token("alpha", "", time.Hour, "trade"))
		return refusedOrEntered(t, v, other, entered)
	})
	close(release)
	<-parted
	v.telling.Lock()
	ended := 0
	for _, p := range v.told {
		if end, ok := p.(*trading.EndSession); ok && end.Session == session {
			ended++
		}
	}
	v.telling.Unlock()
	if ended != 1 {
		t.Errorf("the end of the session was told %d times when the hub had parted", ended)
	}
	if code, _ := c.Closed(); code != websocket.CloseGoingAway {
		t.Errorf("closed with %d", code)
	}
	if m := c.Next("the answer", func(m livetest.Message) bool { return m.Op == "result" }); m.Fields()["status"] != "201" {
		t.Errorf("%s", m.Raw)
	}
	caughtUp(other)
}
