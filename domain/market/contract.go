package market

import (
	"math"
	"math/big"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// markDigits is the number of decimals that a price in marks has beyond the scale of the price tick.
const markDigits = 4

// parts is the denominator of margin rates, which are percentages with 4 decimals.
const parts = 1_000_000

// Contract is an instrument with its conversions between decimals and integers. It is immutable: a change of the
// instrument makes a new Contract.
type Contract struct {
	Instrument
	// Unit is the notional of one step at a price of one tick, in units of 10⁻⁸.
	Unit int64
	// MinSteps and MaxSteps limit an order's amount.
	MinSteps, MaxSteps int64
	// Maker and Taker are the default fees in parts of 10⁸ of the notional.
	Maker, Taker int64

	markScale uint8
	tickMarks int64 // marks per tick
	// One step at a price of one mark is worth markNum ÷ MarkDen units of 10⁻⁸.
	markNum int64
	// MarkDen is the denominator of values at mark: see Value.
	MarkDen  int64
	brackets []bracket
	band     fixed.Rate
	limit    fixed.Rate
}

// bracket is a tier with its rates in parts of a million.
type bracket struct {
	upTo           fixed.Money // zero for no end
	initial, maint int64
}

// NewContract returns the contract of an instrument that Check accepts. It may panic for any other instrument.
func NewContract(i Instrument) *Contract {
	i.Tiers = slices.Clone(i.Tiers) // the caller's slice may be shared
	c := &Contract{Instrument: i}
	tick, step, size := i.PriceTick.Trim(), i.AmountStep.Trim(), i.ContractSize.Trim()
	unit, ok := unitOf(tick, step, size)
	if !ok {
		panic("market: the notional of one step at one tick of " + i.Symbol + " is not a whole number of 10⁻⁸")
	}
	c.Unit = unit
	c.MinSteps, _ = c.Steps(i.MinAmount)
	c.MaxSteps, _ = c.Steps(i.MaxAmount)
	c.Maker, _ = FeeParts(i.MakerFee)
	c.Taker, _ = FeeParts(i.TakerFee)
	c.markScale = i.PriceTick.Scale + markDigits
	c.tickMarks = i.PriceTick.Coef * fixed.Pow10(markDigits)
	c.markNum, c.MarkDen = step.Coef*size.Coef, 1
	if exponent := 8 - int(step.Scale) - int(size.Scale) - int(c.markScale); exponent >= 0 {
		c.markNum *= fixed.Pow10(exponent)
	} else {
		c.MarkDen = fixed.Pow10(-exponent)
	}
	divisor := gcd(c.markNum, c.MarkDen)
	c.markNum /= divisor
	c.MarkDen /= divisor
	for n, t := range i.Tiers {
		b := bracket{}
		b.initial, _ = t.InitMarginReq.In(4)
		b.maint, _ = t.MaintMarginReq.In(4)
		if n+1 < len(i.Tiers) {
			b.upTo = i.Tiers[n+1].NotionalFrom
		}
		c.brackets = append(c.brackets, b)
	}
	c.band, c.limit = fixed.Percent(i.PriceBand), fixed.Percent(i.LimitBand)
	return c
}

// unitOf returns tick × step × contract size in units of 10⁻⁸, and false if that is not a whole number that fits.
func unitOf(tick, step, size fixed.Decimal) (int64, bool) {
	coef, ok := fixed.MulInt64(tick.Coef, step.Coef)
	if !ok {
		return 0, false
	}
	if coef, ok = fixed.MulInt64(coef, size.Coef); !ok {
		return 0, false
	}
	scale := int(tick.Scale) + int(step.Scale) + int(size.Scale)
	for ; scale > 8 && coef%10 == 0; scale-- {
		coef /= 10
	}
	if scale > 8 || coef <= 0 {
		return 0, false
	}
	return fixed.MulInt64(coef, fixed.Pow10(8-scale))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// FeeParts returns a fee in basis points as parts of 10⁸, and false if it has more than 4 decimals.
func FeeParts(basisPoints fixed.Decimal) (int64, bool) { return basisPoints.In(4) }

// FeePoints converts parts of 10⁸ to basis points, without trailing zeros.
func FeePoints(feeParts int64) fixed.Decimal { return fixed.Decimal{Coef: feeParts, Scale: 4}.Trim() }

// Ticks returns a price in ticks, and false if it is not a whole number of ticks.
func (c *Contract) Ticks(price fixed.Decimal) (int64, bool) { return count(price, c.PriceTick) }

// Steps returns an amount in steps, and false if it is not a whole number of steps.
func (c *Contract) Steps(amount fixed.Decimal) (int64, bool) { return count(amount, c.AmountStep) }

// count is Over with a fast path for values that the venue itself wrote.
func count(d, unit fixed.Decimal) (int64, bool) {
	if d.Scale == unit.Scale {
		if unit.Coef == 1 {
			return d.Coef, true
		}
		return d.Coef / unit.Coef, d.Coef%unit.Coef == 0
	}
	return d.Over(unit)
}

// Price returns the price of a number of ticks, with the decimals of the tick.
func (c *Contract) Price(ticks int64) fixed.Decimal {
	return fixed.Decimal{Coef: ticks * c.PriceTick.Coef, Scale: c.PriceTick.Scale}
}

// Amount returns the amount of a number of steps, with the decimals of the step.
func (c *Contract) Amount(steps int64) fixed.Decimal {
	return fixed.Decimal{Coef: steps * c.AmountStep.Coef, Scale: c.AmountStep.Scale}
}

// Marks returns a mark price in marks, and false if it is finer than a mark, not positive, or too large.
func (c *Contract) Marks(price fixed.Decimal) (int64, bool) {
	marks, ok := price.In(c.markScale)
	return marks, ok && marks > 0
}

// MarkPrice returns the price of a number of marks, with the decimals of the tick, or more if it needs them.
func (c *Contract) MarkPrice(marks int64) fixed.Decimal {
	return fixed.Decimal{Coef: marks, Scale: c.markScale}.Trim().AtLeast(c.PriceTick.Scale)
}

// Notional returns the exact notional of an amount at a price, and false if it does not fit.
func (c *Contract) Notional(ticks, steps int64) (fixed.Money, bool) {
	return fixed.Mul(ticks, steps).Mul(c.Unit).Money()
}

// MustNotional is Notional for values that were checked before. It panics if the notional does not fit.
func (c *Contract) MustNotional(ticks, steps int64) fixed.Money {
	n, ok := c.Notional(ticks, steps)
	if !ok {
		panic("market: a notional does not fit")
	}
	return n
}

// Value returns the exact value of a signed position at a mark price, in units of 10⁻⁸ ÷ MarkDen.
func (c *Contract) Value(steps, marks int64) fixed.Wide {
	return fixed.Mul(steps, marks).Mul(c.markNum)
}

// Worth returns the value of a signed position at a mark price, rounded down. It is exact for a mark on a tick.
func (c *Contract) Worth(steps, marks int64) fixed.Money {
	worth, ok := c.Value(steps, marks).Div(c.MarkDen, fixed.Floor).Money()
	if !ok {
		panic("market: what a position is worth does not fit")
	}
	return worth
}

// AveragePrice returns the notional per contract, rounded half to even at 8 decimals and printed with the decimals of
// the tick or more. It returns zero for zero steps.
func (c *Contract) AveragePrice(notional fixed.Money, steps int64) fixed.Decimal {
	if steps == 0 {
		return fixed.Decimal{}
	}
	step, size := c.AmountStep.Trim(), c.ContractSize.Trim()
	contracts, ok := fixed.MulInt64(steps, step.Coef*size.Coef)
	scaled := fixed.Mul(int64(notional), fixed.Pow10(int(step.Scale)+int(size.Scale)))
	if contracts < 0 {
		contracts, scaled = -contracts, scaled.Neg()
	}
	if !ok {
		return fixed.Decimal{}
	}
	coef, ok := scaled.Div(contracts, fixed.HalfEven).Int64()
	if !ok {
		return fixed.Decimal{}
	}
	return fixed.Decimal{Coef: coef, Scale: 8}.Trim().AtLeast(c.PriceTick.Scale)
}

// Cost returns the signed notional of signed steps at an average price, rounded half to even at 10⁻⁸. The price need not be on
// the tick, and has at most 8 decimals. Cost returns false if the price has more, or if the cost does not fit.
func (c *Contract) Cost(price fixed.Decimal, steps int64) (fixed.Money, bool) {
	units, ok := price.In(8)
	if !ok {
		return 0, false
	}
	step, size := c.AmountStep.Trim(), c.ContractSize.Trim()
	n := big.NewInt(steps)
	for _, factor := range [...]int64{units, step.Coef, size.Coef} {
		n.Mul(n, big.NewInt(factor))
	}
	d := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(step.Scale)+int64(size.Scale)), nil)
	rest := new(big.Int)
	n.DivMod(n, d, rest) // rounded down, with a rest of 0 or more
	if half := rest.Lsh(rest, 1).Cmp(d); half > 0 || half == 0 && n.Bit(0) == 1 {
		n.Add(n, big.NewInt(1))
	}
	return fixed.Money(n.Int64()), n.IsInt64()
}

// MarketBound returns the last price in ticks at which a market order may trade.
func (c *Contract) MarketBound(buy bool, marks int64) int64 { return c.bound(buy, marks, c.band) }

// LimitBound returns the most aggressive limit price in ticks that an order may have.
func (c *Contract) LimitBound(buy bool, marks int64) int64 { return c.bound(buy, marks, c.limit) }

func (c *Contract) bound(buy bool, marks int64, away fixed.Rate) int64 {
	factor, rounding := away.Den+away.Num, fixed.Floor
	if !buy {
		factor, rounding = away.Den-away.Num, fixed.Ceiling
	}
	ticks, ok := fixed.Mul(marks, factor).Div(away.Den*c.tickMarks, rounding).Int64()
	if !ok || ticks < 1 {
		return 1
	}
	return ticks
}

// MarkTicks returns a mark price in ticks, rounded.
func (c *Contract) MarkTicks(marks int64, r fixed.Rounding) int64 {
	ticks, _ := fixed.WideOf(marks).Div(c.tickMarks, r).Int64()
	return ticks
}

// MaxPrice is above every valid price. Average prices below it keep their 8 decimals.
const MaxPrice = 10_000_000_000

// HighestTicks returns the highest valid price of the instrument in ticks: below MaxPrice, and countable in marks.
func (c *Contract) HighestTicks() int64 {
	countable := math.MaxInt64 / c.tickMarks
	last, ok := fixed.Mul(MaxPrice, fixed.Pow10(int(c.PriceTick.Scale))).Sub(fixed.WideOf(1)).Div(c.PriceTick.Coef, fixed.Floor).Int64()
	if !ok {
		return countable
	}
	return min(last, countable)
}

// TickMarks converts a price in ticks to marks.
func (c *Contract) TickMarks(ticks int64) int64 { return ticks * c.tickMarks }

// InitialRate returns the first tier's initial rate, or the floor if that is higher.
func (c *Contract) InitialRate(floor fixed.Rate) fixed.Rate {
	return fixed.Rate{Num: c.brackets[0].initial, Den: parts}.Max(floor)
}

// MaintenanceRate returns the first tier's maintenance rate, or the floor if that is higher.
func (c *Contract) MaintenanceRate(floor fixed.Rate) fixed.Rate {
	return fixed.Rate{Num: c.brackets[0].maint, Den: parts}.Max(floor)
}

// MaintenanceRates returns the lowest and the highest maintenance rate of all brackets. A rate below the floor counts
// as the floor.
func (c *Contract) MaintenanceRates(floor fixed.Rate) (least, most fixed.Rate) {
	least, most = c.MaintenanceRate(floor), c.MaintenanceRate(floor)
	for _, b := range c.brackets[1:] {
		rate := fixed.Rate{Num: b.maint, Den: parts}.Max(floor)
		if rate.Cmp(least) < 0 {
			least = rate
		}
		most = most.Max(rate)
	}
	return least, most
}

// Reach returns by how many whole marks the price may move so that rate times the resulting gain or loss of a number of
// steps is at most money, which must not be negative. It returns math.MaxInt64 if more than can be counted.
func (c *Contract) Reach(steps int64, money fixed.Money, rate fixed.Rate) int64 {
	if rate.Num == 0 || steps == 0 {
		return math.MaxInt64
	}
	// money × MarkDen ÷ (steps × markNum × rate), one divisor after the other: truncating in between does not change
	// the result.
	scaled := fixed.Mul(int64(money), c.MarkDen).Mul(rate.Den)
	for _, divisor := range [...]int64{steps, c.markNum, rate.Num} {
		scaled = scaled.Div(divisor, fixed.Down)
	}
	marks, ok := scaled.Int64()
	if !ok {
		return math.MaxInt64
	}
	return marks
}

// Initial returns the initial margin for a value, which is in units of 10⁻⁸ ÷ MarkDen and not negative. A bracket's
// rate below the floor counts as the floor. The result is rounded up.
func (c *Contract) Initial(value fixed.Wide, floor fixed.Rate) fixed.Money {
	return c.requirement(value, floor, false)
}

// Maintenance returns the maintenance margin in the same way.
func (c *Contract) Maintenance(value fixed.Wide, floor fixed.Rate) fixed.Money {
	return c.requirement(value, floor, true)
}

func (c *Contract) requirement(value fixed.Wide, floor fixed.Rate, maintenance bool) fixed.Money {
	if value.Sign() == 0 {
		return 0
	}
	// All rates get one common denominator, so that the sum over the brackets is exact and is rounded only once.
	common := parts / gcd(parts, floor.Den) * floor.Den
	least := floor.Num * (common / floor.Den)
	var sum, from fixed.Wide
	for _, b := range c.brackets {
		rate := b.initial
		if maintenance {
			rate = b.maint
		}
		to := value
		if b.upTo != 0 {
			if end := fixed.Mul(int64(b.upTo), c.MarkDen); end.Cmp(value) < 0 {
				to = end
			}
		}
		sum = sum.Add(to.Sub(from).Mul(max(rate*(common/parts), least)))
		if from = to; to == value {
			break
		}
	}
	required, ok := sum.Div(common, fixed.Ceiling).Div(c.MarkDen, fixed.Ceiling).Money()
	if !ok {
		panic("market: a margin requirement does not fit")
	}
	return required
}
