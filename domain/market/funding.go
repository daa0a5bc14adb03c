package market

import (
	"math/big"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// What funding is computed with. Rates are counted in parts of 10⁸, premiums in parts of 10¹².
const (
	// RateUnit is a funding rate of 1, that is of 100 %.
	RateUnit = 100_000_000
	// impactNotional is what an impact price is the average price of.
	impactNotional = 10_000 * fixed.Unit
	premiumDigits  = 12
	// mostPremium bounds what a sample may say: a million times the index.
	mostPremium = 999_999_999_999_999_999
	// The interest of the rate's period, how far the rate may lie from the premium, and the period in seconds.
	interest      = 10_000 // 0.01 %
	mostFromThere = 50_000 // 0.05 %
	ratePeriod    = 28_800
)

// Impact walks one side of a book, from its best price, for what 10,000 USDC would trade: whole levels, and the last in
// part. Their average price is the impact price.
type Impact struct {
	contract *Contract
	left     fixed.Money // of the 10,000 USDC
	steps    int64       // in levels taken whole
	ticks    int64       // the price of the last level
	full     bool
}

// Impact begins a walk.
func (c *Contract) Impact() *Impact { return &Impact{contract: c, left: impactNotional} }

// Take takes the next level, and reports whether it is the last one that is needed.
func (w *Impact) Take(ticks, steps int64) bool {
	w.ticks = ticks
	n, fits := w.contract.Notional(ticks, steps)
	if fits && n < w.left {
		w.left = w.left.Sub(n)
		w.steps += steps
		return false
	}
	w.full = true
	return true
}

// price returns the impact price in units of 10^-fineScale.
//
// The levels taken whole hold S steps, and the last one adds L ÷ (t × Unit) of them, with L what is left and t its price.
// So 10,000 USDC ÷ all steps ÷ Unit is the average price in ticks: 10,000 × t ÷ (S × t × Unit + L).
func (w *Impact) price() *big.Rat {
	c, ticks := w.contract, big.NewInt(w.ticks)
	worth := new(big.Int).Mul(big.NewInt(int64(impactNotional)), ticks)
	steps := new(big.Int).Mul(new(big.Int).Mul(big.NewInt(w.steps), ticks), big.NewInt(c.Unit))
	price := new(big.Rat).SetFrac(worth, steps.Add(steps, big.NewInt(int64(w.left))))
	return price.Mul(price, new(big.Rat).SetInt64(c.fineTick()))
}

// Premium returns how far the book stands from an index price, as a part of it with 12 decimals, half to even: above zero
// where 10,000 USDC sell dearer than the index, below where they buy cheaper. It returns false where a side of the book is
// worth less.
func (c *Contract) Premium(index int64, bids, asks *Impact) (fixed.Decimal, bool) {
	if !bids.full || !asks.full {
		return fixed.Decimal{}, false
	}
	at := new(big.Rat).SetInt(c.fine(index))
	premium := new(big.Rat)
	if above := new(big.Rat).Sub(bids.price(), at); above.Sign() > 0 {
		premium.Add(premium, above)
	}
	if below := new(big.Rat).Sub(at, asks.price()); below.Sign() > 0 {
		premium.Sub(premium, below)
	}
	premium.Quo(premium, at)
	n := nearest(premium, premiumDigits)
	if !n.IsInt64() || n.Int64() > mostPremium {
		n.SetInt64(mostPremium)
	}
	return fixed.Decimal{Coef: n.Int64(), Scale: premiumDigits}, true
}

// nearest returns r × 10^digits, half to even.
func nearest(r *big.Rat, digits int) *big.Int {
	n := new(big.Int).Mul(r.Num(), big.NewInt(fixed.Pow10(digits)))
	return quotient(n, r.Denom(), fixed.HalfEven)
}

// Premiums are the samples of an interval.
type Premiums struct {
	Sum   fixed.Wide // in parts of 10¹²
	Count int64
}

// Add takes a sample over.
func (p *Premiums) Add(premium fixed.Decimal) {
	parts, _ := premium.In(premiumDigits)
	p.Sum = p.Sum.Add(fixed.WideOf(parts))
	p.Count++
}

// Pack writes the samples.
func (p *Premiums) Pack(to *pack.Writer) {
	hi, lo := p.Sum.Words()
	to.Int(hi)
	to.Uint(lo)
	to.Int(p.Count)
}

// Unpack reads samples.
func (p *Premiums) Unpack(from *pack.Reader) {
	hi := from.Int()
	p.Sum, p.Count = fixed.WideFrom(hi, from.Uint()), from.Int()
}

// FundingRate returns the rate that an interval's samples come to, in parts of 10⁸ for the interval, half to even: what
// longs pay to shorts of what their positions are worth, or shorts to longs where it is negative. With P the average
// premium it is
//
//	(P + clamp(0.01 % − P, ±0.05 %)) × interval ÷ 8 hours
//
// and no further from zero than 0.75 × (initial − maintenance margin) of the first bracket. Without samples it is 0.
func (c *Contract) FundingRate(p Premiums) int64 {
	if p.Count == 0 {
		return 0
	}
	rate := new(big.Rat).SetFrac(p.Sum.Big(), new(big.Int).Mul(big.NewInt(p.Count), big.NewInt(fixed.Pow10(premiumDigits))))
	towards := new(big.Rat).Sub(big.NewRat(interest, RateUnit), rate)
	rate.Add(rate, within(towards, big.NewRat(mostFromThere, RateUnit)))
	rate.Mul(rate, big.NewRat(int64(c.FundingIntervalSeconds), ratePeriod))
	room := c.brackets[0].initial - c.brackets[0].maint
	return nearest(within(rate, big.NewRat(3*room, 4*parts)), 8).Int64()
}

// within returns r, or the bound that it is beyond, above or below zero.
func within(r, bound *big.Rat) *big.Rat {
	if r.Cmp(bound) > 0 {
		return bound
	}
	if below := new(big.Rat).Neg(bound); r.Cmp(below) < 0 {
		return below
	}
	return r
}

// Rate returns a funding rate in parts of 10⁸ as a decimal, of 8 decimals.
func Rate(rate int64) fixed.Decimal { return fixed.Decimal{Coef: rate, Scale: 8} }

// Funding returns what a position of signed steps is credited at a funding instant with a mark price in marks and a rate
// in parts of 10⁸: what is paid, which is negative, is rounded away from zero, what is received toward zero.
func (c *Contract) Funding(steps, marks, rate int64) fixed.Money {
	amount, ok := c.Value(steps, marks).Mul(rate).Neg().Div(RateUnit, fixed.Floor).Div(c.MarkDen, fixed.Floor).Money()
	if !ok {
		panic("market: a funding payment does not fit")
	}
	return amount
}

// NextFunding returns the first funding instant after a time: instants are multiples of the interval since midnight UTC.
func NextFunding(after scalar.Time, intervalSeconds int) scalar.Time {
	interval, today := scalar.Time(intervalSeconds)*scalar.Second, after-after%scalar.Day
	// An interval that does not divide a day, of an instrument from before that was asked for, begins anew at midnight.
	return min(today+((after-today)/interval+1)*interval, today+scalar.Day)
}

// settlementHour is when positions are settled, after midnight UTC.
const settlementHour = 8 * scalar.Hour

// NextSettlement returns the first time of daily settlement after a time.
func NextSettlement(after scalar.Time) scalar.Time {
	if today := after - after%scalar.Day + settlementHour; today > after {
		return today
	}
	return after - after%scalar.Day + settlementHour + scalar.Day
}
