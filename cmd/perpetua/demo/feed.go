package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// silence is after how long without a ping of the server a connection counts as dead.
	silence = 45 * time.Second
	// overdue is how long the socket may take to tell of a record that REST has answered with.
	overdue = 10 * time.Second
	// grace is how long the rest of a record is waited for once a part of it was told. The rest may be for another
	// broker: then nothing more comes.
	grace = 200 * time.Millisecond
)

// feed keeps the mirror: it reads the demo's orders and positions by REST, and then follows the channel orders from
// there. Whenever the connection is lost, it begins again.
type feed struct {
	rest      *client
	user      *user
	customers []string
	markets   []*market
	after     int64         // the record by which the customers are known
	renewal   time.Duration // how often a session looks for a new token

	mu     sync.Mutex
	mirror *mirror // nil while there is no connection
	seen   int64   // the last record told in full
	begun  int64   // the last record told at all
	news   chan struct{}
	conn   *websocket.Conn
}

func newFeed(rest *client, u *user, customers []string, markets []*market, after int64) *feed {
	return &feed{rest: rest, user: u, customers: customers, markets: markets, after: after, renewal: tokenAge / 2, news: make(chan struct{})}
}

// run follows until the context ends.
func (f *feed) run(ctx context.Context) {
	backoff := firstBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := f.session(ctx)
		f.change(func() { f.mirror, f.conn = nil, nil })
		if ctx.Err() != nil {
			return
		}
		f.rest.unwell(socket, err)
		if time.Since(began) > time.Minute {
			backoff = firstBackoff
		}
		if wait(ctx, backoff) != nil {
			return
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// session reads the mirror, connects and follows until something fails.
func (f *feed) session(ctx context.Context) error {
	m, at, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	conn, token, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	alive := func() { _ = conn.SetReadDeadline(time.Now().Add(silence)) }
	answer := conn.PingHandler()
	conn.SetPingHandler(func(data string) error { alive(); return answer(data) })
	alive()
	err = conn.WriteJSON(map[string]any{"op": "subscribe", "args": []string{"orders"},
		"data": map[string]bool{"positions": true}, "resume_from": position(at)})
	if err != nil {
		return err
	}
	defer f.renew(ctx, conn, token)()
	for {
		var message struct {
			told
			Op       string `json:"op"`
			Problem  string `json:"message"`
			Position string `json:"position"`
		}
		if err := conn.ReadJSON(&message); err != nil {
			return err
		}
		alive()
		switch message.Op {
		case "":
			sequence, whole := record(message.Position)
			f.change(func() {
				m.learn(message.told, sequence)
				f.begun = sequence
				f.seen = sequence
				if !whole {
					f.seen--
				}
			})
		case "subscribed":
			f.change(func() { f.mirror, f.conn, f.seen, f.begun = m, conn, at, at })
			f.rest.well(socket)
		case "error":
			return fmt.Errorf("%s: %s", message.Code, message.Problem)
		}
	}
}

// renew authenticates the connection, which used the token, with each new one before the old one expires and takes the
// subscription along. It is the connection's only writer until the function that it returns has been called.
func (f *feed) renew(ctx context.Context, conn *websocket.Conn, used string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for wait(ctx, f.renewal) == nil {
			token, err := f.rest.login(ctx, f.user)
			if err != nil || token == used {
				continue
			}
			used = token
			_ = conn.SetWriteDeadline(time.Now().Add(requestTime))
			if conn.WriteJSON(map[string]any{"op": "authenticate", "data": map[string]string{"token": token}}) != nil {
				return // the reader finds that the connection is gone
			}
		}
	})
	return func() { cancel(); renewing.Wait() }
}

// dial connects with the user's token, and returns both.
func (f *feed) dial(ctx context.Context) (conn *websocket.Conn, token string, err error) {
	token, err = f.rest.login(ctx, f.user)
	if err != nil {
		return nil, "", err
	}
	dialer := websocket.Dialer{HandshakeTimeout: requestTime}
	conn, response, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(f.rest.base, "http")+"/v1/ws",
		http.Header{"Authorization": {"Bearer " + token}, "User-Agent": {f.rest.agent}})
	if response != nil {
		if response.StatusCode == http.StatusUnauthorized {
			f.user.forget()
		}
		response.Body.Close()
	}
	return conn, token, err
}

// snapshot reads live orders and positions, and the record from which on the socket has to tell.
func (f *feed) snapshot(ctx context.Context) (*mirror, int64, error) {
	m := newMirror(f.markets)
	r, err := f.rest.do(ctx, f.user, http.MethodGet, "/v1/orders", nil, f.after)
	if err == nil {
		err = r.err("open orders")
	}
	if err != nil {
		return nil, 0, err
	}
	var orders []told
	if err := json.Unmarshal(r.body, &orders); err != nil {
		return nil, 0, err
	}
	for _, customer := range f.customers {
		if err := f.positions(ctx, m, customer, r.sequence); err != nil {
			return nil, 0, err
		}
	}
	for _, o := range orders {
		m.learn(o, r.sequence) // not after any position, so it changes none
	}
	return m, r.sequence, nil
}

func (f *feed) positions(ctx context.Context, m *mirror, customer string, after int64) error {
	r, err := f.rest.do(ctx, f.user, http.MethodGet, "/v1/customers/"+customer+"/positions", nil, after)
	if err == nil {
		err = r.err("positions of " + customer)
	}
	if err != nil {
		return err
	}
	var all []positionOf
	if err := json.Unmarshal(r.body, &all); err != nil {
		return err
	}
	m.hold(customer, all, r.sequence)
	return nil
}

// change changes what the feed knows and tells those who wait for it.
func (f *feed) change(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	close(f.news)
	f.news = make(chan struct{})
}

// again gives up the connection, and the mirror with it, for a new one.
func (f *feed) again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		f.conn.Close()
		f.mirror = nil
	}
}

// look shows the mirror, waiting for a connection if there is none. It must not be kept.
func (f *feed) look(ctx context.Context, at func(*mirror)) error {
	for {
		f.mu.Lock()
		m, news := f.mirror, f.news
		if m != nil {
			at(m)
		}
		f.mu.Unlock()
		if m != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		}
	}
}

// errOverdue says that the socket has not told of a record in time.
var errOverdue = errors.New("the socket is behind")

// await waits until the mirror has everything up to a record that concerns an order of the demo. A socket that does not
// tell in time is closed, and so begins again.
func (f *feed) await(ctx context.Context, sequence int64) error {
	limit := time.NewTimer(overdue)
	defer limit.Stop()
	var rest <-chan time.Time
	for {
		f.mu.Lock()
		lost, done, begun, news := f.mirror == nil, f.seen >= sequence, f.begun >= sequence, f.news
		f.mu.Unlock()
		if lost || done {
			return nil // a new connection begins with what is newer
		}
		if begun && rest == nil {
			t := time.NewTimer(grace)
			defer t.Stop()
			rest = t.C
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		case <-rest:
			return nil
		case <-limit.C:
			f.again()
			return errOverdue
		}
	}
}
