// Package margin computes what a cross-margined account has and needs: equity, initial and maintenance margin, what
// is available for new orders and for withdrawal, and where a position would be liquidated.
//
// For one instrument with position size s, mark price m, contract size c, and with BN and SN the notional of resting
// buys and sells that are not reduce-only, the requirement is
//
//	IR = rate(X) × X, X = max(|s·m·c + BN|, |s·m·c − SN|)
//
// rounded up to 10⁻⁸; unrealised profit is rounded down. Amounts are in units of 10⁻⁸ USDC.
package margin

import (
	"math"
	"math/big"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// Exposure is what an account has at stake on one instrument.
type Exposure struct {
	Contract *market.Contract
	Mark     int64 // marks; 0 if there is no mark price yet, and then no position either
	Size     int64 // steps, signed
	Cost     fixed.Money
	Bids     fixed.Money // BN
	Asks     fixed.Money // SN
	// Floor is the least initial rate: of the account's override on the instrument, or its default.
	Floor            fixed.Rate
	MaintenanceFloor fixed.Rate
	TakerFee         int64 // parts of 10⁸ of the notional
}

// Requirements are what one exposure comes to.
type Requirements struct {
	Notional    fixed.Money // of the position at mark, rounded down
	Unrealised  fixed.Money
	Used        fixed.Money // initial margin of the position alone
	Initial     fixed.Money // IR: of the position and the resting orders
	Maintenance fixed.Money
	Fees        fixed.Money // taker fees on what rests
}

// Requirements computes what the exposure comes to.
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
		r.Notional, r.Unrealised, r.Maintenance = e.Health()
		r.Used = c.Initial(value.Abs(), e.Floor)
	}
	if rests := e.Bids.Add(e.Asks); rests != 0 {
		r.Fees = Fee(rests, e.TakerFee)
	}
	return r
}

// Health returns what liquidation is about: the exposure's notional, unrealised profit and maintenance margin, as
// Requirements has them.
func (e Exposure) Health() (notional, unrealised, maintenance fixed.Money) {
	notional, unrealised = e.Worth()
	return notional, unrealised, e.Contract.Maintenance(e.Contract.Value(e.Size, e.Mark).Abs(), e.MaintenanceFloor)
}

// Worth returns the exposure's notional and unrealised profit.
func (e Exposure) Worth() (notional, unrealised fixed.Money) {
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

// Fee returns a fee of so many parts of 10⁸ on a notional: away from zero when it is paid, toward zero when it is a
// rebate (negative).
func Fee(notional fixed.Money, parts int64) fixed.Money {
	rounding := fixed.Up
	if parts < 0 {
		rounding = fixed.Down
	}
	return must(fixed.Mul(int64(notional), parts).Div(1e8, rounding))
}

// Standing is an account's state of margin, summed over its instruments with Add. The sums are wide: each instrument's part
// is money, but not what an account may have on all of them.
type Standing struct {
	Balance     fixed.Wide
	Pending     fixed.Wide // withdrawals that are requested and not paid out
	Unrealised  fixed.Wide
	Used        fixed.Wide
	Initial     fixed.Wide // ΣIR
	Maintenance fixed.Wide
	Fees        fixed.Wide
}

// Add takes an exposure into account.
func (s *Standing) Add(e Exposure) {
	r := e.Requirements()
	s.Unrealised = s.Unrealised.Add(r.Unrealised.Wide())
	s.Used = s.Used.Add(r.Used.Wide())
	s.Initial = s.Initial.Add(r.Initial.Wide())
	s.Maintenance = s.Maintenance.Add(r.Maintenance.Wide())
	s.Fees = s.Fees.Add(r.Fees.Wide())
}

// Equity is the balance and the unrealised profit at mark.
func (s Standing) Equity() fixed.Wide { return s.Balance.Add(s.Unrealised) }

// Reserved is what positions and resting orders need: ΣIR and the fees that the orders would pay.
func (s Standing) Reserved() fixed.Wide { return s.Initial.Add(s.Fees) }

// Available is what new orders may need; negative if prices moved against the account.
func (s Standing) Available() fixed.Wide { return s.Equity().Sub(s.Reserved()).Sub(s.Pending) }

// Withdrawable is what may be paid out.
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

// worstRatio stands for a margin ratio that has no number, since there is no equity, or one beyond any use.
var worstRatio = fixed.Decimal{Coef: 99_999_999, Scale: 4}

// Ratio is maintenance margin ÷ equity with 4 decimals, rounded up.
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

// hugeRatio is Ratio for an equity that is more than money can be.
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

// Risk classifies the account.
func (s Standing) Risk() RiskState {
	switch {
	case s.Lacks(): // also without a position: it owes more than it has
		return Liquidation
	case s.Maintenance.Sign() == 0:
		return Normal
	case s.Maintenance.Mul(10).Cmp(s.Equity().Mul(8)) >= 0:
		return MarginCall
	}
	return Normal
}

// LiquidationPrice returns the first price on the tick, from mark away in the position's bad direction, at which the
// account's equity would be below its maintenance margin if only this instrument's mark moved. It is the mark for an
// account that is below already, and zero if no price that an instrument can have would do that.
//
// Equity less maintenance falls without interruption as the price gets worse, whatever the brackets (no rate is above
// 100 %), so that the price is found by halving.
func LiquidationPrice(account Standing, e Exposure) fixed.Decimal {
	c := e.Contract
	switch {
	case e.Size == 0 || e.Mark == 0:
		return fixed.Decimal{}
	case account.Lacks():
		return c.MarkPrice(e.Mark)
	}
	// safe is the tick at the mark or just on its good side, where the account is not below; lost is the last price there is.
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
		case middle == safe: // they are neighbours
			return c.Price(lost)
		case below(middle):
			lost = middle
		default:
			safe = middle
		}
	}
}

// belowAt returns whether the account's equity would be below its maintenance margin at a price in ticks.
func (e Exposure) belowAt(account Standing) func(ticks int64) bool {
	now := e.Requirements()
	equity := account.Equity().Sub(now.Unrealised.Wide()).Sub(e.Cost.Wide())
	maintenance := account.Maintenance.Sub(now.Maintenance.Wide())
	return func(ticks int64) bool {
		value := e.Contract.Value(e.Size, e.Contract.TickMarks(ticks))
		worth, countable := value.Div(e.Contract.MarkDen, fixed.Floor).Money()
		if !countable { // a short that is worth more than any account can have
			return true
		}
		left := equity.Add(worth.Wide())
		needs := maintenance.Add(e.Contract.Maintenance(value.Abs(), e.MaintenanceFloor).Wide())
		return left.Cmp(needs) < 0
	}
}

// dearest returns the highest price in ticks that the instrument can have or, if that is lower, one at which the
// position is worth more than can be counted.
func dearest(e Exposure) int64 {
	tick, ok := fixed.MulInt64(fixed.Abs(e.Size), e.Contract.Unit) // what the position changes by with each tick
	if !ok {
		tick = math.MaxInt64
	}
	return min(e.Contract.HighestTicks(), math.MaxInt64/tick+1)
}
