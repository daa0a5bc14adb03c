package live_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// received is a message as a rebuilder needs it.
type received struct {
	raw          []byte
	Op           string `json:"op"`
	Channel      string `json:"channel"`
	Type         string `json:"type"`
	Code         string `json:"code"`
	PrevSequence int64  `json:"prev_sequence"`
	Sequence     int64  `json:"sequence"`
	Position     string `json:"position"`
	Bids         []livetest.Level
	Asks         []livetest.Level
	Changes      []struct{ Action, Type, Price, Amount string }

	changes []levelChange
	order   *orderText // on the channel orders
	whole   bool       // nothing more of the order's record follows
}

type levelChange struct {
	action string
	at     place
	amount int64
}

// messageCache reads each message once and holds it against the AsyncAPI file, whatever the number of sockets that it
// comes from: they all get the same bytes.
type messageCache struct {
	mu    sync.RWMutex
	known map[string]*received
}

func (h *messageCache) of(raw []byte) (*received, error) {
	h.mu.RLock()
	m := h.known[string(raw)]
	h.mu.RUnlock()
	if m != nil {
		return m, nil
	}
	m, err := parseMessage(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", raw, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[string(raw)] = m
	return m, nil
}

func parseMessage(raw []byte) (*received, error) {
	m := &received{raw: raw}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	if err := livetest.Check(livetest.Message{Raw: raw, Op: m.Op, Channel: m.Channel, Type: m.Type}); err != nil {
		return nil, err
	}
	if m.Op != "" {
		return m, nil
	}
	if m.Channel == "orders" { // which have no sequence of their own
		whole, _, parted := strings.Cut(m.Position, ".")
		at, err := record.ParseLogPosition(whole)
		m.Sequence, m.whole, m.order = at.Sequence, !parted, new(orderText)
		return m, errors.Join(err, json.Unmarshal(raw, m.order))
	}
	if want := fmt.Sprintf("trading/0@%d", m.Sequence); m.Position != want {
		return nil, fmt.Errorf("the position is %s, want %s", m.Position, want)
	}
	add := func(action string, ask bool, price, amount string) error {
		p, err := thousandths(price)
		if err != nil {
			return err
		}
		a, err := thousandths(amount)
		m.changes = append(m.changes, levelChange{action, place{ask, p}, a})
		return err
	}
	for side, all := range [][]livetest.Level{m.Bids, m.Asks} {
		for _, l := range all {
			if err := add("new", side == 1, l.Price, l.Amount); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range m.Changes {
		if err := add(c.Action, c.Type == "ask", c.Price, c.Amount); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// patience is how long so many may take together on a machine that has other things to do.
const patience = 5 * time.Minute

// absent is where a rebuilder stands that nobody waits for.
const absent = math.MaxInt64

// rebuilder is one client that rebuilds a book, from the book's stream or from everybody's orders, and remembers what
// it had when. It may leave and come back: to the book's stream with a new snapshot, to the orders at the position
// that it had last.
type rebuilder struct {
	name     string
	x        *exchange
	messages *messageCache
	dialing  chan struct{} // holds a token for each handshake under way
	token    string
	topic    string
	resume   string // where the channel orders goes on
	stays    bool   // on its connection when it leaves the topic
	stalls   chan struct{}

	leave atomic.Bool
	back  chan struct{} // closed when it is to come back

	// Of its goroutine, and of the test after that has ended.
	book  *levels
	sides *resting // behind book, on the channel orders
	spans []span
	said  *received // what it was told last

	mu     sync.Mutex
	socket *websocket.Conn
	ended  bool // by the test
	at     int64
	wanted int64
	news   chan struct{} // closed when at reaches wanted, or with err
	err    error
}

// span is a time without an interruption.
type span struct {
	visits []visit
	last   int64
}

// run follows the stream until the test ends the connection.
func (r *rebuilder) run() {
	err := r.follow()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended && r.stalls == nil {
		err = nil
	}
	r.err = err
	r.at = absent
	r.wake()
}

func (r *rebuilder) follow() error {
	if err := r.dial(); err != nil {
		return err
	}
	for {
		if err := r.subscribe(); err != nil {
			return err
		}
		if r.stalls != nil {
			r.stand(absent)
			<-r.stalls
		}
		if err := r.read(); err != nil {
			return err
		}
		r.stand(absent)
		<-r.back
		if !r.stays {
			if err := r.dial(); err != nil {
				return err
			}
		}
	}
}

func (r *rebuilder) dial() error {
	r.dialing <- struct{}{}
	defer func() { <-r.dialing }()
	header := http.Header{}
	if r.token != "" {
		header.Set("Authorization", "Bearer "+r.token)
	}
	dialer := websocket.Dialer{HandshakeTimeout: patience}
	if r.stalls != nil {
		dialer.NetDialContext = narrow
	}
	socket, response, err := dialer.DialContext(r.x.t.Context(), r.x.url, header)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.socket = socket
	return errors.Join(response.Body.Close(), socket.SetReadDeadline(time.Now().Add(3*patience)))
}

// subscribe subscribes and waits for the acknowledgement.
func (r *rebuilder) subscribe() error {
	request := livetest.Request{Op: "subscribe", Args: []string{r.topic}, ResumeFrom: r.resume, Data: map[string]bool{"positions": true}}
	if err := r.socket.WriteJSON(request); err != nil {
		return err
	}
	m, err := r.next()
	if err != nil {
		return err
	}
	if m.Op != "subscribed" {
		return fmt.Errorf("an answer to the subscription: %s", m.raw)
	}
	if r.sides == nil {
		r.spans, r.book = append(r.spans, span{}), nil
	} else {
		r.stand(r.spans[0].last)
	}
	return nil
}

func (r *rebuilder) next() (*received, error) {
	_, raw, err := r.socket.ReadMessage()
	if err != nil {
		return nil, err
	}
	m, err := r.messages.of(raw)
	if err == nil {
		r.said = m
	}
	return m, err
}

// read applies messages until it is time to leave, and leaves.
func (r *rebuilder) read() error {
	for asked := false; ; {
		m, err := r.next()
		switch {
		case err != nil:
			return err
		case m.Op == "unsubscribed" && asked:
			return nil
		case m.Op == "error" && r.stalls != nil:
			continue // the close frame comes next
		case m.Op != "" || m.Channel != r.topic:
			return fmt.Errorf("unexpected: %s", m.raw)
		}
		if err := r.apply(m); err != nil {
			return fmt.Errorf("%w: %s", err, m.raw)
		}
		if asked || !r.leave.Load() {
			continue
		}
		if !r.stays {
			return r.socket.Close()
		}
		asked = true
		if err := r.socket.WriteJSON(livetest.Request{Op: "unsubscribe", Args: []string{r.topic}}); err != nil {
			return err
		}
	}
}

func (r *rebuilder) apply(m *received) error {
	if m.order != nil {
		return r.applyOrder(m)
	}
	now := &r.spans[len(r.spans)-1]
	switch {
	case m.Type == "snapshot" && r.book == nil:
		r.book = newLevels()
	case m.Type != "update" || r.book == nil:
		return errors.New("a snapshot comes first, and once")
	case m.PrevSequence != now.last || m.Sequence <= now.last:
		return fmt.Errorf("it does not follow on %d", now.last)
	}
	for _, c := range m.changes {
		before, there := r.book.amounts[c.at]
		if (c.action == "new") == there || (c.action == "delete") != (c.amount == 0) || before == c.amount {
			return fmt.Errorf("%s does not fit a level with %d", c.action, before)
		}
		r.book.set(c.at, c.amount)
	}
	return r.visit(now, m)
}

// applyOrder takes an order. The book is as it should be once the last of a record's orders is there.
func (r *rebuilder) applyOrder(m *received) error {
	r.resume = m.Position
	if m.order.Symbol == btc {
		if err := r.sides.told(m.order); err != nil {
			return err
		}
	}
	if !m.whole {
		return nil
	}
	now := &r.spans[len(r.spans)-1]
	if m.Sequence <= now.last {
		return fmt.Errorf("a record after %d", now.last)
	}
	return r.visit(now, m)
}

func (r *rebuilder) visit(now *span, m *received) error {
	now.last = m.Sequence
	now.visits = append(now.visits, visit{m.Sequence, r.book.digest})
	r.stand(m.Sequence)
	return nil
}

// stand says how far the reader is.
func (r *rebuilder) stand(at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = at
	r.wake()
}

func (r *rebuilder) wake() {
	if r.news != nil && (r.at >= r.wanted || r.err != nil) {
		close(r.news)
		r.news = nil
	}
}

// reach waits until the reader has come to a sequence, unless it is away.
func (r *rebuilder) reach(sequence int64) error {
	r.mu.Lock()
	if r.at >= sequence || r.err != nil {
		defer r.mu.Unlock()
		return r.err
	}
	r.wanted, r.news = sequence, make(chan struct{})
	news := r.news
	r.mu.Unlock()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-news:
	case <-timeout.C:
		return fmt.Errorf("%d is not reached in %v", sequence, patience)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// end ends the connection.
func (r *rebuilder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.socket != nil {
		_ = r.socket.Close()
	}
}
