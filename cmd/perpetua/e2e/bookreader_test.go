package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// bookReader is a client that rebuilds the book of bitcoin from what a WebSocket sends it, and remembers what it had when. It
// drops its connection again and again, amid what comes, and goes on over a new one.
type bookReader struct {
	name   string
	stream bookSource
	random *rand.Rand
	stays  int // messages between two drops, on average; 0 to drop none

	mu      sync.Mutex
	v       *venue // changes with each start of the venue
	token   string
	socket  *websocket.Conn
	ended   bool  // by the test, for this round
	at      int64 // how far it has come
	updates int   // that changed the book
	wanted  int64
	news    chan struct{} // closed when at has reached wanted, or with err
	err     error

	drops, slow int
}

// bookSource is a way to rebuild the book.
type bookSource interface {
	// begin subscribes on a new connection, and returns what to send for that.
	begin(r *bookReader) (livetest.Request, error)
	// take takes a message in.
	take(raw []byte) (taken, error)
	// had returns what the book was, and when.
	had() []span
}

// taken is what a message came to.
type taken struct {
	sequence int64 // of its record
	settled  bool  // nothing more of the record follows, so the book stands as of it
	update   bool  // the record changed the book
}

// round begins to follow the venue, which may have been started anew, until end.
func (r *bookReader) round(v *venue, token string) (done chan struct{}) {
	r.mu.Lock()
	r.v, r.token, r.ended = v, token, false
	r.mu.Unlock()
	done = make(chan struct{})
	go func() {
		defer close(done)
		err := r.follow()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ended && r.at >= r.wanted { // the connection was closed under it
			err = nil
		}
		r.err = err
		r.wake()
	}()
	return done
}

// follow goes from connection to connection.
func (r *bookReader) follow() error {
	for !r.isEnded() {
		left := -1
		if r.stays > 0 {
			left = 1 + r.random.IntN(2*r.stays)
		}
		err := r.connection(left)
		var frame *websocket.CloseError
		switch {
		case err == nil:
			r.drops++
		case errors.As(err, &frame) && frame.Code == websocket.ClosePolicyViolation: // it read too slowly, as clients may
			r.slow++
		default:
			return err
		}
	}
	return nil
}

// connection follows over one connection, until so many messages have come, and drops it.
func (r *bookReader) connection(left int) error {
	if err := r.dial(); err != nil {
		return err
	}
	defer r.socket.Close()
	request, err := r.stream.begin(r)
	if err != nil {
		return err
	}
	request.Op = "subscribe"
	if err := r.socket.WriteJSON(request); err != nil {
		return err
	}
	for acknowledged := false; left != 0; left-- {
		_, raw, err := r.socket.ReadMessage()
		if err != nil {
			return err
		}
		var head struct{ Op, Code string }
		if err := json.Unmarshal(raw, &head); err != nil {
			return err
		}
		switch {
		case head.Op == "subscribed" && !acknowledged:
			acknowledged = true
			continue
		case head.Code == "SLOW_CONSUMER":
			continue // the close frame comes next
		case head.Op != "" || !acknowledged:
			return fmt.Errorf("unexpected: %s", raw)
		}
		t, err := r.stream.take(raw)
		if err != nil {
			return fmt.Errorf("%w: %s", err, raw)
		}
		if t.settled {
			r.stand(t)
		}
	}
	return nil
}

func (r *bookReader) dial() error {
	r.mu.Lock()
	url, token := r.v.WebSocket, r.token
	r.mu.Unlock()
	dialer := websocket.Dialer{HandshakeTimeout: patience}
	socket, response, err := dialer.Dial(url, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		return err
	}
	response.Body.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.socket = socket
	if r.ended { // end found the connection before this one
		return errors.Join(socket.Close(), errEnded)
	}
	return socket.SetReadDeadline(time.Now().Add(10 * patience))
}

var errEnded = errors.New("the round has ended")

func (r *bookReader) isEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// stand says how far the reader has come.
func (r *bookReader) stand(t taken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = t.sequence
	if t.update {
		r.updates++
	}
	r.wake()
}

// wake is called under the lock.
func (r *bookReader) wake() {
	if r.news != nil && (r.at >= r.wanted || r.err != nil) {
		close(r.news)
		r.news = nil
	}
}

// reach waits until the reader has come to a sequence.
func (r *bookReader) reach(sequence int64) error {
	r.mu.Lock()
	r.wanted = sequence
	if r.at >= sequence || r.err != nil {
		defer r.mu.Unlock()
		return r.err
	}
	r.news = make(chan struct{})
	news := r.news
	r.mu.Unlock()
	timeout := time.NewTimer(3 * patience)
	defer timeout.Stop()
	select {
	case <-news:
	case <-timeout.C:
		return fmt.Errorf("%d is not reached in %v", sequence, 3*patience)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// end ends the round's connection.
func (r *bookReader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.socket != nil {
		r.socket.Close()
	}
}

// bookStream rebuilds the book from orderbook-stream: each connection begins with a snapshot.
type bookStream struct {
	spans []span
	book  *depth
}

func (b *bookStream) begin(*bookReader) (livetest.Request, error) {
	b.book, b.spans = nil, append(b.spans, span{})
	return livetest.Request{Args: []string{"orderbook-stream:" + bitcoin}}, nil
}

func (b *bookStream) had() []span { return b.spans }

// bookMessage is a snapshot or an update.
type bookMessage struct {
	Channel, Type, Symbol string
	PrevSequence          int64 `json:"prev_sequence"`
	Sequence              int64
	Bids, Asks            []livetest.Level
	Changes               []struct{ Action, Type, Price, Amount string }
}

func (b *bookStream) take(raw []byte) (taken, error) {
	var m bookMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return taken{}, err
	}
	now := &b.spans[len(b.spans)-1]
	var err error
	switch {
	case m.Channel != "orderbook-stream:"+bitcoin || m.Symbol != bitcoin:
		err = errors.New("it is of another book")
	case m.Type == "snapshot" && b.book == nil:
		b.book, err = newDepth(m.Bids, m.Asks)
	case m.Type != "update" || b.book == nil:
		err = errors.New("a snapshot comes first, and once")
	case m.PrevSequence != now.end || m.Sequence <= now.end || len(m.Changes) == 0:
		err = fmt.Errorf("it does not follow on %d", now.end)
	default:
		err = b.update(&m)
	}
	if err == nil && b.book.crossed() {
		err = fmt.Errorf("the book is crossed: %v", b.book)
	}
	if err != nil {
		return taken{}, err
	}
	now.visits, now.end = append(now.visits, visit{m.Sequence, b.book.digest}), m.Sequence
	return taken{m.Sequence, true, m.Type == "update"}, nil
}

func (b *bookStream) update(m *bookMessage) error {
	for _, c := range m.Changes {
		price, err := thousandths(c.Price)
		if err != nil {
			return err
		}
		amount, err := thousandths(c.Amount)
		if err != nil {
			return err
		}
		before := b.book.set(c.Type == "ask", price, amount)
		if (c.Action == "new") != (before == 0) || (c.Action == "delete") != (amount == 0) || before == amount {
			return fmt.Errorf("%s does not fit a level with %d", c.Action, before)
		}
	}
	return nil
}

// newDepth makes a book of its levels, which must come from the best price on.
func newDepth(bids, asks []livetest.Level) (*depth, error) {
	d := &depth{}
	for side, levels := range [][]livetest.Level{bids, asks} {
		ask, last := side == 1, int64(0)
		for i, l := range levels {
			price, err := thousandths(l.Price)
			if err != nil {
				return nil, err
			}
			amount, err := thousandths(l.Amount)
			if err != nil {
				return nil, err
			}
			if amount <= 0 || i > 0 && (price > last) != ask || price == last {
				return nil, fmt.Errorf("the level %v is not in its place", l)
			}
			d.set(ask, price, amount)
			last = price
		}
	}
	return d, nil
}

// orderStream rebuilds the book from the channel orders, of which it misses nothing: a connection resumes behind the last
// message, or begins with the open orders of REST and resumes behind those.
type orderStream struct {
	spans    []span
	book     *orderDepth
	position string // of the last message
	resumes  int
	afresh   int
}

func (o *orderStream) begin(r *bookReader) (livetest.Request, error) {
	if o.position == "" || r.random.IntN(3) == 0 {
		if err := o.look(r); err != nil {
			return livetest.Request{}, err
		}
		o.afresh++
	} else {
		o.resumes++
	}
	return livetest.Request{Args: []string{"orders"}, ResumeFrom: o.position, Data: map[string]bool{"positions": true}}, nil
}

func (o *orderStream) had() []span { return o.spans }

// look begins with the open orders, as of what it has come to at least: the rows may be behind what sockets are told.
func (o *orderStream) look(r *bookReader) error {
	r.mu.Lock()
	v, at := r.v, r.at
	r.mu.Unlock()
	var a answer
	for again := true; again; again = a.busy() && !r.isEnded() {
		var err error
		if a, err = v.try("broker-a", http.MethodGet, "/v1/orders", nil, "X-Min-Log-Position", fmt.Sprintf("trading/0@%d", at)); err != nil {
			return fmt.Errorf("the open orders: %w", err)
		}
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("the open orders: %d %.500s", a.Status, a.Body)
	}
	var open []*restingOrder
	if err := json.Unmarshal(a.Body, &open); err != nil {
		return err
	}
	o.book, o.position = newOrderDepth(), a.Header.Get("X-Log-Position")
	for _, order := range open {
		if err := o.book.told(order); err != nil {
			return err
		}
	}
	sequence, _, err := sequenceOf(o.position)
	if err != nil {
		return err
	}
	o.spans = append(o.spans, span{[]visit{{sequence, o.book.digest}}, sequence})
	r.stand(taken{sequence: sequence, settled: true}) // there may be nothing after it
	return nil
}

func (o *orderStream) take(raw []byte) (taken, error) {
	var m struct {
		restingOrder
		Channel, Position string
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return taken{}, err
	}
	if m.Channel != "orders" {
		return taken{}, errors.New("it is of another channel")
	}
	sequence, whole, err := sequenceOf(m.Position)
	if err != nil {
		return taken{}, err
	}
	now := &o.spans[len(o.spans)-1]
	if sequence <= now.end {
		return taken{}, fmt.Errorf("it comes behind %d", now.end)
	}
	if err := o.book.told(&m.restingOrder); err != nil {
		return taken{}, err
	}
	o.position = m.Position
	if !whole {
		return taken{sequence: sequence}, nil
	}
	update := o.book.digest != now.visits[len(now.visits)-1].digest
	now.visits, now.end = append(now.visits, visit{sequence, o.book.digest}), sequence
	return taken{sequence, true, update}, nil
}

// sequenceOf reads a position of the trading journal, and whether it stands behind a whole record.
func sequenceOf(position string) (sequence int64, whole bool, err error) {
	part := 0
	n, _ := fmt.Sscanf(position, "trading/0@%d.%d", &sequence, &part)
	if n == 0 {
		return 0, false, fmt.Errorf("%q is no position of the trading journal", position)
	}
	return sequence, n == 1, nil
}
