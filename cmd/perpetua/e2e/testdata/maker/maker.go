package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"example.org/maker/client"
)

// did is what the maker tells at its end.
type did struct {
	Placed      int `json:"placed"`
	Amended     int `json:"amended"`
	Fills       int `json:"fills"`
	Checks      int `json:"checks"`
	Connections int `json:"connections"`
	Dropped     int `json:"dropped"` // by the maker itself
}

// maker quotes. One goroutine does everything, so its idea of the account needs no lock.
type maker struct {
	venue       *venue
	rnd         *rand.Rand
	instruments []client.Instrument // that it quotes
	view        *view
	did         did

	socket   *socket             // nil while there is none
	acks     map[string]int      // of this connection, by operation and topic
	waiting  map[string]string   // operations of the requests on this connection that are not answered, by id
	number   int                 // of the last request or order
	mark     map[string]string   // prices by symbol
	quoted   map[string][]string // reference ids by symbol, that may be live
	promised []order             // orders as answers told them, not yet held against the topic orders
}

// quotes is how many instruments are quoted.
const quotes = 2

func newMaker(ctx context.Context, v *venue, seed uint64) (*maker, error) {
	m := &maker{venue: v, rnd: rand.New(rand.NewPCG(seed, 1)), mark: make(map[string]string), quoted: make(map[string][]string)}
	all, err := v.instruments(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) < quotes {
		return nil, fmt.Errorf("there are %d instruments", len(all))
	}
	m.instruments = all[:quotes]
	s, err := v.state(ctx)
	if err != nil {
		return nil, err
	}
	m.view = newView(s)
	return m, nil
}

// trade quotes until a time, and takes its quotes away.
func (m *maker) trade(ctx context.Context, end time.Time) error {
	drop, check := m.in(3*time.Second), m.in(time.Second)
	for time.Now().Before(end) {
		var err error
		switch now := time.Now(); {
		case m.socket == nil:
			err = m.connect(ctx)
		case now.After(check):
			check = m.in(2 * time.Second)
			err = m.check(ctx)
		case now.After(drop):
			drop = m.in(6 * time.Second)
			err = m.drop()
		default:
			err = m.quote()
		}
		if err = m.lost(err); err != nil {
			return err
		}
	}
	return m.finish(ctx)
}

// in returns a time at random, so long from now on average.
func (m *maker) in(average time.Duration) time.Time {
	return time.Now().Add(time.Duration(m.rnd.Int64N(int64(2 * average))))
}

// lost forgets a connection that has ended, which is no fault.
func (m *maker) lost(err error) error {
	if !errors.Is(err, errGone) {
		return err
	}
	if m.socket != nil {
		m.socket.cut()
		m.socket = nil
	}
	return nil
}

// finish cancels all quotes, checks a last time, and compares the trades of the topic with those of REST.
func (m *maker) finish(ctx context.Context) error {
	for end := time.Now().Add(patience); ; {
		err := m.last(ctx)
		if err == nil || !errors.Is(err, errGone) || time.Now().After(end) {
			return err
		}
		if err := m.lost(err); err != nil {
			return err
		}
	}
}

func (m *maker) last(ctx context.Context) error {
	if m.socket == nil {
		if err := m.connect(ctx); err != nil {
			return err
		}
	}
	if err := m.check(ctx); err != nil {
		return err
	}
	if err := m.ask("order.cancel_all", map[string]any{"customer_code": m.venue.customer}); err != nil {
		return err
	}
	if err := m.await("the end of all orders", func() bool { return len(m.view.open) == 0 && len(m.waiting) == 0 }); err != nil {
		return err
	}
	codes, err := m.venue.trades(ctx)
	if err != nil {
		return err
	}
	streamed := make([]string, len(m.view.trades))
	for i, t := range m.view.trades {
		streamed[i] = t.Code
	}
	if m.did.Fills = len(streamed); !slices.Equal(slices.Sorted(slices.Values(codes)), slices.Sorted(slices.Values(streamed))) {
		return fmt.Errorf("the venue has %d trades of the account, the topic showed %d", len(codes), len(streamed))
	}
	m.socket.close()
	return nil
}

// connect opens a connection whose end cancels its orders, goes on with each topic where it was, and waits until nothing is
// left of the orders of the connection before.
func (m *maker) connect(ctx context.Context) error {
	before := maps.Clone(m.view.open)
	err := insist(ctx, func() error {
		a, err := m.venue.at()
		if err != nil {
			return err
		}
		if m.socket, err = dial(ctx, a.WebSocket, m.venue.key); err != nil {
			return err
		}
		m.acks, m.waiting, m.view.shown = make(map[string]int), make(map[string]string), make(map[string][]positionShown)
		if err := m.subscribe(); err != nil {
			if errors.Is(err, errGone) || errors.Is(err, errUpstream) { // the node is on its way up or down
				m.socket.cut()
				return notNow{err}
			}
			return err
		}
		return nil
	})
	if err != nil {
		m.socket = nil
		return err
	}
	m.did.Connections++
	if err := m.await("the end of the orders of the connection before", func() bool { return len(m.view.open) == 0 }); err != nil {
		return fmt.Errorf("%w: %v", err, slices.Collect(maps.Keys(m.view.open)))
	}
	for code := range before {
		if err := m.view.ended(code); err != nil {
			return err
		}
	}
	clear(m.quoted)
	return m.check(ctx)
}

// subscribe authenticates the connection and subscribes to what the maker follows.
func (m *maker) subscribe() error {
	key := map[string]any{"token": m.venue.key, "cancel_on_disconnect": true}
	if err := m.socket.send(request{Op: "authenticate", Data: key}); err != nil {
		return err
	}
	topics := slices.Concat(resumed, []string{positionsTopic})
	for _, topic := range topics {
		r := request{Op: "subscribe", Args: []string{topic}, ResumeFrom: m.view.at[topic], Data: map[string]any{"positions": true}}
		if err := m.socket.send(r); err != nil {
			return err
		}
	}
	for _, i := range m.instruments {
		topics = append(topics, "ticker:"+i.Symbol)
		if err := m.socket.send(request{Op: "subscribe", Args: topics[len(topics)-1:]}); err != nil {
			return err
		}
	}
	return m.await("the acknowledgements", func() bool {
		for _, topic := range topics {
			if m.acks["subscribed "+topic] == 0 {
				return false
			}
		}
		return m.acks["authenticated "] == 1 && len(m.mark) == len(m.instruments)
	})
}

// drop ends the connection, mostly in the middle of something.
func (m *maker) drop() error {
	m.did.Dropped++
	for range m.rnd.IntN(4) {
		if err := m.requote(m.instruments[m.rnd.IntN(len(m.instruments))]); err != nil {
			return err
		}
	}
	if m.rnd.IntN(3) == 0 {
		m.socket.close()
	} else {
		m.socket.cut()
	}
	return errGone
}

// quote does one thing with the quotes, and takes a breath.
func (m *maker) quote() error {
	var err error
	if i := m.instruments[m.rnd.IntN(len(m.instruments))]; m.rnd.IntN(4) == 0 {
		err = m.amend(i)
	} else {
		err = m.requote(i)
	}
	if err != nil {
		return err
	}
	const most = 16 // requests under way
	if err := m.await("answers", func() bool { return len(m.waiting) < most }); err != nil {
		return err
	}
	breath := time.Now().Add(time.Duration(20+m.rnd.IntN(80)) * time.Millisecond)
	return m.pump(breath, func() bool { return false })
}

// requote replaces the quotes on an instrument: those that are there are canceled, and new ones placed, without waiting in
// between, since requests are decided in their order.
func (m *maker) requote(i client.Instrument) error {
	old := m.quoted[i.Symbol]
	for _, o := range m.view.open {
		if o.Symbol == i.Symbol && !slices.Contains(old, o.ReferenceID) {
			old = append(old, o.ReferenceID)
		}
	}
	const batch = 50
	for names := range slices.Chunk(old, batch) {
		var orders []client.OrderName
		for _, name := range names {
			orders = append(orders, client.OrderName{ReferenceId: &name})
		}
		if err := m.ask("order.cancel_batch", map[string]any{"customer_code": m.venue.customer, "orders": orders}); err != nil {
			return err
		}
	}
	m.quoted[i.Symbol] = nil
	var orders []client.OrderEntry
	for level := range 2 + m.rnd.IntN(4) {
		for _, side := range []client.Action{client.Buy, client.Sell} {
			o := m.entry(i, side, 0.0002+0.0003*float64(level)+0.0001*m.rnd.Float64())
			m.quoted[i.Symbol] = append(m.quoted[i.Symbol], *o.ReferenceId)
			orders = append(orders, o)
		}
	}
	m.did.Placed += len(orders)
	return m.ask("order.place_batch", map[string]any{"customer_code": m.venue.customer, "orders": orders})
}

// entry is a limit order so far from the mark price, as a part of it.
func (m *maker) entry(i client.Instrument, side client.Action, away float64) client.OrderEntry {
	price := m.price(i, side, away)
	step := decimal.RequireFromString(i.AmountStep)
	amount := step.Mul(decimal.NewFromInt(int64(1 + m.rnd.IntN(20)))).String()
	postOnly := m.rnd.IntN(5) > 0
	name := m.name("q")
	return client.OrderEntry{Symbol: i.Symbol, Action: side, Type: client.OrderTypeLimit, Amount: &amount, LimitPrice: &price,
		PostOnly: &postOnly, ReferenceId: &name}
}

func (m *maker) price(i client.Instrument, side client.Action, away float64) string {
	mark, tick := decimal.RequireFromString(m.mark[i.Symbol]), decimal.RequireFromString(i.PriceTick)
	if side == client.Buy {
		away = -away
	}
	return mark.Mul(decimal.NewFromFloat(1 + away)).Div(tick).Floor().Mul(tick).String()
}

// amend moves a live order, or changes its size.
func (m *maker) amend(i client.Instrument) error {
	open := slices.SortedFunc(maps.Values(m.view.open), func(a, b order) int { return strings.Compare(a.Code, b.Code) })
	if len(open) == 0 {
		return m.requote(i)
	}
	o := open[m.rnd.IntN(len(open))]
	data := map[string]any{"customer_code": m.venue.customer, "order_code": o.Code}
	for _, of := range m.instruments {
		if of.Symbol != o.Symbol {
			continue
		}
		if step := decimal.RequireFromString(of.AmountStep); m.rnd.IntN(2) == 0 {
			data["amount"] = o.Amount.Add(step.Mul(decimal.NewFromInt(int64(m.rnd.IntN(5))))).String()
		} else {
			data["limit_price"] = m.price(of, client.Action(o.Action), 0.0003+0.0005*m.rnd.Float64())
		}
	}
	m.did.Amended++
	return m.ask("order.amend", data)
}

// name makes a name that was never used.
func (m *maker) name(kind string) string {
	m.number++
	return fmt.Sprintf("%s-%d", kind, m.number)
}

// ask sends a request for order entry.
func (m *maker) ask(op string, data any) error {
	id := m.name("r")
	m.waiting[id] = op
	return m.socket.send(request{Op: op, ID: id, Data: data})
}

// pump takes in what comes until the condition holds, which is asked after each message, or the time has come.
func (m *maker) pump(until time.Time, done func() bool) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for !done() {
		select {
		case raw, ok := <-m.socket.messages:
			if !ok {
				return errGone
			}
			if err := m.take(raw); err != nil {
				return err
			}
		case <-timer.C:
			return nil
		}
	}
	return nil
}

// await is pump for what has to come.
func (m *maker) await(what string, done func() bool) error {
	if err := m.pump(time.Now().Add(patience), done); err != nil {
		return err
	}
	if !done() {
		return fmt.Errorf("%s did not come within %v", what, patience)
	}
	return nil
}

// errUpstream says that the engine does not answer: the connection would not cancel its orders.
var errUpstream = errors.New("the engine does not answer")

// take takes in a message.
func (m *maker) take(raw []byte) error {
	var got message
	if err := json.Unmarshal(raw, &got); err != nil {
		return fmt.Errorf("%w: %s", err, raw)
	}
	switch {
	case got.Op == "result":
		request, known := m.waiting[got.ID]
		if delete(m.waiting, got.ID); !known {
			return fmt.Errorf("an answer to nothing: %s", raw)
		}
		var status int
		if err := json.Unmarshal(got.Status, &status); err != nil {
			return fmt.Errorf("%w: %s", err, raw)
		}
		return m.answered(request, status, got.Data)
	case got.Op == "error" && got.Code == "UPSTREAM_ERROR":
		return errors.Join(errUpstream, errGone)
	case got.Op == "error":
		return fmt.Errorf("the venue says %s", raw)
	case got.Op != "":
		m.acks[got.Op+" "+got.Channel]++
		return nil
	}
	if err := m.apply(got.Channel, raw); err != nil {
		return fmt.Errorf("%w; the message is %s", err, raw)
	}
	if slices.Contains(resumed, got.Channel) {
		m.view.at[got.Channel] = *got.Position
	}
	return nil
}

// apply applies a message of a topic.
func (m *maker) apply(topic string, raw []byte) error {
	switch topic {
	case "orders":
		return decodeTo(raw, m.view.addOrder)
	case "trades":
		return decodeTo(raw, m.view.addTrade)
	case "balance-changes":
		return decodeTo(raw, m.view.addChange)
	case positionsTopic:
		return decodeTo(raw, func(p positionShown) error {
			m.view.shown[p.Symbol] = append(m.view.shown[p.Symbol], p)
			return nil
		})
	}
	var ticker client.Ticker
	if err := json.Unmarshal(raw, &ticker); err != nil {
		return err
	}
	if ticker.MarkPrice != nil {
		m.mark[ticker.Symbol] = *ticker.MarkPrice
	}
	return nil
}

func decodeTo[T any](raw []byte, add func(T) error) error {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return add(v)
}

// answered takes in the answer to order entry: what it says of orders is kept, to be held against what the topic says.
func (m *maker) answered(op string, status int, body json.RawMessage) error {
	switch {
	case status == 503: // never decided, or on its way: the topic will tell
		return nil
	case op == "order.amend" && slices.Contains([]int{404, 409, 422}, status): // filled or canceled meanwhile, or not possible
		return nil
	case status != 200:
		return fmt.Errorf("%s was answered %d %s", op, status, body)
	case op == "order.cancel_all":
		return nil
	case op == "order.amend":
		var o client.Order
		if err := json.Unmarshal(body, &o); err != nil {
			return err
		}
		m.promised = append(m.promised, orderOf(&o))
		return nil
	}
	var results client.OrderResults
	if err := json.Unmarshal(body, &results); err != nil {
		return err
	}
	for _, r := range results.Results {
		switch {
		case r.Order != nil:
			m.promised = append(m.promised, orderOf(r.Order))
		case r.Status == 422 && r.Problem.Order != nil: // rejected, and kept
			m.promised = append(m.promised, orderOf(r.Problem.Order))
		case r.Status == 503 || op == "order.cancel_batch" && (r.Status == 404 || r.Status == 409):
		default:
			return fmt.Errorf("%s: an order was answered %d %+v", op, r.Status, r.Problem)
		}
	}
	return nil
}
