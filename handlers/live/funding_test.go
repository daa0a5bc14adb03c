package live_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// TestFundingOnBalanceChanges: who pays funding and who receives it gets a message with what the payment follows from, the
// rate, the position and the mark; a message of another type has none of these.
func TestFundingOnBalanceChanges(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	v.place(limit("A1", btc, order.Sell, "2.000", "1000"))
	c := v.dial(v.reader("alpha"))
	c.Subscribe("balance-changes")
	v.place(limit("A2", btc, order.Buy, "2.000", "1000"))
	v.place(limit("B1", btc, order.Buy, "20.000", "1001")) // the book stands a thousandth above the index
	v.place(limit("B1", btc, order.Sell, "20.000", "1003"))
	hour := v.clock - v.clock%scalar.Hour + scalar.Hour
	v.clock = hour - scalar.Minute
	v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec("1000")})
	v.clock = hour
	v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: eth, Price: dec("1000")}) // and what is due follows
	of := func(m livetest.Message) map[string]string {
		f := m.Fields()
		if m.Channel != "balance-changes" || f["transaction_type"] != "funding" {
			return nil
		}
		return f
	}
	c.Until("both rows of funding", func(all []livetest.Message) bool {
		n := 0
		for _, m := range all {
			if of(m) != nil {
				n++
			}
		}
		return n == 2
	})
	rows := make(map[string]map[string]string)
	for _, m := range c.On("balance-changes") {
		if f := of(m); f != nil {
			rows[f["customer_code"]] = f
			continue
		}
		for _, name := range []string{"funding_rate", "position_amount", "mark_price"} {
			if value, there := m.Fields()[name]; there {
				t.Errorf("a message of another type has %s %s: %v", name, value, m.Fields())
			}
		}
	}
	// (0.001 − 0.0005) ÷ 8 of 2 × 1,000.
	for customer, want := range map[string][2]string{"A1": {"0.125", "-2.000"}, "A2": {"-0.125", "2.000"}} {
		expect(t, rows[customer], map[string]string{"type": "update", "amount": want[0], "position_amount": want[1], "funding_rate": "0.00006250",
			"mark_price": "1000.0", "symbol": btc, "currency": "USDC", "status": "completed", "order_code": "null"})
		summary, _ := v.state.Summary(customer)
		expect(t, rows[customer], map[string]string{"balance": summary.Balance.String()})
	}
}
