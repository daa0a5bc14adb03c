// Package livetest is a WebSocket client for tests. It sends requests, stores every received message, waits for
// expected messages, and rebuilds order books from their streams. When the test ends, it validates every message
// against the AsyncAPI file.
package livetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"
)

// Patience is how long a client waits for an expected message.
const Patience = 3 * time.Minute

// Message is a received message.
type Message struct {
	Raw     []byte
	Op      string   `json:"op"`
	Channel string   `json:"channel"`
	Type    string   `json:"type"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Args    []string `json:"args"`
	Symbol  string   `json:"symbol"`
}

// Decode decodes the message into v.
func (m Message) Decode(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(m.Raw, v); err != nil {
		t.Fatalf("reading %s: %v", m.Raw, err)
	}
}

// Fields returns the message's members: strings without quotes, everything else as sent.
func (m Message) Fields() map[string]string {
	var values map[string]jsontext.Value
	if json.Unmarshal(m.Raw, &values) != nil {
		return nil
	}
	out := make(map[string]string, len(values))
	for name, v := range values {
		var text string
		if v.Kind() != '"' || json.Unmarshal(v, &text) != nil {
			text = string(v)
		}
		out[name] = text
	}
	return out
}

// Request is a request. Zero fields are omitted.
type Request struct {
	Op         string   `json:"op"`
	Args       []string `json:"args,omitzero"`
	Data       any      `json:"data,omitzero"`
	ResumeFrom string   `json:"resume_from,omitzero"`
	ID         any      `json:"id,omitzero"`
}

// Client is a connection.
type Client struct {
	t      testing.TB
	socket *websocket.Conn

	mu       sync.Mutex
	messages []Message
	next     int           // index of the next message for Next
	news     chan struct{} // closed and replaced at each message and at the end
	err      error         // the error that ended the connection
}

// Dial connects to a WebSocket address, with a bearer token unless it is empty, and reads until the connection ends.
// The connection is closed at the end of the test.
func Dial(t testing.TB, url, token string) *Client {
	t.Helper()
	c, _, err := TryDial(t, url, token)
	if err != nil {
		t.Fatalf("connecting to %s: %v", url, err)
	}
	return c
}

// TryDial is Dial for a handshake that may be refused. It also returns the HTTP response.
func TryDial(t testing.TB, url, token string) (*Client, *http.Response, error) {
	c, response, err := Open(t, url, token)
	if err != nil {
		return nil, response, err
	}
	c.Read()
	return c, response, nil
}

// DialWith is Dial with the caller's dialer.
func DialWith(t testing.TB, dialer *websocket.Dialer, url, token string) *Client {
	t.Helper()
	c, _, err := open(t, dialer, url, token)
	if err != nil {
		t.Fatalf("connecting to %s: %v", url, err)
	}
	c.Read()
	return c
}

// Open connects without reading. The client is stalled until Read is called.
func Open(t testing.TB, url, token string) (*Client, *http.Response, error) {
	return open(t, &websocket.Dialer{ReadBufferSize: 4096}, url, token)
}

func open(t testing.TB, dialer *websocket.Dialer, url, token string) (*Client, *http.Response, error) {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	socket, response, err := dialer.DialContext(ctx, url, header)
	if err != nil {
		if response != nil {
			_ = response.Body.Close()
		}
		return nil, response, err
	}
	c := &Client{t: t, socket: socket, news: make(chan struct{})}
	t.Cleanup(func() {
		_ = socket.Close()
		for _, m := range c.Messages() {
			if err := Check(m); err != nil {
				t.Errorf("not as described: %v", err)
				return
			}
		}
	})
	return c, response, nil
}

// Read starts to read messages.
func (c *Client) Read() {
	go func() {
		for {
			_, raw, err := c.socket.ReadMessage()
			c.mu.Lock()
			if err != nil {
				c.err = err
			} else {
				m := Message{}
				_ = json.Unmarshal(raw, &m)
				m.Raw = raw
				c.messages = append(c.messages, m)
			}
			close(c.news)
			c.news = make(chan struct{})
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
}

// Send sends a request, usually a Request.
func (c *Client) Send(v any) {
	c.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		c.t.Fatalf("encoding a request: %v", err)
	}
	c.SendText(raw)
}

// SendText sends a text message unchanged.
func (c *Client) SendText(raw []byte) {
	c.t.Helper()
	if err := c.socket.WriteMessage(websocket.TextMessage, raw); err != nil {
		c.t.Fatalf("sending %.200s: %v", raw, err)
	}
}

// Socket returns the underlying connection.
func (c *Client) Socket() *websocket.Conn { return c.socket }

// Authenticate authenticates the connection.
func (c *Client) Authenticate(token string) {
	c.t.Helper()
	c.Send(Request{Op: "authenticate", Data: map[string]string{"token": token}})
	c.Next("authenticated", func(m Message) bool { return m.Op == "authenticated" })
}

// Subscribe subscribes to topics and waits for the acknowledgements.
func (c *Client) Subscribe(topics ...string) {
	c.t.Helper()
	c.SubscribeWith(Request{Args: topics})
}

// SubscribeWith is Subscribe with data or a position to resume from.
func (c *Client) SubscribeWith(r Request) {
	c.t.Helper()
	r.Op = "subscribe"
	c.Send(r)
	for _, topic := range r.Args {
		m := c.Next("an answer for "+topic, func(m Message) bool {
			return m.Op == "subscribed" && m.Channel == topic || m.Op == "error" && slices.Contains(m.Args, topic)
		})
		if m.Op == "error" {
			c.t.Fatalf("subscribing to %s: %s", topic, m.Raw)
		}
	}
}

// Ask sends a request and returns the next acknowledgement or error.
func (c *Client) Ask(v any) Message {
	c.t.Helper()
	c.Send(v)
	return c.Next("an answer", func(m Message) bool { return m.Op != "" })
}

// Next waits for a message that accept accepts, beginning after the previous result of Next.
func (c *Client) Next(what string, accept func(Message) bool) Message {
	c.t.Helper()
	var found Message
	c.wait(what, func() bool {
		for i := c.next; i < len(c.messages); i++ {
			if accept(c.messages[i]) {
				found, c.next = c.messages[i], i+1
				return true
			}
		}
		return false
	})
	return found
}

// Until waits until enough returns true for the messages so far, and returns them. enough MUST NOT retain its
// argument.
func (c *Client) Until(what string, enough func([]Message) bool) []Message {
	c.t.Helper()
	c.wait(what, func() bool { return enough(c.messages) })
	return c.Messages()
}

// Messages returns the messages received so far.
func (c *Client) Messages() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.messages)
}

// On returns the messages received so far on a topic, without acknowledgements.
func (c *Client) On(topic string) []Message {
	return slices.DeleteFunc(c.Messages(), func(m Message) bool { return m.Channel != topic || m.Op != "" })
}

// wait waits until done returns true. It calls done under the lock. The test fails on a timeout or if the connection
// ends first.
func (c *Client) wait(what string, done func() bool) {
	c.t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		ok, err, news := done(), c.err, c.news
		c.mu.Unlock()
		if ok {
			return
		}
		if err != nil {
			c.t.Fatalf("the connection ended before %s: %v; messages:\n%s", what, err, c.tail())
		}
		select {
		case <-news:
		case <-timeout.C:
			c.t.Fatalf("%s did not come in %v; messages:\n%s", what, Patience, c.tail())
		}
	}
}

// tail returns the last messages as text.
func (c *Client) tail() string {
	messages := c.Messages()
	var b strings.Builder
	for _, m := range messages[max(0, len(messages)-20):] {
		fmt.Fprintf(&b, "  %.400s\n", m.Raw)
	}
	return b.String()
}

// Closed waits for the end of the connection. It returns the code and text of the close frame, or 0 and the error's
// text if there was none.
func (c *Client) Closed() (code int, text string) {
	c.t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		err, news := c.err, c.news
		c.mu.Unlock()
		var frame *websocket.CloseError
		switch {
		case errors.As(err, &frame) && frame.Code != websocket.CloseAbnormalClosure:
			return frame.Code, frame.Text
		case err != nil:
			return 0, err.Error()
		}
		select {
		case <-news:
		case <-timeout.C:
			c.t.Fatalf("the connection was not closed in %v; messages:\n%s", Patience, c.tail())
		}
	}
}

// Close closes the connection.
func (c *Client) Close() { _ = c.socket.Close() }
