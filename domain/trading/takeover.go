package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
)

// exposure returns the inputs of the account's margin on the builder's instrument, after the builder's events.
func (d *recordBuilder) exposure(p *accountView) margin.Exposure {
	e := p.position.exposure()
	e.Size, e.Cost, e.Bids, e.Asks, e.Floor = p.size, p.cost, p.bids, p.asks, p.floor
	return e
}

// passOn assigns the rest of a position that found no counterparty in the book: to the insurance fund if the fund can
// afford it, otherwise to the holders of the opposite side. The part that these cannot take goes to the fund even if it
// cannot afford it, unless only the record is full: then the next record continues. passOn returns the alarm for a
// position that the fund cannot afford.
func (d *recordBuilder) passOn(p *accountView, price int64) (alarm decide.Alarm) {
	if !d.affordable(p, price) {
		alarm = decide.Alarm{Kind: AlarmDeleveraging, Message: "the insurance fund can't afford a position that is liquidated: it goes to those who hold the other side"}
		// The fund's own part is a trade like the others. If the record has no room for it, the next record ranks the
		// holders again, finds none who can take anything, and begins with the fund's part.
		if !d.deleverage(p, price) || d.crowded(1, d.state.fund, d.limit) {
			return alarm
		}
		alarm = decide.Alarm{Kind: AlarmInsurance, Message: "the insurance fund takes a position over that it can't afford: nobody who holds the other side can take the rest of it"}
	}
	d.handOver(p, d.viewOf(d.state.fund), price, fixed.Abs(p.size), Liquidation)
	return alarm
}

// The kinds of alarm for positions that the insurance fund cannot afford.
const (
	AlarmDeleveraging = "auto_deleveraging" // it went to holders of the opposite side, or its rest waits for the next record
	AlarmInsurance    = "insurance_fund"    // the fund had to take it nevertheless
)

// affordable reports whether the insurance fund, after taking the account's position at a price, would have at least the
// initial margin of all its positions, each at mark and at the rate of the instrument's first tier.
func (d *recordBuilder) affordable(p *accountView, price int64) bool {
	fund := *d.viewOf(d.state.fund)
	size, cost, realized := positionAfter(d.instrument, fund.size, fund.cost, price, p.size)
	fund.size, fund.cost, fund.balance = size, cost, fund.balance.Add(realized)
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

// handOver books a trade without orders: it transfers steps of the account's position to another account at a price,
// without fees.
func (d *recordBuilder) handOver(p, to *accountView, price, steps int64, kind TradeType) {
	signed := steps
	if p.size > 0 {
		signed = -steps
	}
	e := d.addTrade(kind, price, steps, d.instrument.contract.MustNotional(price, steps), actionOf(signed), bareLeg(p.account), bareLeg(to.account))
	taker, maker := closings(kind)
	d.trade(e, p, e.Taker.OrderCode, price, signed, taker)
	d.trade(e, to, e.Maker.OrderCode, price, -signed, maker)
	d.fills++
	d.cut(to, nil)
}

// bareLeg returns an account's leg of a trade without orders.
func bareLeg(a *account) TradeLeg { return TradeLeg{CustomerCode: a.code, Broker: a.broker} }
