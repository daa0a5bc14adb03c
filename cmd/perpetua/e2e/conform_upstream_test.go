package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// withdraw lists an instrument, subscribes to its streams and to others, and takes it off the listings.
func (c *conformance) withdraw() *livetest.Client {
	c.sendAs(201, "operator", http.MethodPost, "/admin/v1/instruments", `{"symbol":"`+withdrawnSymbol+`","underlying":"XRP","price_tick":"0.0001","amount_step":"1","max_amount":"1000","init_margin_req":"10","maint_margin_req":"5"}`)
	c.known(withdrawnSymbol)
	socket := livetest.Dial(c.root, c.WebSocket, "")
	socket.Subscribe("orderbook-stream:"+withdrawnSymbol, "orderbook-stream:"+bitcoin, "market-trades:"+withdrawnSymbol, "market-trades:"+bitcoin)
	c.sendAs(200, "operator", http.MethodDelete, "/admin/v1/instruments/"+withdrawnSymbol, "")
	return socket
}

// rejects withdraws an instrument that is subscribed to: each of its streams ends with its own code.
func (c *conformance) rejects() {
	for topic, code := range map[string]string{"orderbook-stream:" + withdrawnSymbol: "ORDERBOOK_STREAM_UPSTREAM_REJECT", "market-trades:" + withdrawnSymbol: "MARKET_TRADES_UPSTREAM_REJECT"} {
		socket := c.withdrawn()
		waitFor(c.t, code, func() bool {
			return slices.ContainsFunc(socket.Messages(), func(m livetest.Message) bool {
				return m.Op == "error" && m.Code == code && slices.Equal(m.Args, []string{topic})
			})
		})
		c.note("%s: %s", topic, code)
	}
}

// onlyThose says that the connection and its other subscriptions outlived the withdrawal; and that of a lost log the
// connection outlived the ends of its subscriptions, too. It ends with the node, which stops for its log. That it answers
// until then is for handlers/live.TestOverTheJournal, where nothing stops.
func (c *conformance) onlyThose() {
	l := c.lost()
	c.equal("subscriptions of one connection that ended with the log", fmt.Sprint(len(l.ends)), "2")
	c.equal("then the node closes the connection with", l.closed, fmt.Sprint(websocket.CloseGoingAway, " the server is stopping"))
	c.rejects()
	socket := c.withdrawn()
	before := len(socket.On("orderbook-stream:" + bitcoin))
	c.stir()
	waitFor(c.t, "the other book to go on", func() bool { return len(socket.On("orderbook-stream:"+bitcoin)) > before })
	c.note("orderbook-stream:%s: %d messages, then %d", bitcoin, before, len(socket.On("orderbook-stream:"+bitcoin)))
	var ended []string
	for _, m := range socket.Messages() {
		if m.Op == "error" {
			ended = append(ended, m.Args...)
		}
	}
	slices.Sort(ended)
	c.equal("what ended", strings.Join(ended, " "), "market-trades:"+withdrawnSymbol+" orderbook-stream:"+withdrawnSymbol)
}

// loss is a venue that lost its log, the ends of a connection's subscriptions, codes by topic, and of the connection: the code
// and text of its close frame.
type loss struct {
	*withheld
	ends   map[string]string
	closed string
}

// loseAnother starts a venue whose broker is in this process, subscribes, and has another log be in the place of its own.
func (c *conformance) loseAnother() loss {
	w := startWithheld(c.root)
	c.root.Cleanup(w.kill) // it ends by itself, but not well
	w.fund("10000", "ANNA")
	topics := []string{"orderbook-stream:" + bitcoin, "market-trades:" + bitcoin}
	socket := livetest.Dial(c.root, w.WebSocket, "")
	socket.Subscribe(topics...)
	client, err := journal.NewClient(journal.Config{Brokers: w.fake.ListenAddrs(), Prefix: w.prefix})
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	if err := w.fake.DeleteTopic(w.prefix + "trading"); err != nil {
		c.t.Fatal(err)
	}
	if err := client.EnsureTopics(context.Background(), "trading"); err != nil {
		c.t.Fatal(err)
	}
	ends := make(map[string]string)
	for range topics {
		m := socket.Next("the end of a subscription", func(m livetest.Message) bool { return m.Op == "error" })
		ends[strings.Join(m.Args, " ")] = m.Code
	}
	code, text := socket.Closed()
	return loss{w, ends, fmt.Sprint(code, " ", text)}
}

// fails has the log of a venue lost under its subscriptions: each ends with its own code.
func (c *conformance) fails() {
	ends := c.lost().ends
	for _, topic := range slices.Sorted(maps.Keys(ends)) {
		c.note("%s: %s", topic, ends[topic])
	}
	want := map[string]string{"orderbook-stream:" + bitcoin: "ORDERBOOK_STREAM_UPSTREAM_ERROR", "market-trades:" + bitcoin: "MARKET_TRADES_UPSTREAM_ERROR"}
	if !maps.Equal(ends, want) {
		c.t.Errorf("%v, want %v", ends, want)
	}
}

// recovers subscribes again to what ended, once the venue has a log: the operator has it begin anew. (What ended because
// the instrument was withdrawn has nothing to come back to.)
func (c *conformance) recovers() {
	l := c.lost()
	if code := l.ended(); code != exitFailed {
		c.t.Errorf("without its log, perpetua exits with %d", code)
	}
	if out, err := l.command("admin", "forget-log", "--journal", "trading").CombinedOutput(); err != nil {
		c.t.Fatalf("forget-log: %v\n%s", err, out)
	}
	l.start()
	socket := livetest.Dial(c.t, l.WebSocket, "")
	for topic := range l.ends {
		m := socket.Ask(livetest.Request{Op: "subscribe", Args: []string{topic}})
		c.equal("subscribe "+topic, m.Op, "subscribed")
	}
	c.equal("then", c.told(socket, "orderbook-stream:"+bitcoin, "a snapshot", func(object) bool { return true }).text("type"), "snapshot")
	l.stop()
	m := c.withdrawn().Next("an end", func(m livetest.Message) bool { return m.Op == "error" })
	c.like("what ended for good", m.Code, "UPSTREAM_REJECT$")
}
