package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// checkArithmetic computes every formula of a decision that is about to be applied, and finds every number of its events among
// the results: each posting, fee, position, cost, and judgement.
func (j *testJournal) checkArithmetic(c decide.Command, single bool, d decide.Decision) {
	j.t.Helper()
	sheet := j.state.Arithmetic(j.stamp(), c, single)
	if j.state.sheet != nil {
		j.t.Fatalf("Arithmetic left its sheet in the state")
	}
	for _, l := range sheet.Lines() {
		if err := l.Check(); err != nil {
			j.t.Fatalf("%s of %q: %v", l.Subject, l.Party, err)
		}
		if l.Party != "" && j.state.holder(l.Party) == nil {
			j.t.Fatalf("%s is of %q, whom nobody knows", l.Name, l.Party)
		}
	}
	lines := explained{j, sheet.Lines()}
	for _, e := range d.Events {
		lines.event(e)
	}
	lines.judged(c, d)
}

// explained are the calculations of a record.
type explained struct {
	j    *testJournal
	list []arithmetic.Line
}

// has demands a calculation with a result.
func (x explained) has(party, name, subject, result string) {
	x.j.t.Helper()
	if !slices.ContainsFunc(x.list, func(l arithmetic.Line) bool {
		return l.Party == party && l.Name == name && (subject == "" || l.Subject == subject) && l.Result == result
	}) {
		x.j.t.Fatalf("nothing says why the %s of %s on %s is %s: %+v", name, party, subject, result, x.list)
	}
}

func (x explained) event(e decide.Event) {
	x.j.t.Helper()
	switch e := e.(type) {
	case *TradeExecuted:
		for n, leg := range [...]*TradeLeg{&e.Taker, &e.Maker} {
			held := e.Positions[n]
			x.has(leg.CustomerCode, "notional", e.Code.String(), e.Notional.String())
			x.has(leg.CustomerCode, "position", e.Code.String(), held.Amount.String())
			x.has(leg.CustomerCode, "cost", e.Code.String(), held.Cost.String())
			switch {
			case leg.Fee == 0:
			case e.Type == Liquidation && n == 0:
				x.has(leg.CustomerCode, "liquidation_fee", e.Code.String(), leg.Fee.String())
			default:
				x.has(leg.CustomerCode, "fee", e.Code.String(), leg.Fee.String())
			}
		}
	case *FundingFixed:
		if i := x.j.state.instruments[e.Symbol]; !e.Missed && i.premiums.Count > 0 {
			x.has("", "funding_rate", e.Symbol, e.FundingRate.String())
		}
	case *TriggerFired:
		if len(x.j.state.instruments[e.Symbol].putBack) == 0 {
			x.has(e.CustomerCode, "price_reached", e.OrderCode.String(), "true")
		}
	}
	posted, ok := e.(ledger.Posted)
	if !ok {
		return
	}
	for _, p := range posted.Postings() {
		switch p.Type {
		case ledger.Deposit, ledger.Withdrawal, ledger.Transfer, ledger.InsuranceFund: // these are what was asked for
			continue
		case ledger.FundingPayment:
			if p.CustomerCode != "" {
				x.has(p.CustomerCode, "funding", p.Symbol, p.Amount.String())
			}
		case ledger.Settlement:
			if p.CustomerCode != "" {
				x.has(p.CustomerCode, "settlement", p.Symbol, p.Amount.String())
			}
		case ledger.Trade, ledger.Liquidation, ledger.AutoDeleveraging:
			if p.CustomerCode != "" {
				x.has(p.CustomerCode, "realised_pnl", p.Code.String(), p.Amount.String())
			}
		}
		if p.CustomerCode != "" {
			x.has(p.CustomerCode, "balance", "", p.Balance.String())
		}
	}
}

// judged finds the margin rule of an order.
func (x explained) judged(c decide.Command, d decide.Decision) {
	x.j.t.Helper()
	p, ok := c.Payload.(*PlaceOrder)
	if !ok || d.Repeated {
		return
	}
	for _, e := range d.Events {
		o, ok := e.(OrderEvent)
		if !ok || o.After().CustomerCode != p.CustomerCode || o.After().Created != x.j.now {
			continue
		}
		switch after := o.After(); {
		case after.Reason == order.InsufficientMargin && after.Status == order.Rejected && x.count("margin_rule") > 0:
			x.has(p.CustomerCode, "margin_rule", "", arithmetic.Truth(false))
		case after.FilledQuote > fixed.Money(0):
			x.has(p.CustomerCode, "margin_rule", "", arithmetic.Truth(true))
		}
	}
}

func (x explained) count(name string) (n int) {
	for _, l := range x.list {
		if l.Name == name {
			n++
		}
	}
	return n
}
