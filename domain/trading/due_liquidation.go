package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// liquidationWork liquidates the accounts that have less equity than maintenance margin, one after the other. It first
// cancels the account's orders, then closes its positions step by step until the equity suffices again. If the account
// has no positions left and a negative balance, the insurance fund covers the loss.
type liquidationWork struct{ aboutAccount }

func (liquidationWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	a := entries[0].account
	if a.liveOrders > 0 {
		w := &task{kind: WorkMassCancel, account: a, reason: order.Liquidation}
		events, _, _ := w.end(s, at, nil, s.most(single))
		return stepped(WorkLiquidation, events...)
	}
	h := a.heaviest()
	if h == nil {
		return s.makeUp(at, a, s.bounds(single))
	}
	return s.liquidate(at, h, s.bounds(single))
}

// heaviest returns the position with the largest maintenance margin among those on open instruments; among equals, the
// one with the first symbol. It returns nil if there are none. A position that is being deleveraged comes first until
// it is closed.
func (a *account) heaviest() *position {
	if h := a.deleveraging; h != nil && h.instrument.status() == market.Open {
		return h
	}
	var heaviest *position
	var most fixed.Money
	for _, h := range a.positions {
		if h.size == 0 || h.instrument.status() != market.Open {
			continue
		}
		_, _, maintenance := h.exposure().Health()
		if heaviest == nil || maintenance > most || maintenance == most && h.instrument.contract.Symbol < heaviest.instrument.contract.Symbol {
			heaviest, most = h, maintenance
		}
	}
	return heaviest
}

// liquidate decides one step of closing a position: an order of the account at the bankruptcy price. If no part
// trades, the rest of the position goes to the insurance fund or to the holders of the opposite side.
func (s *State) liquidate(at decide.Stamp, h *position, limit bounds) decide.Decision {
	d := s.newRecordBuilder(at, h.instrument)
	d.limit = limit
	d.events = append(d.events, &Step{Work: WorkLiquidation})
	p := d.viewOf(h.account)
	d.viewOf(s.fund) // it receives the fees, so its unpaid charges are posted first
	price := d.bankruptcyPrice(p)
	// The last record found no counterparty in the book for a position that is being deleveraged, and no order came
	// since.
	var alarm decide.Alarm
	if h.account.deleveraging == h || d.sellOut(p, price) {
		alarm = d.passOn(p, price)
		d.write()
	}
	return decide.Decision{Outcome: decide.Accepted, Events: d.check(), Alarm: alarm}
}

// bankruptcyPrice returns the bankruptcy price of the account's position, in ticks, after the builder's events.
func (d *recordBuilder) bankruptcyPrice(p *accountView) int64 {
	account, e := d.standing(p), d.exposure(p)
	_, _, mine := e.Health()
	price := margin.BankruptcyPrice(e.Contract, e.Mark, e.Size, account.Equity(), mine, account.Maintenance)
	if d.sheet.On() {
		d.explainStanding(p, "before")
		account.ExplainLacks(d.sheet, p.account.code)
		margin.ExplainBankruptcyPrice(d.sheet, p.account.code, e.Contract, e.Mark, e.Size, account.Equity(), mine, account.Maintenance, price)
	}
	return price
}

// sellOut decides a step through the book. It reports whether the book had no counterparty for any of it.
func (d *recordBuilder) sellOut(p *accountView, price int64) (nothing bool) {
	slot := d.reserveSlot()
	o := &resting{Code: d.at.Derive(slot), Side: book.Ask, Price: price}
	if p.size < 0 {
		o.Side = book.Bid
	}
	size := fixed.Abs(p.size)
	t := &taker{order: o, party: p, bound: price, price: price, liquidates: true}
	t.amount = margin.StepSize(d.instrument.contract, max(p.position.began, size), size)
	if d.sheet.On() {
		margin.ExplainStepSize(d.sheet, p.account.code, d.instrument.contract, max(p.position.began, size), size, t.amount)
	}
	t.remaining, t.updated = t.amount, d.at.Time
	o.Value = live{instruction: instruction{kind: order.Limit, tif: order.IOC, reduceOnly: true}, position: p.position, amount: t.amount, created: d.at.Time}
	o.Remaining = t.amount
	why := d.walk(t, d.limit)
	t.status = order.Filled
	if t.remaining > 0 {
		t.status, t.reason = order.Canceled, order.Liquidation
	}
	d.write()
	d.finish(t, slot)
	return t.done() == 0 && why != stopFull
}

// makeUp decides the payment of the insurance fund to an account that has no positions and a negative balance.
func (s *State) makeUp(at decide.Stamp, a *account, limit bounds) decide.Decision {
	house := s.newHouseAccounts()
	decision := stepped(WorkLiquidation)
	owed, rest := s.firstCharges(s.fund, nil, limit.charges)
	events, has := house.postCharges(at, decision.Events, s.fund, owed)
	// The fund's money is known only after all its unpaid charges are posted. If they exceed this record, it pays nothing,
	// and the next step returns to this account. The fund's own unpaid funding charges may leave no money.
	if amount := min(-a.balance, has); rest.Sign() == 0 && amount > 0 {
		events = append(events, &InsurancePaid{CustomerCode: a.code, Broker: a.broker, Amount: amount, Entries: []ledger.Posting{
			a.posting(at.Derive(len(events)), ledger.InsuranceFund, amount, a.balance.Add(amount), ""),
			{Account: ledger.Insurance, Type: ledger.InsuranceFund, Currency: currency, Amount: -amount, Balance: has.Sub(amount)},
		}})
	}
	decision.Events = events
	balanced(events)
	return decision
}

// fail starts the liquidation of an account that has less equity than maintenance margin.
func (f *fold) fail(a *account) {
	f.due.arrived++
	a.failing = &dueEntry{Slot: schedule.At(f.at.Time, dueLiquidation), account: a, arrival: f.due.arrived}
	for _, h := range a.positions {
		h.began = fixed.Abs(h.size)
	}
	f.schedule(a)
}

// recover ends the liquidation of an account that has enough equity again.
func (f *fold) recover(a *account) {
	f.cancelEntry(a.failing)
	f.unwait(a)
	a.failing, a.deleveraging = nil, nil
	for _, h := range a.positions {
		h.began = 0
	}
}

// schedule puts an account to liquidate on the due list while a step could do something for it, and otherwise into
// State.waiting. An entry that was set aside stays there.
func (f *fold) schedule(a *account) {
	e := a.failing
	if slices.ContainsFunc(f.aside, func(x asideEntry) bool { return x.dueEntry == e }) {
		return
	}
	listed := e.Queued()
	switch can := f.canLiquidate(a); {
	case can && !listed:
		f.unwait(a)
		f.due.list(e).Push(e) // its arrival number, which is from the record that made it due, restores its place
	case !can && listed:
		f.due.remove(e)
		fallthrough
	case !can && !a.waits:
		a.waits, a.deleveraging = true, nil // the book may have a counterparty when the liquidation resumes
		f.waiting = append(f.waiting, a)
	}
}

// canLiquidate reports whether the next step for an account could do anything. If no position can be closed,
// only its orders on open instruments can make the account worse: if there is one, all its orders are canceled.
// Otherwise the orders stay, since the price may recover while nothing trades.
func (s *State) canLiquidate(a *account) bool {
	open := false
	for _, h := range a.positions {
		open = open || h.size != 0
		if (h.size != 0 || h.orders.length > 0) && h.instrument.status() == market.Open {
			return true
		}
	}
	return !open && (a.liveOrders > 0 || s.fund.balance > 0)
}

// unwait removes an account from State.waiting.
func (f *fold) unwait(a *account) {
	if a.waits {
		a.waits = false
		f.waiting = slices.DeleteFunc(f.waiting, func(b *account) bool { return a == b })
	}
}

// reschedule schedules again all accounts that wait, and all on the due list that may now have to wait. It runs after
// an instrument opened or closed, or the insurance fund's balance became positive or ceased to be.
func (f *fold) reschedule() {
	for _, a := range slices.Clone(f.waiting) {
		f.schedule(a)
	}
	for _, e := range slices.Clone(f.due.blocking.Entries()) {
		if e.Kind == dueLiquidation {
			f.schedule(e.account)
		}
	}
}
