package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// exposure returns the inputs of margin on one instrument, as if the position had posted all its unpaid charges.
func (h *position) exposure() margin.Exposure {
	_, taker := h.fees()
	cost, _, _ := h.afterCharges()
	return margin.Exposure{Contract: h.instrument.contract, Mark: h.instrument.mark, Size: h.size, Cost: cost,
		Bids: h.bids, Asks: h.asks, Floor: h.floor(), MaintenanceFloor: h.account.maintenance, TakerFee: taker}
}

// standing computes an account's margin as of now, as if the account had posted all its unpaid charges. Orders past
// their expiry time reserve nothing. If now is 0, expiry is ignored. If replaced is set, it replaces the account's
// exposure on its instrument.
func (s *State) standing(a *account, now scalar.Time, replaced *margin.Exposure) margin.Standing {
	total := margin.Standing{Balance: a.balance.Wide(), Pending: a.pending.Wide()}
	seen := false
	for _, h := range a.positions {
		_, funding, settled := h.afterCharges()
		total.Balance = total.Balance.Add(funding.Wide()).Add(settled.Wide())
		if replaced != nil && replaced.Contract.Symbol == h.instrument.contract.Symbol {
			total.Add(*replaced)
			seen = true
			continue
		}
		e := h.exposure()
		if now != 0 {
			bids, asks := s.overdue(h, now)
			e.Bids, e.Asks = e.Bids.Sub(bids), e.Asks.Sub(asks)
		}
		total.Add(e)
	}
	if replaced != nil && !seen {
		total.Add(*replaced)
	}
	return total
}

// equity returns an account's balance plus unrealized profit at mark, as if the account had posted all its unpaid charges.
func (a *account) equity() fixed.Wide {
	equity := a.balance.Wide()
	for _, h := range a.positions {
		if h.size != 0 {
			_, unrealized := h.exposure().Worth()
			_, funding, settled := h.afterCharges()
			equity = equity.Add(unrealized.Wide()).Add(funding.Wide()).Add(settled.Wide())
		}
	}
	return equity
}

// overdue returns the reserves of the position's orders that have expired but that no step has closed yet. It looks
// through all expired orders or through the position's orders, the fewer of the two: there may be very many of either.
func (s *State) overdue(h *position, now scalar.Time) (bids, asks fixed.Money) {
	if !s.anyOverdue(now) {
		return 0, 0
	}
	add := func(o *resting) {
		if o.Value.position == h && isOverdue(o, now) {
			b, a := reserve(o)
			bids, asks = bids.Add(b), asks.Add(a)
		}
	}
	if s.eachOverdue(now, h.orders.length, add) {
		return bids, asks
	}
	bids, asks = 0, 0
	for o := h.orders.first; o != nil; o = o.Value.inPosition.after {
		add(o)
	}
	return bids, asks
}

// anyOverdue reports whether there may be an expired order that is still live.
func (s *State) anyOverdue(now scalar.Time) bool {
	first, ok := s.due.expiries.Next()
	return ok && first <= now || len(s.aside) > 0
}

// eachOverdue calls take with the live orders that have expired. It stops and returns false if there are more than most
// on the due list.
func (s *State) eachOverdue(now scalar.Time, most int, take func(*resting)) bool {
	for _, e := range s.aside {
		if e.Kind == dueExpiry {
			take(e.order)
		}
	}
	return s.due.expiries.EachDue(now, most, func(e *dueEntry) { take(e.order) })
}

// isOverdue reports whether the order's expiry time has passed.
func isOverdue(o *resting, now scalar.Time) bool {
	return o.Value.due != nil && o.Value.due.Time <= now
}

// reserve returns the notional that a resting order adds to the position's bids or asks.
func reserve(o *resting) (bids, asks fixed.Money) {
	if o.Value.reduceOnly || !o.Resting() {
		return 0, 0
	}
	notional := o.Value.position.instrument.contract.MustNotional(o.Price, o.Remaining)
	if o.Side == 0 {
		return notional, 0
	}
	return 0, notional
}

// Summary is an account's margin. Sums beyond the range of fixed.Money, 92 billion, are shown as the largest Money;
// decisions use the exact sums.
type Summary struct {
	CustomerCode      string
	Currency          string
	Balance           fixed.Money
	TotalEquity       fixed.Money
	UnrealizedPnL     fixed.Money
	UsedMargin        fixed.Money
	OrderMargin       fixed.Money
	MaintenanceMargin fixed.Money
	AvailableMargin   fixed.Money
	Withdrawable      fixed.Money
	PendingWithdrawal fixed.Money
	MarginRatio       fixed.Decimal // 4 decimals
	RiskState         margin.RiskState
	Updated           scalar.Time
}

// Standing is what Summary computes with: a copy of an account's part of the state, for readers that summarize very many accounts
// and must not hold the state's lock for that long.
type Standing struct {
	Code, Broker string

	margin       margin.Standing
	balance      fixed.Money
	pending      fixed.Money
	unsettled    fixed.Wide // settlement profit that is not posted to the balance yet
	updated      scalar.Time
	deleveraging bool
}

// Summary returns a customer's margin in USDC.
func (s *State) Summary(customer string) (Summary, bool) {
	a := s.accounts[customer]
	if a == nil {
		return Summary{}, false
	}
	standing := s.standingOf(a)
	return standing.Summary(), true
}

// AppendInMargin appends the standings of all accounts that need margin or have negative equity to a slice, in the order of
// registration.
func (s *State) AppendInMargin(to []Standing) []Standing {
	for _, a := range s.registered {
		if len(a.positions) == 0 && a.balance >= 0 {
			continue
		}
		if standing := s.standingOf(a); standing.margin.Maintenance.Sign() != 0 || standing.margin.Lacks() {
			to = append(to, standing)
		}
	}
	return to
}

func (s *State) standingOf(a *account) Standing {
	out := Standing{Code: a.code, Broker: a.broker, margin: s.standing(a, 0, nil), balance: a.balance, pending: a.pending, updated: a.updated,
		deleveraging: a.deleveraging != nil}
	for _, h := range a.positions {
		_, _, settled := h.afterCharges()
		out.unsettled = out.unsettled.Add(settled.Wide())
	}
	return out
}

// Summary returns the account's margin in USDC. Settlement profit that is not posted yet counts as unrealized.
func (t *Standing) Summary() Summary {
	m, risk := t.margin, t.margin.Risk()
	if risk == margin.Liquidation && t.deleveraging {
		risk = margin.AutoDeleveraging
	}
	return Summary{CustomerCode: t.Code, Currency: currency, Balance: t.balance, TotalEquity: m.Equity().Capped(),
		UnrealizedPnL: m.Unrealized.Add(t.unsettled).Capped(), UsedMargin: m.Used.Capped(),
		OrderMargin:       m.Initial.Sub(m.Used).Add(m.Fees).Capped(),
		MaintenanceMargin: m.Maintenance.Capped(), AvailableMargin: m.Available().Capped(), Withdrawable: m.Withdrawable(),
		PendingWithdrawal: t.pending, MarginRatio: m.Ratio(), RiskState: risk, Updated: t.updated}
}

// Position is a customer's open position.
type Position struct {
	CustomerCode      string
	Symbol            string
	Amount            fixed.Decimal // signed
	EntryPrice        fixed.Decimal
	MarkPrice         fixed.Decimal
	Notional          fixed.Money // at mark, absolute, rounded down
	UnrealizedPnL     fixed.Money
	InitialMargin     fixed.Money
	MaintenanceMargin fixed.Money
	Leverage          int // the leverage that the requirement in force permits
	// LiquidationPrice is the first price on the tick, away from mark, at which the account's equity would be below its
	// maintenance margin if only this instrument's mark moved: the mark if it is below already, zero if no such price
	// exists.
	LiquidationPrice fixed.Decimal
	Cost             fixed.Money
	Updated          scalar.Time
}

// Positions returns the open positions of a customer or of the insurance fund, in the order of listing of their
// instruments.
func (s *State) Positions(customer string) []Position {
	out := []Position{}
	a := s.holder(customer)
	if a == nil {
		return out
	}
	for _, h := range a.positions {
		if h.size != 0 {
			out = append(out, s.position(h))
		}
	}
	return out
}

// Position returns the position of a customer or of the insurance fund on one instrument, open or not. It returns false
// for an unknown customer or instrument.
func (s *State) Position(customer, symbol string) (Position, bool) {
	a, i := s.holder(customer), s.instruments[symbol]
	if a == nil || i == nil {
		return Position{}, false
	}
	return s.position(a.on(i)), true
}

func (s *State) position(h *position) Position {
	c, e := h.instrument.contract, h.exposure()
	r := e.Requirements()
	_, _, unsettled := h.afterCharges()
	p := Position{CustomerCode: h.account.code, Symbol: c.Symbol, Amount: c.Amount(h.size),
		EntryPrice: c.AveragePrice(h.cost, h.size), Notional: r.Notional, UnrealizedPnL: r.Unrealized.Add(unsettled),
		InitialMargin: r.Used, MaintenanceMargin: r.Maintenance, Leverage: leverageOf(h.rateInForce()), Cost: h.cost, Updated: h.updated}
	if h.instrument.mark != 0 {
		p.MarkPrice = c.MarkPrice(h.instrument.mark)
	}
	if !h.account.isFund() {
		p.LiquidationPrice = margin.LiquidationPrice(s.standing(h.account, 0, nil), e)
	}
	return p
}

// rateInForce returns the initial margin rate: the override's or the account's default, but at least the instrument's.
func (h *position) rateInForce() fixed.Rate { return h.instrument.contract.InitialRate(h.floor()) }

// leverageOf returns the leverage that a margin rate permits, rounded down to a whole number.
func leverageOf(r fixed.Rate) int { return int(r.Den / r.Num) }
