package live_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// socketsVariable says how many sockets TestSocketsOverAMovingBook opens.
const socketsVariable = "PERPETUA_TEST_SOCKETS"

const (
	rounds   = 15
	perRound = 80  // commands
	queue    = 512 // messages to a connection, more than a round makes
)

// crowd is many rebuilders of one book while it moves.
type crowd struct {
	t       *testing.T
	x       *exchange
	seed    uint64
	readers []*rebuilder
	stalled *rebuilder
	running sync.WaitGroup
	plan    map[int64][]func() // what readers do once so many commands were given
	given   atomic.Int64
}

// TestSocketsOverAMovingBook lets hundreds of sockets follow a book that moves: orders are placed, taken, amended and
// canceled over a real journal. They come at the beginning and while it moves, leave and come back, one never reads.
// Each rebuilds the book and has that of the log at every sequence; the one that does not read is closed, and nobody
// waits for it: the flow goes on as soon as all others have what there is.
func TestSocketsOverAMovingBook(t *testing.T) {
	sockets, err := strconv.Atoi(os.Getenv(socketsVariable))
	if err != nil || sockets <= 0 {
		sockets = 200 // twenty of each kind; make sockets has a thousand
	}
	c := &crowd{t: t, seed: rand.Uint64(), plan: make(map[int64][]func())}
	t.Logf("%d sockets, seed %d", sockets, c.seed)
	// Nobody is closed for anything but a full queue, however slow the machine is. Those who are away don't read.
	limits := live.Limits{QueueMessages: queue, WriteWait: 3 * patience, PongWait: 3 * patience}
	var small atomic.Bool
	c.x = newExchange(t, limits, func(nc net.Conn) net.Conn {
		if tcp, ok := nc.(*net.TCPConn); ok && small.Load() {
			_ = tcp.SetWriteBuffer(4096)
		}
		return nc
	})
	book := newTruth(btc)
	fold := c.x.follow(book)
	begin := c.x.open()
	c.enroll(sockets, begin)
	small.Store(true)
	c.start(c.stalled)
	if err := c.stalled.reach(absent); err != nil {
		t.Fatal(err)
	}
	small.Store(false)
	for _, r := range c.readers {
		if r.at < 0 {
			c.start(r)
		}
	}
	c.arrived(begin)
	last := c.flow(begin)
	c.stalledIsClosed()
	for _, r := range c.readers {
		r.end()
	}
	c.running.Wait()
	if err := fold.Wait(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if book.err != nil {
		t.Fatal(book.err)
	}
	c.check(book, last)
}

// enroll makes the readers: half of them stay from the beginning to the end, the others come later, leave and come
// back, on the same connection or a new one, and some follow everybody's orders instead of the book.
func (c *crowd) enroll(sockets int, begin int64) {
	r := rand.New(rand.NewPCG(c.seed, 3))
	h := &messageCache{known: make(map[string]*received)}
	dialing := make(chan struct{}, 32)
	steps := int64(rounds * perRound)
	for n := range sockets {
		reader := &rebuilder{x: c.x, messages: h, dialing: dialing, topic: "orderbook-stream:" + btc, back: make(chan struct{}), at: -1}
		kind := []string{"steady", "late", "steady", "comes back", "steady", "resubscribes", "steady", "orders", "late", "steady"}[n%10]
		reader.name = fmt.Sprintf("%d, %s", n, kind)
		away := r.Int64N(steps * 3 / 4)
		back := away + 1 + r.Int64N(steps*7/8-away)
		switch kind {
		case "late":
			reader.at = absent
			c.at(away, func() {
				reader.stand(-1)
				c.start(reader)
			})
		case "orders":
			reader.topic, reader.token = "orders", c.x.token("", "", time.Hour, access.ScopeRead, access.ScopeOperator)
			reader.resume = fmt.Sprintf("trading/0@%d", begin)
			reader.sides = newResting()
			reader.book, reader.spans = reader.sides.levels, []span{{visits: []visit{{begin, 0}}, last: begin}}
		}
		if reader.stays = kind == "resubscribes"; reader.stays || kind == "comes back" || kind == "orders" {
			c.at(away, func() { reader.leave.Store(true) })
			c.at(back, func() {
				reader.leave.Store(false)
				reader.comeBack()
			})
		}
		c.readers = append(c.readers, reader)
	}
	c.stalled = &rebuilder{name: "the stalled one", x: c.x, messages: h, dialing: dialing, topic: "orderbook-stream:" + btc,
		stalls: make(chan struct{}), at: -1}
}

func (c *crowd) at(step int64, do func()) { c.plan[step] = append(c.plan[step], do) }

func (c *crowd) start(r *rebuilder) { c.running.Go(r.run) }

// arrived waits until all readers that are there have reached a sequence.
func (c *crowd) arrived(sequence int64) {
	c.t.Helper()
	for _, r := range c.readers {
		if err := r.reach(sequence); err != nil {
			c.t.Fatalf("reader %s: %v", r.name, err)
		}
	}
}

// flow gives the orders, a few at a time from each of several traders, and returns the last sequence.
func (c *crowd) flow(begin int64) (last int64) {
	traders := make([]*trader, 0, 4)
	for n, customer := range []string{"A1", "A2", "B1", "B2"} {
		traders = append(traders, &trader{x: c.x, customer: customer, rand: rand.New(rand.NewPCG(c.seed, uint64(100+n)))})
	}
	last = begin
	for range rounds {
		var giving sync.WaitGroup
		for _, trader := range traders {
			giving.Go(func() {
				for range perRound / len(traders) {
					for _, do := range c.plan[c.given.Add(1)-1] {
						do()
					}
					trader.act()
				}
			})
		}
		giving.Wait()
		// Everybody waits for a change that there is certainly.
		last = c.x.submit("A1", trading.CommandPlaceOrder, limit("A1", btc, order.Buy, "0.001", "950"))
		c.arrived(last)
	}
	return last
}

// trader gives commands for one customer.
type trader struct {
	x        *exchange
	customer string
	rand     *rand.Rand
	orders   []one // that were live when they were last heard of
}

type one struct {
	code scalar.ID
	side order.Action
}

// act does something random: mostly limit orders around 1000, some of them crossing, market orders, cancels,
// amendments and mass cancels. It may be refused, for an order may have been filled meanwhile.
func (t *trader) act() {
	mine, symbol := one{side: []order.Action{order.Buy, order.Sell}[t.rand.IntN(2)]}, btc
	if t.rand.IntN(12) == 0 {
		symbol = eth
	}
	k := -1
	if n := t.rand.IntN(100); n >= 65 && len(t.orders) > 0 {
		k = t.rand.IntN(len(t.orders))
		mine = t.orders[k]
	}
	price := fixed.Decimal{Coef: 9_980 + t.rand.Int64N(300), Scale: 1}
	if mine.side == order.Buy {
		price.Coef = 20_000 - price.Coef
	}
	amount := fixed.Decimal{Coef: 1 + t.rand.Int64N(2000), Scale: 3}
	command, payload := trading.CommandPlaceOrder, any(&trading.PlaceOrder{CustomerCode: t.customer, Symbol: symbol, Action: mine.side,
		Type: order.Limit, Amount: amount, LimitPrice: price})
	switch n := t.rand.IntN(100); {
	case k < 0 && n < 15:
		payload = &trading.PlaceOrder{CustomerCode: t.customer, Symbol: symbol, Action: mine.side, Type: order.Market, Amount: amount}
	case k < 0:
	case n < 45:
		command, payload = trading.CommandCancelOrder, &trading.CancelOrder{CustomerCode: t.customer, OrderCode: mine.code}
		t.orders = append(t.orders[:k], t.orders[k+1:]...)
	case n < 98:
		command, payload = trading.CommandAmendOrder, &trading.AmendOrder{CustomerCode: t.customer, OrderCode: mine.code, LimitPrice: &price, Amount: &amount}
	default:
		command, payload = trading.CommandCancelAll, &trading.CancelAll{CustomerCode: t.customer}
		t.orders = nil
	}
	c := decide.Command{ID: record.NewCommandID(time.Now()), Type: command, Payload: payload, Actor: decide.Actor{Sub: "test", Broker: brokerOf(t.customer)}}
	result, err := journaltest.Insist(func() (submit.Result, error) { return t.x.owner.Submit(t.x.t.Context(), c) })
	var refused *submit.RefusedError
	if errors.As(err, &refused) {
		return
	}
	if err != nil {
		t.x.t.Errorf("%s: %v", command, err)
		return
	}
	for _, event := range result.Entry.Record.Events {
		if opened, ok := event.(trading.OrderEvent); ok && command == trading.CommandPlaceOrder && opened.After().CustomerCode == t.customer &&
			opened.After().Created == result.Entry.Record.Time && opened.After().Status.Live() {
			t.orders = append(t.orders, one{opened.After().Code, mine.side})
		}
	}
}

// stalledIsClosed wants the stalled socket to have been closed, alone, for its slowness, and lets it read why.
func (c *crowd) stalledIsClosed() {
	c.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c.x.hub.Collectors()...)
	if n := gather(c.t, registry)["perpetua_live_slow_consumers_total"]; n != 1 {
		c.t.Errorf("%v connections were closed because they read too slowly, want the stalled one", n)
	}
	close(c.stalled.stalls)
}

// check holds what each reader had against the truth.
func (c *crowd) check(book *truth, last int64) {
	if book.changed < rounds*perRound/2 || book.levels < 50 {
		c.t.Errorf("%d changes of the book and %d levels are too few to show anything", book.changed, book.levels)
	}
	books := 0
	for _, r := range c.readers {
		if r.err != nil {
			c.t.Errorf("reader %s: %v", r.name, r.err)
		}
		for n, s := range r.spans {
			if final := n == len(r.spans)-1; final && s.last != last {
				c.t.Errorf("reader %s ended at %d, want %d", r.name, s.last, last)
			}
			if err := book.check(s.visits, s.last); err != nil {
				c.t.Fatalf("reader %s: %v", r.name, err)
			}
			books += len(s.visits)
		}
	}
	s := c.stalled
	if err := book.check(s.spans[0].visits, s.spans[0].last); err != nil {
		c.t.Errorf("reader %s: %v", s.name, err)
	}
	if n := len(s.spans[0].visits); s.spans[0].last >= last || n < queue {
		c.t.Errorf("reader %s got %d messages up to %d, want those that were queued when it was closed", s.name, n, s.spans[0].last)
	}
	var frame *websocket.CloseError
	if !errors.As(s.err, &frame) || frame.Code != websocket.ClosePolicyViolation || frame.Text != string(live.SlowConsumer) ||
		s.said.Op != "error" || s.said.Code != string(live.SlowConsumer) {
		c.t.Errorf("reader %s was closed with %v after %s", s.name, s.err, s.said.raw)
	}
	c.t.Logf("%d records, %d of which changed the book, of up to %d levels; %d books rebuilt", last+1, book.changed, book.levels, books)
}

// comeBack lets a reader that left come back. From now on it is waited for.
func (r *rebuilder) comeBack() {
	r.stand(-1)
	close(r.back)
}

// follow starts a fold of the exchange's journal for the truth of a book.
func (x *exchange) follow(book *truth) *follow.Fold {
	f := follow.New(x.client, trading.Rules(), 0)
	f.Listen(book.observe)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Run(ctx) }()
	x.t.Cleanup(func() { stop(); <-done })
	return f
}

// open lists the instruments and registers the customers, and returns the last sequence of that.
func (x *exchange) open() (last int64) {
	x.t.Helper()
	for _, symbol := range []string{btc, eth} {
		x.submit("A1", trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument(symbol)})
		x.submit("A1", trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: dec("1000")})
	}
	for _, code := range []string{"A1", "A2", "B1", "B2"} {
		x.submit(code, trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: code, Broker: brokerOf(code)})
		last = x.submit(code, trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: 1_000_000 * fixed.Unit})
	}
	if err := x.fold.Wait(x.t.Context(), last); err != nil {
		x.t.Fatal(err)
	}
	return last
}

// narrow connects with a small receive buffer, so that what is not read soon stays with the sender.
func narrow(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		return errors.Join(failed, err)
	}}
	return d.DialContext(ctx, network, address)
}
