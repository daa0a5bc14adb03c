package nodesim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// book is what the clients know of their commands, by idempotency key.
type book struct {
	mu       sync.Mutex
	accepted map[string]string // answered with an order: its code
	never    map[string]bool   // answered that it was never decided, and not sent again
	open     map[string]bool   // no answer that decides it
}

func newBook() *book {
	return &book{accepted: make(map[string]string), never: make(map[string]bool), open: make(map[string]bool)}
}

func (b *book) note(key string, r result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.code != "":
		b.accepted[key] = r.code
	case r.never:
		b.never[key] = true
	case !r.refused:
		b.open[key] = true
	}
}

// result is the outcome of a command for its client.
type result struct {
	code    string // of the accepted order
	refused bool   // by the rules or the interface: nothing was changed
	never   bool   // it was never decided
	note    string
}

// decided reports whether the answer decides the command.
func (r result) decided() bool { return r.code != "" || r.refused }

// resultOf interprets the status and the body of an answer to an order.
func resultOf(status int, body []byte) result {
	var answer struct{ Code string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return result{note: fmt.Sprintf("status %d: %.200s", status, body)}
	}
	switch {
	case status/100 == 2:
		return result{code: answer.Code}
	case status == http.StatusTooManyRequests, status == http.StatusUnauthorized, status/100 == 5:
		return result{never: answer.Code == "NOT_ACCEPTED", note: fmt.Sprint(status, " ", answer.Code)}
	}
	return result{refused: true, note: fmt.Sprint(status, " ", answer.Code)}
}

// trader is a client that places orders, one after another.
type trader struct {
	w      *world
	book   *book
	random *rand.Rand
	name   string
	http   *http.Client
	token  string
	orders int
}

func (w *world) newTrader(b *book, name string, seed uint64) *trader {
	return &trader{w: w, book: b, random: rand.New(rand.NewPCG(seed, 2)), name: name, http: w.browser()}
}

// order returns the customer and the body of the next order.
func (t *trader) order() (customer string, body map[string]any) {
	action := []string{"buy", "sell"}[t.random.IntN(2)]
	price := 50_000 + t.random.IntN(200) - 100
	return customerCode(t.random.IntN(customers)), map[string]any{"symbol": symbol, "action": action, "type": "limit", "amount": "0.002",
		"limit_price": fmt.Sprint(price)}
}

// run places orders over REST until the context ends. It ends after its last order is decided, or once patience has run out.
func (t *trader) run(ctx context.Context) {
	for pause(ctx, time.Duration(200+t.random.IntN(2500))*time.Millisecond) {
		customer, body := t.order()
		t.orders++
		key := fmt.Sprint(t.name, "-", t.orders)
		var r result
		giveUp := time.Now().Add(patience)
		for attempt := 0; time.Now().Before(giveUp); attempt++ {
			if r = t.place(customer, key, body); r.decided() || attempt == 0 && r.never && t.random.IntN(2) == 0 {
				break
			}
			r.never = false // an earlier attempt may have been decided
			time.Sleep(time.Duration(100+t.random.IntN(1000)) * time.Millisecond)
		}
		t.book.note(key, r)
	}
}

// place sends an order to any node.
func (t *trader) place(customer, key string, body any) result {
	at := t.w.machines[t.random.IntN(len(t.w.machines))].at
	token, err := t.login(at)
	if err != nil {
		return result{note: err.Error()}
	}
	content, err := json.Marshal(body)
	if err != nil {
		return result{note: err.Error()}
	}
	status, answer, err := t.post("http://"+at+"/v1/customers/"+customer+"/orders", "application/json", content, "Authorization", "Bearer "+token,
		"Idempotency-Key", key)
	if err != nil {
		return result{note: err.Error()}
	}
	return resultOf(status, answer)
}

// login returns an access token, which lasts for the whole episode.
func (t *trader) login(at string) (string, error) {
	if t.token != "" {
		return t.token, nil
	}
	form := url.Values{"username": {user}, "password": {password}}.Encode()
	status, body, err := t.post("http://"+at+"/auth/jwt/login", "application/x-www-form-urlencoded", []byte(form))
	if err != nil {
		return "", err
	}
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		return "", fmt.Errorf("login: status %d: %.200s", status, body)
	}
	t.token = answer.Token
	return t.token, nil
}

func (t *trader) post(to, kind string, content []byte, headers ...string) (status int, body []byte, err error) {
	r, err := http.NewRequest(http.MethodPost, to, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	// Otherwise net/http would send a request with an Idempotency-Key a second time when its connection breaks, and the
	// answer to the second one says nothing of the first.
	r.GetBody = nil
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := t.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// socket opens a socket at any node.
func (t *trader) socket(ctx context.Context) (*websocket.Conn, error) {
	at := t.w.machines[t.random.IntN(len(t.w.machines))].at
	token, err := t.login(at)
	if err != nil {
		return nil, err
	}
	dialer := websocket.Dialer{NetDialContext: t.w.network.from(outside, always), HandshakeTimeout: 10 * time.Second}
	c, answer, err := dialer.DialContext(ctx, "ws://"+at+"/v1/ws", http.Header{"Authorization": {"Bearer " + token}})
	if answer != nil {
		answer.Body.Close()
	}
	return c, err
}

// burst is the number of orders that a client sends over a socket at once.
const burst = 5

// enter places orders over sockets until the context ends, several at once. It never repeats one.
func (t *trader) enter(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := t.socket(ctx)
		if err != nil {
			pause(ctx, time.Second)
			continue
		}
		t.enterOver(ctx, c)
	}
}

func (t *trader) enterOver(ctx context.Context, c *websocket.Conn) {
	var mu sync.Mutex
	waiting := make(map[string]string) // keys by request id
	var reading sync.WaitGroup
	reading.Go(func() {
		defer c.Close()
		for {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // the server pings every 15 seconds
			_, message, err := c.ReadMessage()
			if err != nil {
				return
			}
			var m struct {
				Op     string
				ID     string
				Status int
				Data   json.RawMessage
			}
			if json.Unmarshal(message, &m) != nil || m.Op != "result" {
				continue
			}
			mu.Lock()
			key := waiting[m.ID]
			delete(waiting, m.ID)
			mu.Unlock()
			t.book.note(key, resultOf(m.Status, m.Data))
		}
	})
	for t.orders%burst != 0 || pause(ctx, time.Duration(t.random.IntN(6000))*time.Millisecond) {
		customer, body := t.order()
		t.orders++
		id := fmt.Sprint(t.orders)
		key := fmt.Sprint(t.name, "-", id)
		body["customer_code"], body["idempotency_key"] = customer, key
		mu.Lock()
		waiting[id] = key
		mu.Unlock()
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if c.WriteJSON(map[string]any{"op": "order.place", "id": id, "data": body}) != nil {
			break
		}
	}
	time.Sleep(2 * time.Second) // for the last answers
	c.Close()
	reading.Wait()
	for _, key := range waiting {
		t.book.note(key, result{})
	}
}

// change is one message of the orders topic.
type change struct {
	Sequence int64
	Code     string
}

// follower reads the orders topic, resumes it over other nodes when its socket ends, and collects what it reads.
type follower struct {
	*trader
	mu      sync.Mutex
	changes []change
	err     error // the topic is not as promised
}

// reached reports whether the follower has read a message of a record or a later one.
func (f *follower) reached(sequence int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err != nil || sequence == 0 || len(f.changes) > 0 && f.changes[len(f.changes)-1].Sequence >= sequence
}

// follow reads the topic from a position on, until the context ends.
func (f *follower) follow(ctx context.Context, last string) {
	for ctx.Err() == nil {
		c, err := f.socket(ctx)
		if err == nil {
			last, _ = f.followOver(ctx, c, last)
			c.Close()
		}
		pause(ctx, 500*time.Millisecond)
	}
}

func (f *follower) followOver(ctx context.Context, c *websocket.Conn, last string) (string, error) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	request := map[string]any{"op": "subscribe", "args": []string{"orders"}, "data": map[string]any{"positions": true}, "resume_from": last}
	if err := c.WriteJSON(request); err != nil {
		return last, err
	}
	for {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		_, message, err := c.ReadMessage()
		if err != nil {
			return last, err
		}
		var m struct {
			Op, Channel, Code, Message, Position string
			Sequence                             int64
		}
		err = json.Unmarshal(message, &m)
		f.mu.Lock()
		switch {
		case err != nil:
			f.err = err
		case m.Op == "error" && (strings.HasSuffix(m.Code, "UPSTREAM_ERROR") || m.Code == "SLOW_CONSUMER"):
			err = errors.New(m.Code)
		case m.Op == "error":
			err = fmt.Errorf("%s: %s", m.Code, m.Message)
			f.err = err
		case m.Channel == "orders" && m.Position != "":
			f.changes = append(f.changes, change{m.Sequence, m.Code})
			last = m.Position
		}
		f.mu.Unlock()
		if err != nil {
			return last, err
		}
	}
}
