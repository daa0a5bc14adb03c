package live_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// stalling lets writes to its connections wait until they are released, as those to a client that does not read do
// once the kernel's buffers are full.
type stalling struct {
	mu    sync.Mutex
	conns []*stalled
}

type stalled struct {
	net.Conn
	mu       sync.Mutex
	open     chan struct{} // closed while writes go through
	closed   chan struct{}
	once     sync.Once
	deadline time.Time
}

func (s *stalling) wrap(c net.Conn) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := make(chan struct{})
	close(open)
	g := &stalled{Conn: c, open: open, closed: make(chan struct{})}
	s.conns = append(s.conns, g)
	return g
}

func (s *stalling) conn(n int) *stalled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[n]
}

func (g *stalled) stall() (release func()) {
	open := make(chan struct{})
	g.mu.Lock()
	g.open = open
	g.mu.Unlock()
	return func() { close(open) }
}

// SetWriteDeadline implements net.Conn.
func (g *stalled) SetWriteDeadline(t time.Time) error {
	g.mu.Lock()
	g.deadline = t
	g.mu.Unlock()
	return g.Conn.SetWriteDeadline(t)
}

var errStalled = errors.New("write timeout")

// Write implements net.Conn.
func (g *stalled) Write(p []byte) (int, error) {
	g.mu.Lock()
	open, deadline := g.open, g.deadline
	g.mu.Unlock()
	var expired <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-open:
		return g.Conn.Write(p)
	case <-g.closed:
		return 0, net.ErrClosed
	case <-expired:
		return 0, errStalled
	}
}

// CloseWrite closes the sending half.
func (g *stalled) CloseWrite() error { return g.Conn.(*net.TCPConn).CloseWrite() }

// Close implements net.Conn.
func (g *stalled) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Conn.Close()
}

// TestSlowConsumer stalls one of two readers. The other one gets everything at once; the stalled one, when it reads
// again, finds all that was queued for it without a hole, then why it was closed.
func TestSlowConsumer(t *testing.T) {
	var s stalling
	v := newVenue(t, live.Limits{QueueMessages: 20, WriteWait: patience}, s.wrap)
	topic := "orderbook-stream:" + btc
	slow := v.dial("")
	slow.Subscribe(topic)
	quick := v.dial("")
	quick.Subscribe(topic)
	release := s.conn(0).stall()
	for n := range 60 {
		v.place(limit("A1", btc, order.Sell, "0.001", "10"+string(rune('0'+n/10))+string(rune('0'+n%10))))
		quick.Until("its update", func(all []livetest.Message) bool { return len(all) >= n+3 })
	}
	release()
	if code, reason := slow.Closed(); code != websocket.ClosePolicyViolation || reason != string(live.SlowConsumer) {
		t.Errorf("closed with %d %s", code, reason)
	}
	messages := slow.Messages()
	if last := messages[len(messages)-1]; last.Code != string(live.SlowConsumer) {
		t.Errorf("the last message is %s", last.Raw)
	}
	var book livetest.Book
	for _, m := range messages[1 : len(messages)-1] {
		if err := book.Apply(m); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(book.Asks()); n < 18 || n > 22 { // the acknowledgement and the snapshot may still count
		t.Errorf("%d updates before the end, want those that the queue held", n)
	}
}

// TestNarrowConnections lets readers keep up over connections that take little at a time, so that nearly every write
// goes on where one before it was cut short. Nothing is lost, doubled or out of its order.
func TestNarrowConnections(t *testing.T) {
	const orders = 600
	v := newVenue(t, live.Limits{}, func(c net.Conn) net.Conn {
		_ = c.(*net.TCPConn).SetWriteBuffer(4096)
		return c
	})
	topics := []string{"orderbook-stream:" + btc, "market-trades:" + btc, "orders"}
	dialer := websocket.Dialer{NetDialContext: narrow}
	var reading sync.WaitGroup
	for range 8 {
		c, response, err := dialer.DialContext(t.Context(), v.url, http.Header{"Authorization": {"Bearer " + v.reader("alpha")}})
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		defer func() { _ = c.Close() }()
		request := livetest.Request{Op: "subscribe", Args: topics, Data: map[string]bool{"positions": true}}
		if err := errors.Join(c.SetReadDeadline(time.Now().Add(patience)), c.WriteJSON(request)); err != nil {
			t.Fatal(err)
		}
		for range 4 { // three acknowledgements and a snapshot
			if _, _, err := c.ReadMessage(); err != nil {
				t.Fatal(err)
			}
		}
		reading.Go(func() {
			if err := inOrder(c, orders); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range orders {
		v.place(limit([]string{"A1", "A2"}[n%2], btc, []order.Action{order.Sell, order.Buy}[n%2], "0.001", "1000"))
	}
	reading.Wait()
}

// inOrder reads what so many orders cause, each second of which takes the one before it: a change of the book and an
// order for each, and a trade and another order for each second one.
func inOrder(c *websocket.Conn, orders int) error {
	var book, trades, told int
	last := int64(-1)
	for book < orders || trades < orders/2 || told < orders*3/2 {
		_, raw, err := c.ReadMessage()
		if err != nil {
			return fmt.Errorf("after %d changes of the book, %d trades and %d orders: %w", book, trades, told, err)
		}
		m, err := parseMessage(raw)
		switch {
		case err != nil:
			return err
		case m.Channel == "orders":
			told++
		case m.Type == "update" && last >= 0 && m.PrevSequence != last:
			return fmt.Errorf("out of order: %s", raw)
		case m.Type == "update":
			book, last = book+1, m.Sequence
		default:
			trades++
		}
	}
	return nil
}

// TestStalledForEver does not read again: the connection is cut, and whatever the hub held for it is given up.
func TestStalledForEver(t *testing.T) {
	var s stalling
	v := newVenue(t, live.Limits{QueueMessages: 5, WriteWait: time.Second}, s.wrap)
	c := v.dial("")
	c.Subscribe("orderbook-stream:" + btc)
	s.conn(0).stall()
	for range 20 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	if code, reason := c.Closed(); code != 0 {
		t.Errorf("closed with %d %s, want no close frame", code, reason)
	}
}

// TestQueueInBytes checks the other bound of the queue.
func TestQueueInBytes(t *testing.T) {
	var s stalling
	v := newVenue(t, live.Limits{QueueBytes: 1000, WriteWait: patience}, s.wrap)
	c := v.dial("")
	c.Subscribe("orderbook-stream:" + btc)
	release := s.conn(0).stall()
	for range 20 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	release()
	if code, reason := c.Closed(); code != websocket.ClosePolicyViolation || reason != string(live.SlowConsumer) {
		t.Errorf("closed with %d %s", code, reason)
	}
}

// TestSnapshotLargerThanTheQueue makes a book so deep that its snapshot alone exceeds the queue's bytes. It must reach
// a client that reads, or the book could not be seen by anybody.
func TestSnapshotLargerThanTheQueue(t *testing.T) {
	v := newVenue(t, live.Limits{QueueBytes: 1000}, nil)
	for n := range 60 {
		v.place(limit("A1", btc, order.Sell, "0.001", "10"+string(rune('0'+n/10))+string(rune('0'+n%10))))
	}
	c := v.dial("")
	c.Subscribe("orderbook-stream:" + btc)
	m := c.Next("the snapshot", func(m livetest.Message) bool { return m.Type == "snapshot" || m.Op == "error" })
	if m.Type != "snapshot" || len(m.Raw) <= 1000 {
		t.Errorf("%s", m.Raw)
	}
}

// TestPingAndPong has one client that answers pings and one that does not. On a busy machine few pings may come, and an answer may
// come too late: then there is twice as long for them.
func TestPingAndPong(t *testing.T) {
	for wait := time.Second; !cutsWhoIsSilent(t, wait); wait *= 2 {
		if wait > livetest.Patience/2 {
			t.Fatal("pings do not come, or a client that answers them is cut")
		}
	}
}

// cutsWhoIsSilent reports whether thirty pings have come, and the client that answers them is served, when the other one is cut.
func cutsWhoIsSilent(t *testing.T, wait time.Duration) bool {
	t.Helper()
	v := newVenue(t, live.Limits{PingEvery: 10 * time.Millisecond, PongWait: wait}, nil)
	lively, _, err := livetest.Open(t, v.url, "")
	if err != nil {
		t.Fatal(err)
	}
	pings, texts := make(chan struct{}, 30), make(chan string, 1)
	answer := lively.Socket().PingHandler()
	lively.Socket().SetPingHandler(func(data string) error {
		select {
		case pings <- struct{}{}:
		default:
		}
		return answer(data)
	})
	go func() {
		defer close(texts)
		for {
			_, text, err := lively.Socket().ReadMessage()
			if err != nil {
				return
			}
			texts <- string(text)
		}
	}()
	silent, _, err := livetest.Open(t, v.url, "")
	if err != nil {
		t.Fatal(err)
	}
	silent.Socket().SetPingHandler(func(string) error { return nil })
	silent.Read()
	if code, reason := silent.Closed(); code != websocket.ClosePolicyViolation || reason != string(live.SlowConsumer) {
		t.Errorf("the silent client was closed with %d %s", code, reason)
	}
	if lively.Socket().WriteJSON(livetest.Request{Op: "ping"}) != nil {
		return false
	}
	text, served := <-texts
	if !served || strings.Contains(text, string(live.SlowConsumer)) || len(pings) < cap(pings) {
		return false
	}
	if !strings.Contains(text, `"op":"pong"`) {
		t.Errorf("a ping is answered %s", text)
	}
	return true
}

func TestStopping(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c := v.dial(v.reader("alpha"))
	c.Subscribe("orders")
	for range 100 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	if err := v.hub.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if code, _ := c.Closed(); code != websocket.CloseGoingAway {
		t.Errorf("closed with %d", code)
	}
	if n := len(c.On("orders")); n != 100 {
		t.Errorf("%d messages before the end, want what was queued", n)
	}
	if _, response, err := livetest.TryDial(t, v.url, ""); err == nil || response.StatusCode != 503 {
		t.Errorf("a connection to a stopping server: %v %v", response, err)
	}
}

// TestStoppingDoesNotWait stops a server with a client that does not read.
func TestStoppingDoesNotWait(t *testing.T) {
	var s stalling
	v := newVenue(t, live.Limits{}, s.wrap)
	c := v.dial("")
	c.Subscribe("orderbook-stream:" + btc)
	s.conn(0).stall()
	v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := v.hub.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closing: %v", err)
	}
	if code, reason := c.Closed(); code != 0 && !strings.Contains(reason, "closed") {
		t.Errorf("closed with %d %s", code, reason)
	}
}

// deaf is a connection that takes one write, the answer to the handshake, and whose next one does not end before it is
// closed.
type deaf struct {
	net.Conn
	writes atomic.Int32
	closed chan struct{}
	once   sync.Once
}

// Write implements net.Conn.
func (d *deaf) Write(p []byte) (int, error) {
	if d.writes.Add(1) == 1 {
		return d.Conn.Write(p)
	}
	<-d.closed
	return 0, net.ErrClosed
}

// Close implements net.Conn.
func (d *deaf) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Conn.Close()
}

// TestStoppingDoesNotWaitForWhoComes stops a server amid the handshake of a client that then does not read.
func TestStoppingDoesNotWaitForWhoComes(t *testing.T) {
	var conns atomic.Int32
	coming, proceed := make(chan struct{}), make(chan struct{})
	v := newVenue(t, live.Limits{WriteWait: time.Hour}, func(c net.Conn) net.Conn {
		if conns.Add(1) > 1 {
			return c
		}
		close(coming)
		<-proceed
		return &deaf{Conn: c, closed: make(chan struct{})}
	})
	opened := make(chan error, 1)
	go func() {
		_, _, err := livetest.Open(t, v.url, "")
		opened <- err
	}()
	<-coming
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- v.hub.Close(ctx) }()
	for refused := false; !refused; {
		_, response, err := livetest.TryDial(t, v.url, "")
		refused = err != nil && response != nil && response.StatusCode == http.StatusServiceUnavailable
	}
	close(proceed)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-stopped:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("closing: %v", err)
		}
	case <-time.After(patience):
		t.Error("the hub does not stop")
	}
}
