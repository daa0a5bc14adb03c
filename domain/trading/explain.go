package trading

import (
	"fmt"
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/opening"
)

// Arithmetic decides a record again on the state before it, and returns the calculations of the decision. command has the
// payload of a client's command; without a payload the record is a step, of one entry if single is set. Each calculation names
// the customer that its values belong to.
//
// The caller has checked that this build decides the same record: see package redecide. Like Decide, Arithmetic
// changes only caches of the state.
func (s *State) Arithmetic(at decide.Stamp, command decide.Command, single bool) *arithmetic.Sheet {
	observed := *s
	observed.sheet = new(arithmetic.Sheet)
	if command.Payload == nil {
		observed.Step(at, single)
	} else {
		_, _ = observed.Decide(at, command) // a record was decided, so there is no refusal
	}
	return observed.sheet
}

// explainStanding writes down the margin of an account after the builder's events.
func (d *recordBuilder) explainStanding(p *accountView, subject string) {
	if !d.sheet.On() || p.account.isFund() {
		return
	}
	var all []margin.Exposure
	seen := false
	for _, h := range p.account.positions {
		if h.instrument == d.instrument {
			all, seen = append(all, d.exposure(p)), true
			continue
		}
		e := h.exposure()
		bids, asks := d.state.overdue(h, d.now)
		e.Bids, e.Asks = e.Bids.Sub(bids), e.Asks.Sub(asks)
		all = append(all, e)
	}
	if !seen {
		all = append(all, d.exposure(p))
	}
	d.standing(p).Explain(d.sheet, p.account.code, subject, all)
}

// explainBound writes down the last price at which an order may trade, or the most aggressive limit price.
func (d *recordBuilder) explainBound(t *taker, name string, percent fixed.Decimal, ticks int64) {
	if mark := d.instrument.mark; mark != 0 && d.sheet.On() {
		d.instrument.contract.ExplainBound(d.sheet, t.party.account.code, name, t.order.Side == book.Bid, mark, percent, ticks)
	}
}

// explainTrade writes down one side of a trade: the notional, and the position and its cost afterwards.
func (d *recordBuilder) explainTrade(p *accountView, subject string, price, steps, size int64, cost, after, realized fixed.Money) {
	if !d.sheet.On() || d.dryRun {
		return
	}
	party, c := p.account.code, d.instrument.contract
	c.ExplainNotional(d.sheet, party, "notional", subject, price, fixed.Abs(steps))
	d.sheet.Add(party, "position", subject, "position_before + traded", c.Amount(size+steps).String(), arithmetic.Decimal("position_before", c.Amount(size)),
		arithmetic.Decimal("traded", c.Amount(steps)))
	closed := int64(0)
	if (size > 0) != (steps > 0) {
		closed = min(fixed.Abs(size), fixed.Abs(steps))
	}
	sign, opened := "", fixed.Abs(steps)-closed
	if steps < 0 {
		sign = "-"
	}
	values := []arithmetic.Value{arithmetic.Money("cost", cost)}
	formula := "cost"
	if closed > 0 {
		part := "half_even(cost * closed / abs(position_before), 8)"
		values = append(values, arithmetic.Decimal("closed", c.Amount(closed)), arithmetic.Decimal("position_before", c.Amount(size)))
		proceeds := "-price * closed * contract_size"
		if steps < 0 {
			proceeds = "price * closed * contract_size"
		}
		d.sheet.Add(party, "realised_pnl", subject, proceeds+" - "+part, realized.String(), append(values[:len(values):len(values)],
			arithmetic.Decimal("price", c.Price(price)), arithmetic.Decimal("contract_size", c.ContractSize))...)
		formula += " - " + part
	}
	if opened > 0 {
		formula += " + " + sign + "price * opened * contract_size"
		values = append(values, arithmetic.Decimal("price", c.Price(price)), arithmetic.Decimal("opened", c.Amount(opened)),
			arithmetic.Decimal("contract_size", c.ContractSize))
	}
	d.sheet.Add(party, "cost", subject, formula, after.String(), values...)
}

// explainPosting writes down a movement of money on an account.
func explainPosting(s *arithmetic.Sheet, party, subject string, before, amount, after fixed.Money) {
	s.Add(party, "balance", subject, "balance_before + amount", after.String(), arithmetic.Money("balance_before", before), arithmetic.Money("amount", amount))
}

// explainMakerFee writes down the fee of a maker. A rebate is limited to the fee of the taker, which the maker must not see.
func (d *recordBuilder) explainMakerFee(p *accountView, subject string, notional fixed.Money, parts int64, fee fixed.Money) {
	if !d.sheet.On() || d.dryRun {
		return
	}
	if margin.Fee(notional, parts) == fee {
		margin.ExplainFee(d.sheet, p.account.code, "fee", subject, notional, parts, fee)
		return
	}
	d.sheet.Add(p.account.code, "fee", subject, "-rebate_limited_by_the_fee_of_the_taker", fee.String(),
		arithmetic.Money("rebate_limited_by_the_fee_of_the_taker", -fee))
}

// explainCounterparty writes down why a holder of the opposite side has a rank in a deleveraging.
func (d *recordBuilder) explainCounterparty(next *counterparty, rank int, each fixed.Money) {
	if !d.sheet.On() {
		return
	}
	h, e := next.position, next.position.exposure()
	notional, unrealized := e.Worth()
	margin.ExplainScore(d.sheet, h.account.code, fmt.Sprintf("rank %d", rank), unrealized, e.Cost, notional, next.equity, next.score)
	margin.ExplainBearable(d.sheet, h.account.code, d.instrument.contract, next.equity, each)
}

// explainFired writes down that the market reached the price of a leg. Without such a line, an operator has put the order back.
func (s *stop) explainFired(sheet *arithmetic.Sheet, price int64, side book.Side) {
	w, c := s.triggerIndex(), s.order.Value.position.instrument.contract
	if w.low == 0 || !reaches(side, price, w.low, w.high) || !sheet.On() {
		return
	}
	party := s.order.Value.position.account.code
	if side == book.Bid {
		sheet.Add(party, "price_reached", s.order.Code.String(), "lowest_price <= trigger_price", "true", arithmetic.Decimal("lowest_price", c.Price(w.low)),
			arithmetic.Decimal("trigger_price", c.Price(price)))
		return
	}
	sheet.Add(party, "price_reached", s.order.Code.String(), "highest_price >= trigger_price", "true", arithmetic.Decimal("highest_price", c.Price(w.high)),
		arithmetic.Decimal("trigger_price", c.Price(price)))
}

// explainCharge writes down a payment of funding or settlement, and the balance after it.
func (t *houseAccounts) explainCharge(d *unpaidCharge, balance fixed.Money) {
	if !t.sheet.On() || d.position.account.isFund() {
		return
	}
	party, c, x := d.position.account.code, d.position.instrument.contract, d.charge
	if x.kind == fundingCharge {
		c.ExplainFunding(t.sheet, party, d.position.size, x.mark, x.rate, d.amount)
	} else {
		c.ExplainSettlement(t.sheet, party, d.position.size, x.mark, d.cost.Sub(d.amount), d.amount)
	}
	explainPosting(t.sheet, party, c.Symbol+" "+x.kind.String(), balance.Sub(d.amount), d.amount, balance)
}

// explainOpened writes down the cost of a position after a line of an import.
func explainOpened(s *arithmetic.Sheet, party string, l *opening.Line, c *market.Contract, before, after fixed.Money) {
	s.Add(party, "cost", c.Symbol+" "+strconv.Itoa(l.Number), "cost_before + half_even(amount * entry_price * contract_size, 8)", after.String(), arithmetic.Money("cost_before", before),
		arithmetic.Decimal("amount", l.Amount), arithmetic.Decimal("entry_price", l.EntryPrice), arithmetic.Decimal("contract_size", c.ContractSize))
}
