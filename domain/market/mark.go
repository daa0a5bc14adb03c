package market

import (
	"math/big"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// indexDigits is how finely index prices are counted: in units of 10⁻⁸ of the quote currency, whatever the tick.
const indexDigits = 8

// clampPercent is how far from the index, in percent, a mark price may lie.
const clampPercent = 3

// Index returns an index price in units of 10⁻⁸, and false if it is finer than that, not positive, or so high that a mark
// price near it could not be counted.
func (c *Contract) Index(price fixed.Decimal) (int64, bool) {
	units, ok := price.In(indexDigits)
	if !ok || units <= 0 || price.Cmp(fixed.Decimal{Coef: MaxPrice}) >= 0 {
		return 0, false
	}
	highest := new(big.Int).Mul(c.fine(units), big.NewInt(100+clampPercent))
	highest = quotient(highest, big.NewInt(100*c.fineTick()), fixed.Ceiling)
	return units, highest.Cmp(big.NewInt(c.HighestTicks())) <= 0 // of a fine tick there may be more than an int64 counts
}

// IndexPrice returns units of 10⁻⁸ as a price, at tick precision or as much finer as it is.
func (c *Contract) IndexPrice(units int64) fixed.Decimal {
	return fixed.Decimal{Coef: units, Scale: indexDigits}.Trim().AtLeast(c.PriceTick.Scale)
}

// fineScale is the number of decimals that index prices and ticks can both be counted in.
func (c *Contract) fineScale() int { return max(indexDigits, int(c.PriceTick.Scale)) }

// fine returns an index price in units of 10^-fineScale.
func (c *Contract) fine(index int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(index), big.NewInt(fixed.Pow10(c.fineScale()-indexDigits)))
}

// fineTick returns the tick in units of 10^-fineScale.
func (c *Contract) fineTick() int64 {
	return c.PriceTick.Coef * fixed.Pow10(c.fineScale()-int(c.PriceTick.Scale))
}

// inTicks returns n ÷ d units of 10^-fineScale in ticks, rounded.
func (c *Contract) inTicks(n, d *big.Int, r fixed.Rounding) int64 {
	return quotient(n, new(big.Int).Mul(d, big.NewInt(c.fineTick())), r).Int64()
}

// quotient returns n ÷ d, rounded: half to even, up or down. d is positive.
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

// windowLength is how many samples of the basis a mark price follows.
const windowLength = 30

// Window holds the last samples of an instrument's basis, which is how far the middle of the book lies from the index:
// at most one of each second of the clock, at most 30.
type Window struct {
	ring   [windowLength]basis
	next   int   // where the next sample goes
	length int   // how many there are
	second int64 // of the last sample, since 1970
}

// basis is a sample: twice the middle of the book less twice the index, in units of 10^-fineScale, so that it is whole.
// Where a side of the book was empty there is none, and the sample counts all the same.
type basis struct {
	there bool
	twice int64
}

// Add takes the basis at an index input over, with the best bid and ask in ticks, 0 for an empty side. A second input
// within a second is left out.
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

// each passes the samples, oldest first.
func (w *Window) each(pass func(basis)) {
	for n := range w.length {
		pass(w.ring[(w.next-w.length+n+windowLength)%windowLength])
	}
}

// sum returns the sum of the samples, each twice the basis, and how many there are that have one.
func (w *Window) sum() (sum *big.Int, count int64) {
	sum = new(big.Int)
	w.each(func(b basis) {
		if b.there {
			sum.Add(sum, big.NewInt(b.twice))
			count++
		}
	})
	return sum, count
}

// Pack writes the window.
func (w *Window) Pack(to *pack.Writer) {
	to.Len(w.length)
	to.Int(w.second)
	w.each(func(b basis) {
		to.Bool(b.there)
		to.Int(b.twice)
	})
}

// Unpack reads a window into w, which is empty.
func (w *Window) Unpack(from *pack.Reader) {
	length := from.Index(windowLength + 1)
	w.second = from.Int()
	for range length {
		w.ring[w.next] = basis{from.Bool(), from.Int()}
		w.next = (w.next + 1) % windowLength
	}
	w.length = length
}

// Pricing is what a mark price follows from.
type Pricing struct {
	Index int64 // units of 10⁻⁸
	// Rate is the funding rate that was fixed last, in parts of 10⁸, and zero before the first and after a missed one.
	Rate int64
	// ToFunding is the time to the next funding instant, of an interval.
	ToFunding, Interval scalar.Time
	Window              *Window
	Last                int64 // the price of the last trade in ticks; 0 for none
}

// Mark returns the mark price in ticks: the median of what the index will be worth with the funding to come, of the index
// with the average basis, and of the last trade, each the index itself where it is missing, no further than 3 % from the
// index, half to even on the tick and then, if need be, moved inside those 3 %. Where no tick lies inside it stays the
// nearest, and it is at least one tick.
//
// Rounding keeps the order of prices, so that the median of the rounded terms is the rounded median.
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
	if lowest > highest { // there is no tick inside
		lowest, highest = c.inTicks(least, hundred, fixed.HalfEven), c.inTicks(most, hundred, fixed.HalfEven)
	}
	return max(min(max(mark, lowest), highest), 1)
}
