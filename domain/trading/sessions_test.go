package trading

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

var ofNodes = decide.Actor{System: "node"}

// sessionsDesk is a desk with two customers and a session open for each of two connections of one gateway.
func sessionsDesk(t *testing.T) *desk {
	d := newDesk(t)
	d.must(decide.Command{Payload: &ListInstrument{Instrument: btc()}})
	d.must(decide.Command{Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000")}})
	d.customer("alice", "alpha")
	d.customer("bob", "alpha")
	for n := range byte(2) {
		d.must(decide.Command{Actor: ofNodes, Payload: &OpenSession{Session: scalar.ID{1 + n}, Gateway: scalar.ID{9}, Username: "u", Broker: "alpha"}})
	}
	return d
}

// placeOver enters an order over a session.
func (d *desk) placeOver(session byte, payload *PlaceOrder) order.Order {
	d.T.Helper()
	c := decide.Command{Type: CommandPlaceOrder, Actor: trader("alpha"), Payload: payload, Metadata: decide.Metadata{Session: scalar.ID{session}}}
	for _, e := range d.must(c).Events {
		if o, ok := e.(OrderEvent); ok && o.After().CustomerCode == payload.CustomerCode {
			return *o.After()
		}
	}
	d.T.Fatal("no order")
	return order.Order{}
}

func (d *desk) refused(c decide.Command) string {
	_, err := d.do(c)
	var refusal *decide.Refusal
	errors.As(err, &refusal)
	if refusal == nil {
		return ""
	}
	return refusal.Code
}

// TestSessionEnds: the end of a session cancels the live orders that were placed over it, of whichever customer, and no
// others; and no order can be placed over it any more.
func TestSessionEnds(t *testing.T) {
	d := sessionsDesk(t)
	over := d.placeOver(1, limitOrder("alice", order.Buy, 640_000, 1))
	d.placeOver(1, limitOrder("bob", order.Buy, 640_000, 1))
	filled := d.placeOver(1, limitOrder("bob", order.Sell, 630_000, 1)) // takes alice's
	another := d.placeOver(2, limitOrder("alice", order.Buy, 640_000, 1))
	alone := d.place("alpha", limitOrder("alice", order.Buy, 640_000, 1)).Events[0].(OrderEvent).After()
	if filled.Status != order.Filled {
		t.Fatalf("the taker is %s", filled.Status)
	}
	ended := d.must(decide.Command{Actor: ofNodes, Payload: &EndSession{Session: scalar.ID{1}}})
	if e := ended.Events[0].(*SessionEnded); e.Left != 0 || e.Username != "u" || e.Broker != "alpha" || len(ended.Events) != 2 {
		t.Errorf("%+v and %d orders", e, len(ended.Events)-1)
	}
	if after := ended.Events[1].(OrderEvent).After(); after.CustomerCode != "bob" || after.Reason != order.Disconnect {
		t.Errorf("canceled: %+v", after)
	}
	for _, o := range []order.Order{another, *alone} {
		if _, live := d.state.Order(o.Code); !live {
			t.Errorf("%s is canceled too", o.Code)
		}
	}
	if _, live := d.state.Order(over.Code); live {
		t.Error("an order that was filled lives")
	}
	late := decide.Command{Type: CommandPlaceOrder, Actor: trader("alpha"), Payload: limitOrder("alice", order.Buy, 640_000, 1), Metadata: decide.Metadata{Session: scalar.ID{1}}}
	if code := d.refused(late); code != "SESSION_ENDED" {
		t.Errorf("an order over a session that has ended: %s", code)
	}
	if code := d.refused(decide.Command{Actor: ofNodes, Payload: &EndSession{Session: scalar.ID{1}}}); code != "UNKNOWN_SESSION" {
		t.Errorf("ended twice: %s", code)
	}
	if code := d.refused(decide.Command{Actor: trader("alpha"), Payload: &EndSession{Session: scalar.ID{2}}}); code != "FORBIDDEN" {
		t.Errorf("ended by a user: %s", code)
	}
}

// TestSessionWithManyOrders ends one that has more orders than a record holds: the steps that follow cancel the others,
// also where the state was saved between them, and clients go on meanwhile.
func TestSessionWithManyOrders(t *testing.T) {
	d := sessionsDesk(t)
	d.state.limit.others = 3
	for n := range int64(8) {
		d.placeOver(1, limitOrder("alice", order.Buy, 640_000+n*10, 1))
	}
	ended := d.must(decide.Command{Actor: ofNodes, Payload: &EndSession{Session: scalar.ID{1}}})
	if e := ended.Events[0].(*SessionEnded); e.Left != 5 {
		t.Errorf("%d orders are left", e.Left)
	}
	if d.state.Due(d.now) != decide.Alternate {
		t.Error("the rest blocks clients, or is not due")
	}
	for _, left := range []int{2, 0} {
		d.save()
		step := d.step(false)
		if e := step.Events[1].(*SessionSwept); e.Left != left {
			t.Errorf("%d orders are left, not %d", e.Left, left)
		}
	}
	if open := d.state.OpenOrders("alice"); len(open) != 0 || d.state.Due(d.now) != decide.Nothing || len(d.state.sessions) != 1 {
		t.Errorf("%d orders live, %d sessions", len(open), len(d.state.sessions))
	}
}

// TestGatewayLost: while a gateway says that it lives its sessions go on; 15 seconds after its last word they end, each
// with its orders.
func TestGatewayLost(t *testing.T) {
	d := sessionsDesk(t)
	for n := range byte(2) {
		d.placeOver(1+n, limitOrder("alice", order.Buy, 640_000, 1))
	}
	for range 3 {
		d.now += 14 * scalar.Second
		d.must(decide.Command{Actor: ofNodes, Payload: &KeepGateway{Gateway: scalar.ID{9}}})
	}
	d.now += 14 * scalar.Second
	if d.state.Due(d.now) != decide.Nothing {
		t.Error("a gateway is lost while it lives")
	}
	d.save()
	d.now += scalar.Second
	d.drain()
	if open := d.state.OpenOrders("alice"); len(open) != 0 || len(d.state.sessions) != 0 || len(d.state.gateways) != 0 {
		t.Errorf("%d orders, %d sessions and %d gateways are left", len(open), len(d.state.sessions), len(d.state.gateways))
	}
	if code := d.refused(decide.Command{Actor: ofNodes, Payload: &KeepGateway{Gateway: scalar.ID{9}}}); code != "UNKNOWN_GATEWAY" {
		t.Errorf("a gateway without sessions is kept: %s", code)
	}
	if entries, _ := d.state.DueEntries(0, 10); slices.ContainsFunc(entries, func(e decide.DueEntry) bool {
		return !strings.HasPrefix(e.Entry, string(WorkFunding)) && !strings.HasPrefix(e.Entry, string(WorkSettlement))
	}) {
		t.Errorf("something is due for ever: %v", entries)
	}
}

// TestSessionForgetsFinalOrders: what a session remembers does not grow with the orders that have come and gone.
func TestSessionForgetsFinalOrders(t *testing.T) {
	d := sessionsDesk(t)
	for range 400 {
		o := d.placeOver(1, limitOrder("alice", order.Buy, 640_000, 1))
		d.must(decide.Command{Actor: trader("alpha"), Payload: &CancelOrder{CustomerCode: "alice", OrderCode: o.Code}})
	}
	if n := len(d.state.sessions[scalar.ID{1}].orders); n > 128 {
		t.Errorf("%d orders are remembered, of which none lives", n)
	}
}

// checkSessions checks that every session counts its live orders, and that each of them knows its session.
func checkSessions(t fataler, s *State) {
	t.Helper()
	for id, w := range s.sessions {
		orders, _ := s.ordersOver(w, len(w.orders))
		for _, o := range orders {
			if o.Value.session != w {
				t.Fatalf("%s was placed over session %s, and does not know it", o.Code, id)
			}
		}
		if len(orders) != w.live {
			t.Fatalf("session %s counts %d live orders, and has %d", id, w.live, len(orders))
		}
	}
}

// TestTheEndOfASessionLooksAtItsOrdersOnce: what the steps look at that cancel the orders of a session grows with the
// orders, not with their square, also where the state was saved in between.
func TestTheEndOfASessionLooksAtItsOrdersOnce(t *testing.T) {
	const orders = 3000
	e := newEngine(t, 1)
	id := scalar.ID{1}
	e.do(decide.Command{Actor: ofNodes, Payload: &OpenSession{Session: id, Gateway: scalar.ID{9}, Username: "u", Broker: "alpha"}})
	for n := range int64(orders) {
		e.do(decide.Command{Actor: trader("alpha"), Metadata: decide.Metadata{Session: id}, Payload: limitOrder("c0", order.Buy, 600_000+n, 1)})
	}
	looked := 0
	look := func() {
		_, n := e.state.ordersOver(e.state.sessions[id], maxChanges)
		looked += n
	}
	look()
	e.do(decide.Command{Actor: ofNodes, Payload: &EndSession{Session: id}})
	steps := 0
	for ; e.state.Due(e.at.Time) != decide.Nothing; steps++ {
		if steps == orders {
			t.Fatal("the end never comes")
		}
		if steps%7 == 0 {
			e.state = reread(t, e.state)
		}
		look()
		e.step()
	}
	if open := len(e.state.OpenOrders("c0")); open != 0 || steps != (orders-1)/maxChanges || len(e.state.sessions) != 0 {
		t.Errorf("%d orders live, after %d steps", open, steps)
	}
	if looked > 3*orders {
		t.Errorf("%d orders were looked at to cancel %d", looked, orders)
	}
}
