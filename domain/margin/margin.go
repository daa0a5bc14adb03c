// Package margin computes the margin of cross-margined accounts: equity, initial and maintenance margin, the margin
// that is available for new orders and for withdrawal, and the liquidation price of a position.
//
// For one instrument with position size s, mark price m and contract size c, and with the notional BN of resting buys
// and SN of resting sells that are not reduce-only, the requirement is
//
//	IR = rate(X) × X, X = max(|s·m·c + BN|, |s·m·c − SN|)
//
// It is rounded up to 10⁻⁸; unrealized profit is rounded down. Amounts are in units of 10⁻⁸ USDC.
package margin

import (
	"math"
	"math/big"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// Exposure holds the inputs of an account's margin on one instrument.
type Exposure struct {
	Contract *market.Contract
	Mark     int64 // marks; 0 if there is no mark price yet, and then there are no positions
	Size     int64 // steps, signed
	Cost     fixed.Money
	Bids     fixed.Money // BN
	Asks     fixed.Money // SN
	// Floor is the least initial rate: that of the account's override on the instrument, or the account's default.
	Floor            fixed.Rate
	MaintenanceFloor fixed.Rate
	TakerFee         int64 // parts of 10⁸ of the notional
}

// Requirements is the margin for one exposure.
type Requirements struct {
	Notional    fixed.Money // of the position at mark, rounded down
	Unrealized  fixed.Money
	Used        fixed.Money // initial margin of the position alone
	Initial     fixed.Money // IR: initial margin of the position and the resting orders
	Maintenance fixed.Money
	Fees        fixed.Money // taker fees on the notional of resting orders
}

// Requirements computes the margin for the exposure.
func (e Exposure) Requirements() Requirements {
	var r Requirements
	c := e.Contract
	value := c.Value(e.Size, e.Mark)
	bids, asks := fixed.Mul(int64(e.Bids), c.MarkDen), fixed.Mul(int64(e.Asks), c.MarkDen)
	most := value.Add(bids).Abs()
	if short := value.Sub(asks).Abs(); short.Cmp(most) > 0 {
		most = short
	}
	r.Initial = c.Initial(most, e.Floor)
	if e.Size != 0 {
		r.Notional, r.Unrealized, r.Maintenance = e.Health()
		r.Used = c.Initial(value.Abs(), e.Floor)
	}
	if rests := e.Bids.Add(e.Asks); rests != 0 {
		r.Fees = Fee(rests, e.TakerFee)
	}
	return r
}

// Health returns the figures that decide liquidation: notional, unrealized profit and maintenance margin, as in
// Requirements.
func (e Exposure) Health() (notional, unrealized, maintenance fixed.Money) {
	notional, unrealized = e.Worth()
	return notional, unrealized, e.Contract.Maintenance(e.Contract.Value(e.Size, e.Mark).Abs(), e.MaintenanceFloor)
}

// Worth returns the exposure's notional and unrealized profit.
func (e Exposure) Worth() (notional, unrealized fixed.Money) {
	c := e.Contract
	value := c.Value(e.Size, e.Mark)
	return must(value.Abs().Div(c.MarkDen, fixed.Down)), must(value.Div(c.MarkDen, fixed.Floor)).Sub(e.Cost)
}

func must(w fixed.Wide) fixed.Money {
	m, ok := w.Money()
	if !ok {
		panic("margin: a value does not fit")
	}
	return m
}

// Fee returns a fee of parts of 10⁸ of a notional. A fee is rounded away from zero, and a rebate, which is negative,
// toward zero.
func Fee(notional fixed.Money, parts int64) fixed.Money {
	rounding := fixed.Up
	if parts < 0 {
		rounding = fixed.Down
	}
	return must(fixed.Mul(int64(notional), parts).Div(1e8, rounding))
}

// Standing is an account's margin, summed over its instruments with Add. The sums are fixed.Wide: the figures of each
// instrument fit fixed.Money, but the sums over all instruments may not.
type Standing struct {
	Balance     fixed.Wide
	Pending     fixed.Wide // withdrawals requested and not yet paid out
	Unrealized  fixed.Wide
	Used        fixed.Wide
	Initial     fixed.Wide // ΣIR
	Maintenance fixed.Wide
	Fees        fixed.Wide
}

// Add adds the margin of an exposure.
func (s *Standing) Add(e Exposure) {
	r := e.Requirements()
	s.Unrealized = s.Unrealized.Add(r.Unrealized.Wide())
	s.Used = s.Used.Add(r.Used.Wide())
	s.Initial = s.Initial.Add(r.Initial.Wide())
	s.Maintenance = s.Maintenance.Add(r.Maintenance.Wide())
	s.Fees = s.Fees.Add(r.Fees.Wide())
}

// Equity returns the balance plus the unrealized profit at mark.
func (s Standing) Equity() fixed.Wide { return s.Balance.Add(s.Unrealized) }

// Reserved returns the margin of positions and resting orders: ΣIR plus the fees that the orders would pay.
func (s Standing) Reserved() fixed.Wide { return s.Initial.Add(s.Fees) }

// Available returns the margin for new orders. It is negative if prices moved against the account.
func (s Standing) Available() fixed.Wide { return s.Equity().Sub(s.Reserved()).Sub(s.Pending) }

// Withdrawable returns the amount that may be paid out.
func (s Standing) Withdrawable() fixed.Money {
	return max(0, min(s.Balance.Sub(s.Pending).Capped(), s.Available().Capped()))
}

// Lacks reports whether the equity is below the maintenance margin.
func (s Standing) Lacks() bool { return s.Equity().Cmp(s.Maintenance) < 0 }

// RiskState says how near an account is to liquidation.
type RiskState string

// The risk states.
const (
	Normal           RiskState = "normal"
	MarginCall       RiskState = "margin_call" // from a margin ratio of 0.8
	Liquidation      RiskState = "liquidation" // equity below maintenance margin
	AutoDeleveraging RiskState = "auto_deleveraging"
)

// worstRatio replaces a margin ratio that is undefined, because the equity is not positive, or that is larger than
// this.
var worstRatio = fixed.Decimal{Coef: 99_999_999, Scale: 4}

// Ratio returns maintenance margin ÷ equity with 4 decimals, rounded up.
func (s Standing) Ratio() fixed.Decimal {
	equity := s.Equity()
	switch {
	case s.Maintenance.Sign() == 0 && equity.Sign() >= 0:
		return fixed.Decimal{Coef: 0, Scale: 4}
	case equity.Sign() <= 0:
		return worstRatio
	}
	over, fits := equity.Int64()
	if !fits {
		return s.hugeRatio(equity)
	}
	n, ok := s.Maintenance.Mul(10_000).Div(over, fixed.Ceiling).Int64()
	if !ok || n > worstRatio.Coef {
		return worstRatio
	}
	return fixed.Decimal{Coef: n, Scale: 4}
}

// hugeRatio is Ratio for an equity that does not fit int64.
func (s Standing) hugeRatio(equity fixed.Wide) fixed.Decimal {
	n, rest := new(big.Int).Mul(s.Maintenance.Big(), big.NewInt(10_000)), new(big.Int)
	if n.QuoRem(n, equity.Big(), rest); rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	if n.Cmp(big.NewInt(worstRatio.Coef)) > 0 {
		return worstRatio
	}
	return fixed.Decimal{Coef: n.Int64(), Scale: 4}
}

// Risk returns the account's risk state.
func (s Standing) Risk() RiskState {
	switch {
	case s.Lacks(): // may be without a position, if the balance is negative
		return Liquidation
	case s.Maintenance.Sign() == 0:
		return Normal
	case s.Maintenance.Mul(10).Cmp(s.Equity().Mul(8)) >= 0:
		return MarginCall
	}
	return Normal
}

// LiquidationPrice returns the first price on the tick, going from mark in the position's losing direction, at which
// the account's equity would be below its maintenance margin if only this instrument's mark moved. It returns the mark
// for an account that is already below, and zero if no valid price of the instrument would do that.
//
// Equity less maintenance margin falls monotonically as the price gets worse, for any brackets (no rate is above
// 100 %), so a binary search finds the price.
func LiquidationPrice(account Standing, e Exposure) fixed.Decimal {
	c := e.Contract
	switch {
	case e.Size == 0 || e.Mark == 0:
		return fixed.Decimal{}
	case account.Lacks():
		return c.MarkPrice(e.Mark)
	}
	// safe is the tick at the mark or next to it on the winning side, where the account is not below. lost is the last
	// valid price.
	safe, lost := c.MarkTicks(e.Mark, fixed.Ceiling), int64(1)
	if e.Size < 0 {
		safe, lost = c.MarkTicks(e.Mark, fixed.Floor), dearest(e)
	}
	below := e.belowAt(account)
	if !below(lost) {
		return fixed.Decimal{}
	}
	for {
		middle := safe + (lost-safe)/2
		switch {
		case middle == safe: // safe and lost are neighbors
			return c.Price(lost)
		case below(middle):
			lost = middle
		default:
			safe = middle
		}
	}
}

// belowAt returns a function that reports whether the equity would be below the maintenance margin at a price in ticks.
func (e Exposure) belowAt(account Standing) func(ticks int64) bool {
	now := e.Requirements()
	equity := account.Equity().Sub(now.Unrealized.Wide()).Sub(e.Cost.Wide())
	maintenance := account.Maintenance.Sub(now.Maintenance.Wide())
	return func(ticks int64) bool {
		value := e.Contract.Value(e.Size, e.Contract.TickMarks(ticks))
		worth, countable := value.Div(e.Contract.MarkDen, fixed.Floor).Money()
		if !countable { // a short position worth more than any account can have
			return true
		}
		left := equity.Add(worth.Wide())
		needs := maintenance.Add(e.Contract.Maintenance(value.Abs(), e.MaintenanceFloor).Wide())
		return left.Cmp(needs) < 0
	}
}

// dearest returns the highest valid price of the instrument in ticks or, if that is lower, a price at which the
// position's value exceeds int64.
func dearest(e Exposure) int64 {
	tick, ok := fixed.MulInt64(fixed.Abs(e.Size), e.Contract.Unit) // change of the position's value per tick
	if !ok {
		tick = math.MaxInt64
	}
	return min(e.Contract.HighestTicks(), math.MaxInt64/tick+1)
}
