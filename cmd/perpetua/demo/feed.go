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
	// silence is the time without a ping of the server after which a connection counts as dead.
	silence = 45 * time.Second
	// overdue bounds the time until the socket reports a record that a REST response has named.
	overdue = 10 * time.Second
	// grace bounds the wait for the remaining messages of a record after its first one. They may be meant for another
	// broker and never come.
	grace = 200 * time.Millisecond
)

// feed keeps the mirror up to date. It reads the demo's orders and positions by REST, and from there follows the
// socket's channel orders. When the connection is lost, it starts again.
type feed struct {
	rest      *client
	user      *user
	customers []string
	markets   []*market
	after     int64         // record at which the customers exist
	renewal   time.Duration // interval at which a session looks for a new token

	mu     sync.Mutex
	mirror *mirror // nil while there is no connection
	seen   int64   // last record reported completely
	begun  int64   // last record reported at least in part
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
			orderView
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
				m.learn(message.orderView, sequence)
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

// renew authenticates the connection, which was opened with the token used, with each new token, because the
// subscription ends when its token expires. It is the connection's only writer until the returned function has been
// called.
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
				return // the reader notices that the connection is lost
			}
		}
	})
	return func() { cancel(); renewing.Wait() }
}

// dial connects with the user's token and returns both.
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

// snapshot reads live orders and positions, and returns the record after which the socket must report.
func (f *feed) snapshot(ctx context.Context) (*mirror, int64, error) {
	m := newMirror(f.markets)
	r, err := f.rest.do(ctx, f.user, http.MethodGet, "/v1/orders", nil, f.after)
	if err == nil {
		err = r.err("open orders")
	}
	if err != nil {
		return nil, 0, err
	}
	var orders []orderView
	if err := json.Unmarshal(r.body, &orders); err != nil {
		return nil, 0, err
	}
	for _, customer := range f.customers {
		if err := f.positions(ctx, m, customer, r.sequence); err != nil {
			return nil, 0, err
		}
	}
	for _, o := range orders {
		m.learn(o, r.sequence) // positions were read at this record or later, so this changes none
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

// change changes the state of the feed and wakes its waiters.
func (f *feed) change(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	close(f.news)
	f.news = make(chan struct{})
}

// again closes the connection and drops the mirror, so that run starts a new one.
func (f *feed) again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != nil {
		f.conn.Close()
		f.mirror = nil
	}
}

// look calls at with the mirror, after waiting for a connection if there is none. The mirror must not be kept.
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

// errOverdue reports that the socket did not report a record in time.
var errOverdue = errors.New("the socket is behind")

// await waits until the mirror includes a record that concerns an order of the demo. If the socket does not report the
// record in time, await closes it, and run starts again.
func (f *feed) await(ctx context.Context, sequence int64) error {
	limit := time.NewTimer(overdue)
	defer limit.Stop()
	var rest <-chan time.Time
	for {
		f.mu.Lock()
		lost, done, begun, news := f.mirror == nil, f.seen >= sequence, f.begun >= sequence, f.news
		f.mu.Unlock()
		if lost || done {
			return nil // a new connection starts with a newer state
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
