package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/margin"
)

// exposure is what the party has at stake on the draft's instrument, as the draft leaves it.
func (d *draft) exposure(p *party) margin.Exposure {
	e := p.position.exposure()
	e.Size, e.Cost, e.Bids, e.Asks, e.Floor = p.size, p.cost, p.bids, p.asks, p.floor
	return e
}

// passOn decides who gets the rest of a position that found nobody in the book: the insurance fund if it can afford to,
// otherwise those who hold the other side. What none of them can take goes to the fund whatever it has; but if only the
// record is full, the next one goes on. It returns the alarm for what the fund could not afford.
func (d *draft) passOn(p *party, price int64) (alarm decide.Alarm) {
	if !d.affordable(p, price) {
		alarm = decide.Alarm{Kind: AlarmDeleveraging, Message: "the insurance fund can't afford a position that is liquidated: it goes to those who hold the other side"}
		// The fund's own part is a trade like the others: where the record has no room for it, the next one ranks anew, finds
		// nobody again, and begins with it.
		if !d.deleverage(p, price) || d.crowded(1, d.state.fund, d.limit) {
			return alarm
		}
		alarm = decide.Alarm{Kind: AlarmInsurance, Message: "the insurance fund takes a position over that it can't afford: nobody who holds the other side can take the rest of it"}
	}
	d.handOver(p, d.party(d.state.fund), price, fixed.Abs(p.size), Liquidation)
	return alarm
}

// The kinds of alarm for what the insurance fund can't afford.
const (
	AlarmDeleveraging = "auto_deleveraging" // it went to those who hold the other side, or the rest waits for the next record
	AlarmInsurance    = "insurance_fund"    // the fund had to take it all the same
)

// affordable reports whether the insurance fund, with the party's position taken over at a price, would have at least the
// initial margin of all its positions: each at the rate of its instrument's first tier, at mark.
func (d *draft) affordable(p *party, price int64) bool {
	fund := *d.party(d.state.fund)
	size, cost, realised := positionAfter(d.instrument, fund.size, fund.cost, price, p.size)
	fund.size, fund.cost, fund.balance = size, cost, fund.balance.Add(realised)
	var needed fixed.Wide
	add := func(e margin.Exposure) {
		notional, _, _ := e.Health()
		needed = needed.Add(e.Contract.InitialRate(fixed.Rate{Num: 0, Den: 1}).Of(notional, fixed.Ceiling).Wide())
	}
	for _, h := range fund.account.positions {
		if h.size != 0 && h.instrument != d.instrument {
			add(h.exposure())
		}
	}
	if fund.size != 0 {
		add(d.exposure(&fund))
	}
	return d.standing(&fund).Equity().Cmp(needed) >= 0
}

// handOver books a trade without orders: so many steps of the party's position go to another account at a price. Nobody
// pays a fee.
func (d *draft) handOver(p, to *party, price, steps int64, kind TradeType) {
	c := d.instrument.contract
	signed := steps
	if p.size > 0 {
		signed = -steps
	}
	e := &TradeExecuted{Code: d.at.Derive(len(d.events)), Symbol: c.Symbol, Price: c.Price(price), Amount: c.Amount(steps),
		Notional: c.MustNotional(price, steps), Action: actionOf(signed), Type: kind, Taker: bareLeg(p.account), Maker: bareLeg(to.account),
		Positions: make([]PositionHeld, 0, 2), Entries: make([]ledger.Posting, 0, 4)}
	d.events = append(d.events, e)
	d.countTrade(e)
	taker, maker := closings(kind)
	d.trade(e, p, e.Taker.OrderCode, price, signed, taker)
	d.trade(e, to, e.Maker.OrderCode, price, -signed, maker)
	d.fills++
	d.cut(to, nil)
}

// bareLeg is a party's part of a trade without orders.
func bareLeg(a *account) TradeLeg { return TradeLeg{CustomerCode: a.code, Broker: a.broker} }
