package market

import (
	"math/big"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The constants of funding. Rates are counted in parts of 10⁸, premiums in parts of 10¹².
const (
	// RateUnit is a funding rate of 1, which is 100 %.
	RateUnit = 100_000_000
	// impactNotional is the notional for which an impact price is the average price.
	impactNotional = 10_000 * fixed.Unit
	premiumDigits  = 12
	// mostPremium is the maximum of a sample: about a million times the index.
	mostPremium = 999_999_999_999_999_999
	// Interest per rate period, the maximum distance of the rate from the premium, and the rate period in seconds.
	interest      = 10_000 // 0.01 %
	mostFromThere = 50_000 // 0.05 %
	ratePeriod    = 28_800
)

// Impact walks one side of a book, from the best price, until the levels it took could trade 10,000 USDC. It takes
// levels whole, except the last one. Their average price is the impact price.
type Impact struct {
	contract *Contract
	left     fixed.Money // of the 10,000 USDC
	steps    int64       // in levels taken whole
	ticks    int64       // the price of the last level
	full     bool
}

// Impact starts a walk.
func (c *Contract) Impact() *Impact { return &Impact{contract: c, left: impactNotional} }

// Take takes the next level, and reports whether no further level is needed.
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
// The levels taken whole have S steps. The last level, at price t, adds L ÷ (t × Unit) steps, where L is the notional
// that is left. So 10,000 USDC ÷ all steps ÷ Unit is the average price in ticks: 10,000 × t ÷ (S × t × Unit + L).
func (w *Impact) price() *big.Rat {
	c, ticks := w.contract, big.NewInt(w.ticks)
	worth := new(big.Int).Mul(big.NewInt(int64(impactNotional)), ticks)
	steps := new(big.Int).Mul(new(big.Int).Mul(big.NewInt(w.steps), ticks), big.NewInt(c.Unit))
	price := new(big.Rat).SetFrac(worth, steps.Add(steps, big.NewInt(int64(w.left))))
	return price.Mul(price, new(big.Rat).SetInt64(c.fineTick()))
}

// Premium returns the distance of the book from an index price, as a fraction of the index price with 12 decimals,
// rounded half to even. It is positive if 10,000 USDC can be sold above the index, and negative if they can be bought
// below it. It returns false if either side of the book is worth less than 10,000 USDC.
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

// nearest returns r × 10^digits, rounded half to even.
func nearest(r *big.Rat, digits int) *big.Int {
	n := new(big.Int).Mul(r.Num(), big.NewInt(fixed.Pow10(digits)))
	return quotient(n, r.Denom(), fixed.HalfEven)
}

// Premiums sums up the samples of an interval.
type Premiums struct {
	Sum   fixed.Wide // in parts of 10¹²
	Count int64
}

// Add adds a sample.
func (p *Premiums) Add(premium fixed.Decimal) {
	parts, _ := premium.In(premiumDigits)
	p.Sum = p.Sum.Add(fixed.WideOf(parts))
	p.Count++
}

// Visit visits the sum and the number of samples.
func (p *Premiums) Visit(c *pack.Coder) {
	hi, lo := p.Sum.Words()
	pack.Int(c, &hi)
	c.Uint(&lo)
	if c.Reading() {
		p.Sum = fixed.WideFrom(hi, lo)
	}
	pack.Int(c, &p.Count)
}

// FundingRate returns the funding rate from an interval's samples, in parts of 10⁸ for the interval, rounded half to
// even. It is the fraction of their positions' value that longs pay to shorts or, if negative, shorts to longs. With P
// the average premium, the rate is
//
//	(P + clamp(0.01 % − P, ±0.05 %)) × interval ÷ 8 hours
//
// but at most 0.75 × (initial − maintenance margin) of the first bracket away from zero. Without samples it is 0.
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

// within returns r, limited to ±bound.
func within(r, bound *big.Rat) *big.Rat {
	if r.Cmp(bound) > 0 {
		return bound
	}
	if below := new(big.Rat).Neg(bound); r.Cmp(below) < 0 {
		return below
	}
	return r
}

// Rate converts a funding rate in parts of 10⁸ to a decimal with 8 decimals.
func Rate(rate int64) fixed.Decimal { return fixed.Decimal{Coef: rate, Scale: 8} }

// Funding returns the credit of a position of signed steps at a funding instant, with the mark price in marks and the
// rate in parts of 10⁸. A payment, which is negative, is rounded away from zero; a receipt is rounded toward zero.
func (c *Contract) Funding(steps, marks, rate int64) fixed.Money {
	amount, ok := c.Value(steps, marks).Mul(rate).Neg().Div(RateUnit, fixed.Floor).Div(c.MarkDen, fixed.Floor).Money()
	if !ok {
		panic("market: a funding payment does not fit")
	}
	return amount
}

// NextFunding returns the first funding instant after a time. Instants are multiples of the interval since midnight
// UTC.
func NextFunding(after scalar.Time, intervalSeconds int) scalar.Time {
	interval, today := scalar.Time(intervalSeconds)*scalar.Second, after-after%scalar.Day
	// Older instruments may have an interval that does not divide a day. It restarts at midnight.
	return min(today+((after-today)/interval+1)*interval, today+scalar.Day)
}

// settlementHour is the time of the daily settlement, after midnight UTC.
const settlementHour = 8 * scalar.Hour

// NextSettlement returns the first daily settlement after a time.
func NextSettlement(after scalar.Time) scalar.Time {
	if today := after - after%scalar.Day + settlementHour; today > after {
		return today
	}
	return after - after%scalar.Day + settlementHour + scalar.Day
}
