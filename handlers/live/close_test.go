package live_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// TestTheClientsCloseIsAnswered closes connections with codes of the client's own. Each is answered with the same, also
// the one that the server uses for messages that are too large, and with nothing else.
func TestTheClientsCloseIsAnswered(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(v.hub.Collectors()...)
	for _, code := range []int{websocket.CloseNormalClosure, websocket.CloseNoStatusReceived, websocket.CloseMessageTooBig, 4000} {
		c := v.dial("")
		c.Ask(livetest.Request{Op: "ping"})
		if err := c.Socket().WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if got, text := c.Closed(); got != code || len(c.Messages()) != 1 {
			t.Errorf("closing with %d is answered with %d %s, after %d messages", code, got, text, len(c.Messages()))
		}
	}
	if n := gather(t, registry)["perpetua_live_errors_total"]; n != 0 {
		t.Errorf("%v errors were told", n)
	}
}

// TestOverTLS serves a connection that can't be written without waiting. It is slower, and all else is the same.
func TestOverTLS(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	e, err := rest.New(rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v.hub.Register(e.Echo)
	server := httptest.NewTLSServer(e)
	t.Cleanup(server.Close)
	dialer := websocket.Dialer{TLSClientConfig: server.Client().Transport.(*http.Transport).TLSClientConfig}
	c, response, err := dialer.DialContext(t.Context(), "wss"+strings.TrimPrefix(server.URL, "https")+live.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	defer func() { _ = c.Close() }()
	next := func() livetest.Message {
		t.Helper()
		_, raw, err := c.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		var m livetest.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		m.Raw = raw
		return m
	}
	if err := errors.Join(c.SetReadDeadline(time.Now().Add(patience)), c.WriteJSON(livetest.Request{Op: "subscribe", Args: []string{"orderbook-stream:" + btc}})); err != nil {
		t.Fatal(err)
	}
	next()
	var book livetest.Book
	if err := book.Apply(next()); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	for range 300 {
		if err := book.Apply(next()); err != nil {
			t.Fatal(err)
		}
	}
	if asks := book.Asks(); len(asks) != 1 || asks[0].Amount != "0.300" {
		t.Errorf("the book is %v", asks)
	}
	_ = c.WriteMessage(websocket.TextMessage, []byte(strings.Repeat("x", 1<<20)))
	if m := next(); m.Code != string(live.InvalidMessage) {
		t.Errorf("%s", m.Raw)
	}
	if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
		t.Errorf("%v", err)
	}
}
