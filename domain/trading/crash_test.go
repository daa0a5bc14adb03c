package trading

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestCrash lets prices of two instruments crash and soar with many accounts on both sides, with little and with much in
// the books and in the insurance fund, through funding and settlement and while instruments are closed. The journal of
// the test looks at everything after every record: money is conserved to the last unit, records are bounded, exactly
// those accounts are to be liquidated that lack equity. Amid the waves the state is saved and read back, and both go on.
// In the end no account is below zero that the fund could make up for, and a replay gives the same.
func TestCrash(t *testing.T) {
	liquidations, takeovers, deleveraged, paid := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := &crash{T: t, testJournal: newTestJournal(t)}
		if rapid.Bool().Draw(t, "small records") {
			c.state.limit.fills = rapid.IntRange(1, 3).Draw(t, "fills")
			c.state.limit.others = rapid.IntRange(1, 3).Draw(t, "other changes")
			c.single = rapid.Bool().Draw(t, "single steps")
		}
		c.open(rapid.IntRange(4, 24).Draw(t, "accounts"))
		for range rapid.IntRange(1, 12).Draw(t, "moves") {
			c.trade(rapid.IntRange(5, 40).Draw(t, "orders"))
			c.move()
		}
		c.reopen()
		for steps := 0; c.state.Due(c.now) != decide.Nothing; steps++ {
			if steps == 5000 {
				t.Fatalf("it does not end")
			}
			if rapid.IntRange(0, 9).Draw(t, "save amid the wave") == 0 {
				c.save()
			}
			c.step(c.single)
		}
		c.compare()
		c.checkReplay()
		c.checkNobodyBelow()
		for _, r := range c.records {
			for _, e := range r.built {
				switch e := e.(type) {
				case *InsurancePaid:
					paid++
				case *TradeExecuted:
					switch {
					case e.Type == AutoDeleveraging:
						deleveraged++
					case e.Type == Liquidation && e.Taker.OrderCode.IsZero():
						takeovers++
					case e.Type == Liquidation:
						liquidations++
					}
				}
			}
		}
	})
	t.Logf("%d liquidations, %d takeovers, %d deleveraged, %d made up for", liquidations, takeovers, deleveraged, paid)
	if liquidations == 0 || takeovers == 0 || deleveraged == 0 { // of the fourth see insurance.scenario
		t.Error("the test has become too tame")
	}
}

// crash is a venue on which prices move far.
type crash struct {
	*rapid.T
	*testJournal
	accounts int
	prices   [2]int64 // in tenths
}

func (c *crash) give(actor decide.Actor, payload decide.Payload) {
	c.now += scalar.Time(rapid.Int64Range(0, 60_000_000).Draw(c.T, "pause"))
	_, _ = c.do(decide.Command{Actor: actor, Payload: payload}) // what is refused or rejected is no matter here
}

func (c *crash) open(accounts int) {
	c.accounts = accounts
	for n, symbol := range randomSymbols {
		i := btc()
		i.Symbol, i.LimitBand = symbol, fixed.Decimal{Coef: 60}
		if n == 1 {
			i.IndexStaleSeconds = 3600
		}
		c.give(operator, &ListInstrument{Instrument: i})
		c.prices[n] = 10_000
		c.index(n)
	}
	for n := range accounts {
		code := fmt.Sprintf("c%02d", n)
		c.give(operator, &RegisterCustomer{CustomerCode: code, Broker: "alpha"})
		c.give(operator, &MakeDeposit{CustomerCode: code, Currency: currency, Amount: fixed.Money(rapid.Int64Range(50, 600).Draw(c.T, "deposit")) * fixed.Unit})
	}
	if rapid.Bool().Draw(c.T, "insured") {
		c.give(operator, &DepositInsurance{Amount: fixed.Money(rapid.Int64Range(1, 3000).Draw(c.T, "fund")) * fixed.Unit})
	}
}

func (c *crash) index(n int) {
	c.give(operator, &SetIndexPrice{Symbol: randomSymbols[n], Price: fixed.Decimal{Coef: c.prices[n], Scale: 1}})
}

// trade has customers place orders around the prices.
func (c *crash) trade(orders int) {
	for range orders {
		n := rapid.IntRange(0, 1).Draw(c.T, "instrument")
		o := &PlaceOrder{CustomerCode: fmt.Sprintf("c%02d", rapid.IntRange(0, c.accounts-1).Draw(c.T, "account")), Symbol: randomSymbols[n],
			Action: rapid.SampledFrom([]order.Action{order.Buy, order.Sell}).Draw(c.T, "action"), Type: order.Limit,
			Amount:     fixed.Decimal{Coef: rapid.Int64Range(100, 5000).Draw(c.T, "amount"), Scale: 3},
			LimitPrice: fixed.Decimal{Coef: c.prices[n] + rapid.Int64Range(-100, 100).Draw(c.T, "away")*rapid.SampledFrom([]int64{1, 1, 1, 1, 12}).Draw(c.T, "far"), Scale: 1},
			ReduceOnly: rapid.IntRange(0, 5).Draw(c.T, "reduce only") == 0}
		if rapid.IntRange(0, 3).Draw(c.T, "market") == 0 {
			o.Type, o.LimitPrice = order.Market, fixed.Decimal{}
		}
		c.give(trader("alpha"), o)
	}
}

// move moves a price, often far, or closes or opens an instrument, or lets hours pass.
func (c *crash) move() {
	n := rapid.IntRange(0, 1).Draw(c.T, "instrument")
	switch rapid.IntRange(0, 9).Draw(c.T, "what") {
	case 0:
		status := rapid.SampledFrom([]string{"open", "post_only", "trade_halt"}).Draw(c.T, "status")
		c.setStatus(n, status)
	case 1:
		c.now += scalar.Time(rapid.Int64Range(0, 3).Draw(c.T, "hours")) * scalar.Hour
		c.drain()
	default:
		c.prices[n] = max(100, c.prices[n]*rapid.Int64Range(75, 130).Draw(c.T, "percent")/100)
		c.index(n)
	}
}

func (c *crash) setStatus(n int, status string) {
	c.give(operator, &ChangeInstrument{Symbol: randomSymbols[n], Status: some(market.Status(status))})
}

// reopen opens what was closed, with a fresh index, so that nothing has to wait.
func (c *crash) reopen() {
	for n := range randomSymbols {
		c.setStatus(n, "open")
		c.index(n)
	}
	for n := range randomSymbols { // the second may have gone stale meanwhile
		c.now++
		_, _ = c.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: randomSymbols[n], Price: fixed.Decimal{Coef: c.prices[n], Scale: 1}}})
	}
}

// checkNobodyBelow checks that nobody lacks equity any more, but for those without a position whom the fund has nothing
// left to pay.
func (c *crash) checkNobodyBelow() {
	c.t.Helper()
	for _, a := range c.state.registered {
		m := c.state.standing(a, 0, nil)
		if !m.Lacks() {
			continue
		}
		for _, h := range a.positions {
			if h.size != 0 {
				c.t.Fatalf("%s lacks equity, and still holds %d on %s", a.code, h.size, h.instrument.contract.Symbol)
			}
		}
		if c.state.fund.balance > 0 {
			c.t.Fatalf("%s has %s, and the fund %s", a.code, a.balance, c.state.fund.balance)
		}
	}
}
