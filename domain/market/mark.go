package market

import (
	"math/big"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// indexDigits is the number of decimals in which index prices are counted, for every tick: units of 10⁻⁸ of the quote
// currency.
const indexDigits = 8

// clampPercent is the maximum distance of the mark price from the index, in percent.
const clampPercent = 3

// Index returns an index price in units of 10⁻⁸. It returns false if the price is finer than that, not positive, or so
// high that a mark price near it could not be counted.
func (c *Contract) Index(price fixed.Decimal) (int64, bool) {
	units, ok := price.In(indexDigits)
	if !ok || units <= 0 || price.Cmp(fixed.Decimal{Coef: MaxPrice}) >= 0 {
		return 0, false
	}
	highest := new(big.Int).Mul(c.fine(units), big.NewInt(100+clampPercent))
	highest = quotient(highest, big.NewInt(100*c.fineTick()), fixed.Ceiling)
	return units, highest.Cmp(big.NewInt(c.HighestTicks())) <= 0 // with a fine tick, there may be more ticks than an int64 counts
}

// IndexPrice returns the price of a number of units of 10⁻⁸, with the decimals of the tick, or more if it needs them.
func (c *Contract) IndexPrice(units int64) fixed.Decimal {
	return fixed.Decimal{Coef: units, Scale: indexDigits}.Trim().AtLeast(c.PriceTick.Scale)
}

// fineScale is the number of decimals in which both index prices and ticks can be counted.
func (c *Contract) fineScale() int { return max(indexDigits, int(c.PriceTick.Scale)) }

// fine converts an index price to units of 10^-fineScale.
func (c *Contract) fine(index int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(index), big.NewInt(fixed.Pow10(c.fineScale()-indexDigits)))
}

// fineTick returns the tick in units of 10^-fineScale.
func (c *Contract) fineTick() int64 {
	return c.PriceTick.Coef * fixed.Pow10(c.fineScale()-int(c.PriceTick.Scale))
}

// inTicks converts n ÷ d units of 10^-fineScale to ticks, rounded.
func (c *Contract) inTicks(n, d *big.Int, r fixed.Rounding) int64 {
	return quotient(n, new(big.Int).Mul(d, big.NewInt(c.fineTick())), r).Int64()
}

// quotient returns n ÷ d, rounded half to even, up or down. d must be positive.
func quotient(n, d *big.Int, r fixed.Rounding) *big.Int {
	q, rest := new(big.Int).DivMod(n, d, new(big.Int)) // toward minus infinity
	up := false
	switch r {
	case fixed.Ceiling:
		up = rest.Sign() > 0
	case fixed.HalfEven:
		half := new(big.Int).Lsh(rest, 1).Cmp(d)
		up = half > 0 || half == 0 && q.Bit(0) == 1
	case fixed.Floor:
	default:
		panic("market: a quotient is rounded half to even, up or down")
	}
	if up {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// windowLength is the number of samples of the basis in a window.
const windowLength = 30

// Window holds the last samples of an instrument's basis, which is the distance of the book's midpoint from the index.
// It has at most one sample per clock second and at most 30 samples.
type Window struct {
	ring   [windowLength]basis
	next   int   // index of the next sample
	length int   // number of samples
	second int64 // of the last sample, since 1970
}

// basis is a sample: twice the midpoint of the book minus twice the index, in units of 10^-fineScale, which is a whole
// number. If a side of the book was empty, the sample has no basis but still takes a place in the window.
type basis struct {
	there bool
	twice int64
}

// Add adds the basis at an index input, with the best bid and ask in ticks, 0 for an empty side. It ignores further
// inputs in the same second.
func (w *Window) Add(c *Contract, now scalar.Time, index, bid, ask int64) {
	second := int64(now / scalar.Second)
	if w.length > 0 && second <= w.second {
		return
	}
	b := basis{there: bid != 0 && ask != 0}
	if b.there {
		b.twice = (bid+ask)*c.fineTick() - 2*index*fixed.Pow10(c.fineScale()-indexDigits)
	}
	w.ring[w.next] = b
	w.next = (w.next + 1) % windowLength
	w.length = min(w.length+1, windowLength)
	w.second = second
}

// sum returns the sum of the samples that have a basis, each twice the basis, and their number.
func (w *Window) sum() (sum *big.Int, count int64) {
	sum = new(big.Int)
	for _, b := range w.ring { // without a sample, b is zero
		if b.there {
			sum.Add(sum, big.NewInt(b.twice))
			count++
		}
	}
	return sum, count
}

// Visit visits the window. What is read goes into w, which is empty.
func (w *Window) Visit(c *pack.Coder) {
	n := c.Index(w.length, windowLength+1)
	pack.Int(c, &w.second)
	if c.Reading() {
		w.length, w.next = n, n%windowLength
	}
	for i := range n { // oldest first
		b := &w.ring[(w.next-n+i+windowLength)%windowLength]
		c.Bool(&b.there)
		pack.Int(c, &b.twice)
	}
}

// Pricing holds the inputs of a mark price.
type Pricing struct {
	Index int64 // units of 10⁻⁸
	// Rate is the last funding rate that was fixed, in parts of 10⁸. It is zero before the first and after a missed
	// one.
	Rate int64
	// ToFunding is the time to the next funding instant; Interval is the length of the funding interval, or zero.
	ToFunding, Interval scalar.Time
	Window              *Window
	Last                int64 // price of the last trade in ticks; 0 for none
}

// Mark returns the mark price in ticks. It is the median of three terms: the index including the funding to come, the
// index plus the average basis, and the last trade. A missing term is replaced by the index. Each is rounded half to
// even to the tick. The median is then moved, if necessary, to within 3 % of the index; if no tick is within 3 %, the
// limits are rounded to the nearest ticks. It is at least one tick.
//
// Rounding preserves the order of prices, so the median of the rounded terms is the rounded median.
func (c *Contract) Mark(p Pricing) int64 {
	index, one, hundred := c.fine(p.Index), big.NewInt(1), big.NewInt(100)
	alone := c.inTicks(index, one, fixed.HalfEven)
	carried, basis, last := alone, alone, p.Last
	if p.Interval > 0 {
		whole := new(big.Int).Mul(big.NewInt(int64(p.Interval)), big.NewInt(RateUnit))
		factor := new(big.Int).Mul(big.NewInt(p.Rate), big.NewInt(int64(p.ToFunding)))
		carried = c.inTicks(new(big.Int).Mul(index, factor.Add(factor, whole)), whole, fixed.HalfEven)
	}
	if sum, count := p.Window.sum(); count > 0 {
		samples := big.NewInt(2 * count)
		basis = c.inTicks(sum.Add(sum, new(big.Int).Mul(index, samples)), samples, fixed.HalfEven)
	}
	if last == 0 {
		last = alone
	}
	mark := max(min(carried, basis), min(max(carried, basis), last))
	least, most := new(big.Int).Mul(index, big.NewInt(100-clampPercent)), new(big.Int).Mul(index, big.NewInt(100+clampPercent))
	lowest, highest := c.inTicks(least, hundred, fixed.Ceiling), c.inTicks(most, hundred, fixed.Floor)
	if lowest > highest { // no tick is within 3 %
		lowest, highest = c.inTicks(least, hundred, fixed.HalfEven), c.inTicks(most, hundred, fixed.HalfEven)
	}
	return max(min(max(mark, lowest), highest), 1)
}
