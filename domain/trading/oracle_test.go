package trading

import (
	"math/big"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// The margin rule once more, as the interface's document tells it, from what the interface shows, in fractions: what
// the engine keeps and how it counts is not looked at.

// fraction is a decimal as an exact fraction.
func fraction(d fixed.Decimal) *big.Rat {
	return new(big.Rat).SetFrac(big.NewInt(d.Coef), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.Scale)), nil))
}

func ratio(a, b int64) *big.Rat { return big.NewRat(a, b) }

func times(a *big.Rat, more ...*big.Rat) *big.Rat {
	product := new(big.Rat).Set(a)
	for _, b := range more {
		product.Mul(product, b)
	}
	return product
}

// floor rounds down to 10⁻⁸, ceiling up.
func floor(r *big.Rat) fixed.Money {
	units := times(r, ratio(1e8, 1))
	quotient, remainder := new(big.Int).QuoRem(units.Num(), units.Denom(), new(big.Int))
	if remainder.Sign() < 0 {
		quotient.Sub(quotient, big.NewInt(1))
	}
	return fixed.Money(quotient.Int64())
}

func ceiling(r *big.Rat) fixed.Money { return -floor(new(big.Rat).Neg(r)) }

// required is rate(X) × X: each tier's rate on the part of X inside it, but no rate below the least.
func required(tiers []market.Tier, initial bool, x, least *big.Rat) fixed.Money {
	sum, from := new(big.Rat), new(big.Rat)
	for n, t := range tiers {
		percent := t.MaintMarginReq
		if initial {
			percent = t.InitMarginReq
		}
		rate := times(fraction(percent), ratio(1, 100))
		if rate.Cmp(least) < 0 {
			rate = least
		}
		to := x
		if n+1 < len(tiers) {
			if end := fraction(tiers[n+1].NotionalFrom.Decimal()); end.Cmp(x) < 0 {
				to = end
			}
		}
		sum.Add(sum, times(new(big.Rat).Sub(to, from), rate))
		from = to
	}
	return ceiling(sum)
}

// expected are an account's figures.
type expected struct {
	unrealized                                fixed.Wide // which may be more than money can be
	used, initial, maintenance, fees, pending fixed.Money
	funding, settlement                       fixed.Wide // what was fixed and is not posted
}

// owed is what a position will be credited for what was fixed since it posted last: funding, of which what is paid is
// rounded up and what is received down, and for settlement what the position is worth at the marks less its cost.
func owed(h *position) (funding, settlement fixed.Wide) {
	c := h.instrument.contract
	size, cost := times(fraction(c.Amount(h.size)), fraction(c.ContractSize)), fraction(h.cost.Decimal())
	for _, x := range h.instrument.charges {
		switch worth := times(size, fraction(c.MarkPrice(x.mark))); {
		case x.number <= h.posted || h.size == 0:
		case x.kind == fundingCharge:
			funding = funding.Add(floor(times(worth, ratio(-x.rate, 1e8))).Wide())
		default:
			settlement = settlement.Add(floor(new(big.Rat).Sub(worth, cost)).Wide())
			cost = worth
		}
	}
	return funding, settlement
}

// expect computes a customer's margin.
func expect(s *State, customer string) (sum expected) {
	a := s.accounts[customer]
	profile, _ := s.FeeProfile(customer)
	for _, i := range s.Instruments() {
		size, cost := new(big.Rat), new(big.Rat)
		for _, p := range s.Positions(customer) {
			if p.Symbol == i.Symbol {
				size, cost = fraction(p.Amount), fraction(p.Cost.Decimal())
			}
		}
		value := times(size, fraction(s.MarkPrice(i.Symbol)), fraction(i.ContractSize))
		buys, sells := new(big.Rat), new(big.Rat)
		for _, o := range s.OpenOrders(customer) {
			if o.Symbol != i.Symbol || o.ReduceOnly || !s.orders.Get(o.Code).Resting() {
				continue
			}
			notional := times(new(big.Rat).Sub(fraction(o.Amount), fraction(o.FilledAmount)), fraction(o.LimitPrice), fraction(i.ContractSize))
			if o.Action == order.Buy {
				buys.Add(buys, notional)
			} else {
				sells.Add(sells, notional)
			}
		}
		long, short := new(big.Rat).Add(value, buys), new(big.Rat).Sub(value, sells)
		x := long.Abs(long)
		if short.Abs(short).Cmp(x) > 0 {
			x = short
		}
		initial, maintenance := ratio(a.initial.Num, a.initial.Den), ratio(a.maintenance.Num, a.maintenance.Den)
		for _, h := range a.positions {
			if h.instrument.contract.Symbol == i.Symbol && h.leverage != 0 {
				initial = ratio(1, int64(h.leverage))
			}
		}
		taker := new(big.Rat)
		for _, f := range profile {
			if f.Symbol == i.Symbol {
				taker = times(fraction(f.TakerFee), ratio(1, 10_000))
			}
		}
		sum.unrealized = sum.unrealized.Add(floor(new(big.Rat).Sub(value, cost)).Wide())
		sum.initial += required(i.Tiers, true, x, initial)
		sum.used += required(i.Tiers, true, new(big.Rat).Abs(value), initial)
		sum.maintenance += required(i.Tiers, false, new(big.Rat).Abs(value), maintenance)
		sum.fees += ceiling(times(taker, new(big.Rat).Add(buys, sells)))
	}
	for _, h := range a.positions {
		funding, settlement := owed(h)
		sum.funding = sum.funding.Add(funding)
		sum.settlement = sum.settlement.Add(settlement)
	}
	for _, w := range s.withdrawals {
		if t := w.transaction; t.CustomerCode == customer && t.Status == ledger.Pending {
			sum.pending -= t.Amount
		}
	}
	return sum
}

// checkMargins holds every customer's summary against the rule.
func checkMargins(t fataler, s *State) {
	t.Helper()
	var inMargin []Summary
	for _, standing := range s.AppendInMargin(nil) {
		inMargin = append(inMargin, standing.Summary())
	}
	for _, c := range s.CustomersOf("") {
		got, _ := s.Summary(c.Code)
		if got.MaintenanceMargin != 0 || got.RiskState != margin.Normal {
			if len(inMargin) == 0 || inMargin[0] != got {
				t.Fatalf("%s has %+v, and not the next of %+v", c.Code, got, inMargin)
			}
			inMargin = inMargin[1:]
		}
		want := expect(s, c.Code)
		exact := want.unrealized.Add(got.Balance.Wide()).Add(want.funding)
		equity, available := exact.Capped(), exact.Sub((want.initial + want.fees + want.pending).Wide()).Capped()
		cash := got.Balance.Wide().Add(want.funding).Add(want.settlement).Sub(want.pending.Wide())
		for _, f := range []struct {
			name      string
			got, want fixed.Money
		}{
			{"unrealized", got.UnrealizedPnL, want.unrealized.Capped()}, {"equity", got.TotalEquity, equity}, {"used margin", got.UsedMargin, want.used},
			{"order margin", got.OrderMargin, want.initial - want.used + want.fees}, {"maintenance margin", got.MaintenanceMargin, want.maintenance},
			{"available", got.AvailableMargin, available}, {"withdrawable", got.Withdrawable, max(0, min(cash.Capped(), available))},
		} {
			if f.got != f.want {
				t.Fatalf("%s: %s is %s, the rule says %s", c.Code, f.name, f.got, f.want)
			}
		}
	}
	if len(inMargin) > 0 {
		t.Fatalf("%+v need no margin", inMargin)
	}
}

// checkAccepted holds an order that was accepted against the rule: what is available stays at or above zero, or what is
// reserved does not rise.
func checkAccepted(t fataler, s *State, customer string, before expected) {
	t.Helper()
	after := expect(s, customer)
	m, _ := s.Summary(customer)
	if m.AvailableMargin < 0 && after.initial+after.fees > before.initial+before.fees {
		t.Fatalf("%s: an order was accepted that leaves %s, and raises what is reserved from %s to %s", customer, m.AvailableMargin,
			before.initial+before.fees, after.initial+after.fees)
	}
}
