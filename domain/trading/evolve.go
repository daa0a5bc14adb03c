package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// Evolve applies one valid record. It implements decide.State.
//
// Evolve succeeds for every record that Decide, Step or SetAside could have made in this state, under any rules in
// force at that time. Every valid record is one of them: its prev hash proves that its owner had applied the same
// records before it. Evolve therefore does not check events against the rules, which change while the log does not. An
// event that could not have been decided at all, for example about a customer, order or instrument that does not exist,
// is a broken invariant. Evolve then panics with a message that names it, because otherwise the states of the nodes
// would diverge unnoticed.
func (s *State) Evolve(at decide.Stamp, c decide.Recorded, _ decide.Outcome, events []decide.Event) {
	s.time = at.Time
	s.changes = s.changes[:0]
	s.core.Touch(at, events, touched)
	s.core.Evolve(at, c, events)
	s.observe(at)
	// Whether the taker continues is known only from the last event (work.started or work.finished), but is needed at
	// the order's event, which is earlier: an order that continues must not rest, or the next step would meet it in the
	// book.
	f := &s.fold
	*f = fold{State: s, at: at, command: c, fingerprint: s.core.RequestFingerprint(c, events), active: activeTaker(s.running, events), moved: f.moved[:0]}
	s.affected = s.affected[:0]
	for _, e := range events {
		if o, ok := e.(OrderEvent); ok {
			f.order(o.After())
			continue
		}
		// The event's own changes come first: an account must exist before postings to it.
		eventTable.Apply(f, e)
		if changed, ok := e.(PositionEvent); ok {
			f.hold(changed.PositionsAfter())
		}
		if posted, ok := e.(ledger.Posted); ok {
			f.post(posted.Postings())
		}
	}
	// The running task is the one after the record. So it counts the orders that the record which started it canceled.
	// The orders that the record which finished it canceled are in the total of that record's own event.
	if s.running != nil && f.canceled > 0 {
		s.running.canceled += f.canceled
	}
	f.afterwards()
	f.scheduleTriggers()
	f.completeInstant()
}

// afterwards updates what depends on all events of the record together: the liquidations that begin, end, wait or
// resume, and the orders of the insurance fund.
func (f *fold) afterwards() {
	f.lookAround()
	turned := f.solvent != (f.fund.balance > 0)
	f.solvent = f.fund.balance > 0
	for _, i := range f.listing {
		if open := i.status() == market.Open; open != i.open {
			i.open, turned = open, true
			f.moveFund(i)
		}
	}
	for _, i := range f.moved {
		f.moveFund(i)
	}
	if turned {
		f.reschedule()
	}
}

// activeTaker returns the order that continues to take after the record instead of resting. running is the task before
// the record.
func activeTaker(running *task, events []decide.Event) scalar.ID {
	var active scalar.ID
	if running != nil {
		active = running.order
	}
	for _, e := range events {
		switch e := e.(type) {
		case *WorkStarted:
			active = e.OrderCode
		case *WorkFinished:
			active = scalar.ID{}
		}
	}
	return active
}

// fold applies one record to the state.
type fold struct {
	*State
	at      decide.Stamp
	command decide.Recorded
	// fingerprint identifies the request that the events answer.
	fingerprint string
	active      scalar.ID // order that continues to take
	canceled    int
	moved       []*instrument // instruments on which the insurance fund's order may have to change
	fixing      scalar.Time   // the last instant of funding that the record fixes; 0 for none
}

// tradeExecuted applies what a trade changes besides orders, positions, and balances. An account that is not in liquidation has no
// deleveraging to continue.
func (f *fold) tradeExecuted(e *TradeExecuted) {
	if e.MovesLastPrice() {
		i := f.instrument(e.Symbol)
		ticks, _ := i.contract.Ticks(e.Price)
		f.setLast(i, ticks)
	}
	if e.Type == AutoDeleveraging {
		if h := f.position(e.Taker.CustomerCode, e.Symbol); h.account.failing != nil {
			h.account.deleveraging = h
		}
	}
}

func (f *fold) depositCompleted(e *DepositCompleted) {
	f.transfer(&e.Transaction)
	if f.importing() {
		f.account(e.CustomerCode).opened = true
	}
}

func (f *fold) withdrawalRequested(e *WithdrawalRequested) {
	a := f.account(e.CustomerCode)
	a.pending = a.pending.Sub(e.Amount)
	f.withdrawals[e.Code] = &withdrawal{e.Transaction, a}
	f.transfer(&e.Transaction)
}

func (f *fold) withdrawalCompleted(e *WithdrawalCompleted) { f.endWithdrawal(&e.Transaction) }

func (f *fold) withdrawalCanceled(e *WithdrawalCanceled) { f.endWithdrawal(&e.Transaction) }

func (f *fold) feeProfileSet(e *FeeProfileSet) {
	h := f.position(e.CustomerCode, e.Symbol)
	h.ownFees = true
	h.maker, _ = market.FeeParts(e.MakerFee)
	h.taker, _ = market.FeeParts(e.TakerFee)
}

func (f *fold) marginProfileSet(e *MarginProfileSet) {
	a := f.account(e.CustomerCode)
	a.setMargins(e)
	f.affect(a)
}

func (f *fold) leverageSet(e *LeverageSet) {
	f.position(e.CustomerCode, e.Symbol).leverage = e.Leverage
}

func (f *fold) leverageChanged(e *LeverageChanged) {
	f.position(e.CustomerCode, e.Symbol).leverage = e.Leverage
}

func (f *fold) instrumentListed(e *InstrumentListed) {
	if f.instruments[e.Symbol] != nil {
		panic("trading: an event lists the instrument " + e.Symbol + " again")
	}
	i := newInstrument(market.NewContract(e.Instrument), len(f.listing))
	i.created = f.at.Time
	f.instruments[e.Symbol] = i
	f.listing = append(f.listing, i)
}

func (f *fold) instrumentChanged(e *InstrumentChanged) { f.change(e.Instrument) }

func (f *fold) instrumentDelisted(e *InstrumentDelisted) { f.change(e.Instrument) }

func (f *fold) cancelAllAfterSet(e *CancelAllAfterSet) {
	f.arm(e.CustomerCode, e.TimeoutSeconds, e.ExpiresAt)
}

func (f *fold) cancelAllAfterFired(e *CancelAllAfterFired) { f.arm(e.CustomerCode, 0, 0) }

// instrument returns an instrument that an event names. It panics if there is none.
func (f *fold) instrument(symbol string) *instrument {
	i := f.instruments[symbol]
	if i == nil {
		panic("trading: an event names the unknown instrument " + symbol)
	}
	return i
}

// account returns the account that an event names and sets its update time. It panics if there is none.
func (f *fold) account(code string) *account {
	a := f.holder(code)
	if a == nil {
		panic("trading: an event names the unknown customer " + code)
	}
	a.updated = f.at.Time
	return a
}

func (f *fold) position(customer, symbol string) *position {
	return f.account(customer).hold(f.instrument(symbol))
}

func (f *fold) customerRegistered(e *CustomerRegistered) {
	if f.holder(e.CustomerCode) != nil {
		panic("trading: an event registers the customer " + e.CustomerCode + " again")
	}
	a := &account{code: e.CustomerCode, broker: e.Broker, name: e.Name, created: e.Created, updated: e.Created,
		transfers: make(map[string]transfer)}
	a.setMargins(&MarginProfileSet{Leverage: MaxLeverage})
	f.register(a)
}

// setMargins sets an account's default margins: exactly 1/leverage and half of it, or percentages.
func (a *account) setMargins(e *MarginProfileSet) {
	a.leverage, a.initialMargin, a.maintenanceMargin = e.Leverage, e.InitialMargin, e.MaintenanceMargin
	if e.Leverage != 0 {
		a.initial = fixed.Leverage(e.Leverage)
		a.maintenance = a.initial.Half()
		return
	}
	a.initial, a.maintenance = fixed.Percent(e.InitialMargin), fixed.Percent(e.MaintenanceMargin)
}

// post sets the balances after these postings.
func (f *fold) post(entries []ledger.Posting) {
	for i := range entries {
		p := &entries[i]
		if p.Account == "" {
			a := f.account(p.CustomerCode)
			f.balances = f.balances.Sub(a.balance.Wide().Abs()).Add(p.Balance.Wide().Abs())
			a.balance = p.Balance
			f.affect(a)
			continue
		}
		f.venue[p.Account] = p.Balance
		if p.Account == ledger.Insurance {
			f.fund.balance = p.Balance
		}
		if p.Account == ledger.Clearing {
			f.instrument(p.Symbol).clearing += p.Amount
		}
	}
}

func (f *fold) transfer(t *ledger.Transaction) {
	if t.ReferenceID != t.Code.String() {
		f.account(t.CustomerCode).transfers[t.ReferenceID] = transfer{f.fingerprint, f.at.Sequence}
	}
}

func (f *fold) endWithdrawal(t *ledger.Transaction) {
	a := f.account(t.CustomerCode)
	w := f.withdrawals[t.Code]
	if w == nil || w.account != a {
		panic("trading: an event names the unknown withdrawal " + t.Code.String())
	}
	a.pending = a.pending.Add(t.Amount)
	w.transaction = *t
}

// change sets an instrument's parameters, and schedules the due work that depends on them again.
func (f *fold) change(after market.Instrument) {
	i := f.instrument(after.Symbol)
	before := i.contract
	i.contract = market.NewContract(after)
	if !slices.Equal(before.Tiers, i.contract.Tiers) { // all holders now need a different margin
		f.affectHolders(i)
	}
	f.armGuard(i)
	if i.funding != nil && (after.FundingIntervalSeconds != before.FundingIntervalSeconds || after.Status == market.Withdrawn) {
		f.armFunding(i, f.at.Time)
	}
}

// hold sets positions.
func (f *fold) hold(positions []PositionHeld) {
	for n := range positions {
		p := &positions[n]
		h := f.position(p.CustomerCode, p.Symbol)
		i := h.instrument
		i.openInterest -= max(h.size, 0)
		held := h.size != 0
		h.size, _ = i.contract.Steps(p.Amount)
		switch holds := h.size != 0; {
		case holds && !held:
			h.posted = f.fixed // it does not owe charges that were fixed before
			i.holders.push(h)
		case held && !holds:
			i.holders.remove(h)
		}
		i.costs = i.costs.Sub(h.cost.Wide().Abs()).Add(p.Cost.Wide().Abs())
		h.cost = p.Cost
		h.updated = f.at.Time
		i.openInterest += max(h.size, 0)
		if h.account.isFund() {
			f.moved = append(f.moved, i)
		}
		if h.size == 0 && h.account.deleveraging == h {
			h.account.deleveraging = nil
		}
		f.affect(h.account)
	}
}

func (f *fold) workStarted(e *WorkStarted) {
	w := &task{kind: e.Work, started: f.at.Time, reason: e.Reason, symbol: f.instruments[e.Symbol],
		account: f.holder(e.CustomerCode), protected: e.PriceProtection}
	if !e.CommandID.IsZero() {
		w.command = f.command
	}
	switch {
	case e.Work == WorkSweep && f.orders.Get(e.OrderCode) != nil && w.symbol != nil && w.account != nil:
		w.order = e.OrderCode
		w.bound, _ = w.symbol.contract.Ticks(e.Bound)
	case e.Work == WorkMassCancel && w.account != nil, e.Work == WorkDelisting && w.symbol != nil:
	default:
		panic("trading: an event starts the work of nothing")
	}
	f.running = w
	f.due.push(&dueEntry{Slot: schedule.At(w.started, dueTask), task: w})
}

func (f *fold) workFinished(*WorkFinished) {
	if f.running == nil {
		return // the work started and finished in this record
	}
	// The key was noted at the record that started the work, which has no answer. From now on a repeat finds this
	// record.
	if f.running.command.Metadata.Key != "" {
		f.core.Note(f.at, f.running.command) // the command's answer is this record
	}
	for _, e := range f.due.tasks.Entries() {
		if e.task == f.running {
			f.due.remove(e)
			break
		}
	}
	if f.running.account == f.fund {
		f.moved = append(f.moved, f.running.symbol)
	}
	f.running = nil
}

func (f *fold) arm(customer string, seconds int, expires scalar.Time) {
	a := f.account(customer)
	f.cancelEntry(a.cancelAllAfter)
	a.cancelAllAfter, a.cancelAllAfterSeconds = nil, seconds
	if expires != 0 {
		a.cancelAllAfter = &dueEntry{Slot: schedule.At(expires, dueCancelAllAfter), account: a}
		f.due.push(a.cancelAllAfter)
	}
}
