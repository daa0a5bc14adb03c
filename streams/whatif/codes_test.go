package whatif_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// TestCodesOfAnotherWorld: an order has another code in the other world, since it changes the leverage only in the log. Its amendment
// and its cancellation find it.
func TestCodesOfAnotherWorld(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	place := func(amount string, leverage int) {
		v.do(broker, &trading.PlaceOrder{CustomerCode: "ann", Symbol: symbol, Action: order.Buy, Type: order.Limit, Amount: number(amount), LimitPrice: number("49000"), Leverage: leverage})
	}
	cancel := func() {
		v.do(broker, &trading.CancelOrder{CustomerCode: "ann", OrderCode: v.state.OpenOrders("ann")[0].Code})
	}
	place("0.01", 5)
	cancel()
	refused := v.do(broker, &trading.SetLeverage{CustomerCode: "ann", Symbol: symbol, Leverage: 7})
	place("0.01", 5)
	amount := number("0.015")
	v.do(broker, &trading.AmendOrder{CustomerCode: "ann", OrderCode: v.state.OpenOrders("ann")[0].Code, Amount: &amount})
	cancel()
	r, err := v.run(whatif.Config{To: -1, Cumulative: true}, symbol+".max_leverage=6")
	if err != nil {
		t.Fatal(err)
	}
	if a := account(r, "ann"); a.Refused == nil || a.Refused.Number != 1 || a.Refused.First.Sequence != refused || r.Different[whatif.Other] != 1 || len(r.Different) != 2 {
		t.Errorf("%+v, %v, %+v", a, r.Different, r.Differences)
	}
}

// TestCodesOfDueWork: the expiry of an order that has another code in the other world is set aside, put back, and done.
func TestCodesOfDueWork(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.do(broker, &trading.SetLeverage{CustomerCode: "ann", Symbol: symbol, Leverage: 5})
	refused := v.do(broker, &trading.SetLeverage{CustomerCode: "ann", Symbol: symbol, Leverage: 7})
	at := v.now + scalar.Minute
	v.do(broker, &trading.PlaceOrder{CustomerCode: "ann", Symbol: symbol, Action: order.Buy, Type: order.Limit, Amount: number("0.001"), LimitPrice: number("49000"),
		TimeInForce: order.GTD, ExpireTime: at, Leverage: 5})
	v.now = at
	v.append(decide.Recorded{ID: scalar.ID{2}, Type: "engine.step", Actor: decide.Engine}, v.state.SetAside(v.stamp(), "panic: too many"))
	v.do(operator, &decide.PutBackDue{Entry: v.state.SetAsideEntries()[0].Entry})
	if len(v.state.OpenOrders("ann")) > 0 {
		t.Fatal("the order has not expired")
	}
	r, err := v.run(whatif.Config{To: -1, Cumulative: true})
	if err != nil || !r.Equal() {
		t.Errorf("%v: %+v", err, r.Differences)
	}
	r, err = v.run(whatif.Config{To: -1, Cumulative: true}, symbol+".max_leverage=6")
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Differences; r.Different[whatif.Acceptance] != 1 || d[0].Position.Sequence != refused || r.Different[whatif.Other] != 1 || len(r.Different) != 2 {
		t.Errorf("%v, %+v", r.Different, d)
	}
}

// TestCodesOfWithdrawals: a request for a withdrawal posts funding that only the other world has, so that its withdrawal gets another
// code. Its completion and its cancellation find it.
func TestCodesOfWithdrawals(t *testing.T) {
	for name, end := range map[string]func(code scalar.ID) decide.Payload{
		"complete": func(code scalar.ID) decide.Payload { return &trading.CompleteWithdrawal{Code: code} },
		"cancel":   func(code scalar.ID) decide.Payload { return &trading.CancelWithdrawal{Code: code} },
	} {
		t.Run(name, func(t *testing.T) {
			v := open(t, trading.Rules().Newest())
			v.trade("bea", "ann", "0.01", "50000")
			v.place("bea", order.Buy, "10", "49900")
			v.place("bea", order.Sell, "10", "50300")
			v.wait(scalar.Minute)
			v.index("50000")
			half := (v.now/scalar.Hour)*scalar.Hour + 30*scalar.Minute
			v.do(broker, &trading.PlaceOrder{CustomerCode: "bea", Symbol: symbol, Action: order.Buy, Type: order.Limit, Amount: number("0.001"), LimitPrice: number("49000"),
				TimeInForce: order.GTD, ExpireTime: half - scalar.Second})
			v.now = half // the expiry waits, and so do the postings of the other world
			n := v.do(broker, &trading.RequestWithdrawal{CustomerCode: "ann", Currency: "USDC", Amount: fixed.Unit})
			code, _ := decide.EventOf[*trading.WithdrawalRequested](&decide.Evidence{Events: v.records[n].Events})
			v.do(operator, end(code.Code))
			r, err := v.run(whatif.Config{To: -1, Cumulative: true}, symbol+".funding_interval_seconds=1800")
			if err != nil {
				t.Fatal(err)
			}
			if r.Different[whatif.Money] == 0 || r.Different[whatif.Acceptance] != 0 {
				t.Errorf("%v, %+v", r.Different, r.Differences)
			}
		})
	}
}
