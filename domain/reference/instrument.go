package reference

import (
	"math/big"
	"math/bits"
	"slices"
)

// instrument is a contract with its prices, its book, and the orders that wait for its prices.
type instrument struct {
	instrumentShape
	index int   // index in the listing
	unit  int64 // the value of one step at a price of one tick, in 10⁻⁸ USDC
	tiers []tier
	book  [2][]*order // bids and asks, by price-time priority
	stops []*order    // waiting stops, by arrival

	status    string // set by the operator
	stale     bool
	indexed   int64 // the index price in 10⁻⁸; 0 before the first
	indexTime moment
	mark      int64 // in ticks
	last      int64 // in ticks; 0 before the first trade
	window    []*big.Rat
	sampled   moment // the second of the last sample in the window
	premiums  []*big.Rat
	minute    moment      // the minute of the last index price that could give a premium sample
	rate      int64       // in 10⁻⁸
	next      moment      // the next funding time; 0 before the first index price
	firing    duePosition // since when a stop is due
	fundMoves duePosition // since when the fund's order must be replaced
}

// duePosition is the position of blocking due work in its queue: the time and the record that made it due. there is false if
// nothing is due.
type duePosition struct {
	time     moment
	sequence int64
	there    bool
}

// tier is a margin bracket. Its rates apply to the part of the notional inside the bracket.
type tier struct {
	from           int64
	initial, maint rate
}

// rate is a fraction.
type rate struct{ n, d int64 }

func (r rate) rat() *big.Rat { return rat(r.n, r.d) }

// atLeast returns the higher of two rates.
func (r rate) atLeast(o rate) rate {
	if r.n*o.d < o.n*r.d {
		return o
	}
	return r
}

// percent converts a percentage with at most 4 decimals to a rate.
func percent(d dec) rate { return rate{d.v / 10_000, 1_000_000} }

var strictness = []string{"open", "post_only", "cancel_only", "trade_halt", "withdrawn"}

// inForce returns the effective status: the operator's, or post_only if that is stricter and the index price is stale or
// missing.
func (i *instrument) inForce() string {
	guard := 0
	if i.stale || i.mark == 0 {
		guard = 1
	}
	return strictness[max(slices.Index(strictness, i.status), guard)]
}

func (i *instrument) open() bool { return i.inForce() == "open" }

func (a *Auditor) list(e *instrumentShape) {
	must(a.instruments[e.Symbol] == nil, "%s is listed twice", e.Symbol)
	i := &instrument{index: len(a.listing)}
	a.instruments[e.Symbol] = i
	a.listing = append(a.listing, i)
	i.take(e)
	must(a.rules < 6 || i.MaxLeverage <= i.permitted(), "%s is listed with a leverage of %d, and its margin permits %d", e.Symbol, i.MaxLeverage, i.permitted())
}

// permitted returns the highest leverage that the first tier's initial margin permits, at least 1 and at most 100.
func (i *instrument) permitted() int64 {
	r := i.tiers[0].initial
	return max(1, min(r.d/r.n, 100))
}

// take applies the parameters of an instrument.
func (i *instrument) take(e *instrumentShape) {
	i.instrumentShape, i.status = *e, e.Status
	unit := times(rat(e.PriceTick.v, one), rat(e.AmountStep.v, one), rat(e.ContractSize.v, one), rat(one, 1))
	must(unit.IsInt() && unit.Sign() > 0, "a step of %s is worth %s at a tick", e.Symbol, unit)
	i.unit = unit.Num().Int64()
	i.tiers = nil
	for _, t := range e.MarginTiers {
		i.tiers = append(i.tiers, tier{t.NotionalFrom.v, percent(t.InitMarginReq), percent(t.MaintMarginReq)})
	}
}

func (a *Auditor) change(e *instrumentShape, delisted bool) {
	i := a.instrument(e.Symbol)
	must(i.status != "withdrawn", "%s was withdrawn, and changes", e.Symbol)
	must(i.PriceTick == e.PriceTick && i.AmountStep == e.AmountStep && i.ContractSize == e.ContractSize, "%s is counted otherwise", e.Symbol)
	interval, leverage, tiers := i.FundingIntervalSeconds, i.MaxLeverage, i.tiers
	i.take(e)
	// What earlier rules left above the margin remains until the margins change.
	must(a.rules < 6 || i.MaxLeverage <= i.permitted() || i.MaxLeverage == leverage && slices.Equal(i.tiers, tiers),
		"%s has a leverage of %d after a change, and its margin permits %d", e.Symbol, i.MaxLeverage, i.permitted())
	if interval != i.FundingIntervalSeconds && i.next != 0 {
		i.next = i.fundingAfter(a.now)
	}
	if delisted {
		must(i.status == "withdrawn", "%s is delisted, and %s", e.Symbol, i.status)
		for _, h := range a.holders(i) {
			must(false, "%s is withdrawn, and %s holds %d", e.Symbol, h.account.code, h.size)
		}
	}
	for _, h := range a.holders(i) {
		a.touch(h.account)
	}
}

func (a *Auditor) instrument(symbol string) *instrument {
	i := a.instruments[symbol]
	must(i != nil, "there is no instrument %s", symbol)
	return i
}

// ticks converts a price to ticks. The audit fails if it is not a whole number of them.
func (i *instrument) ticks(price dec) int64 {
	must(price.v%i.PriceTick.v == 0, "a price of %d lies on no tick of %s", price.v, i.Symbol)
	return price.v / i.PriceTick.v
}

func (i *instrument) steps(amount dec) int64 {
	must(amount.v%i.AmountStep.v == 0, "an amount of %d is no whole number of steps of %s", amount.v, i.Symbol)
	return amount.v / i.AmountStep.v
}

// worth returns the value of signed steps at a price in ticks, in 10⁻⁸ USDC.
func (i *instrument) worth(ticks, steps int64) int64 { return product(product(ticks, steps), i.unit) }

// margin returns the margin requirement of a notional: each tier's rate, but at least the rate least, on the part inside
// the tier, with the sum rounded up.
func (i *instrument) margin(notional int64, initial bool, least rate) int64 {
	var sum, carry, low uint64 // a 128-bit sum over the common denominator of all rates
	common := int64(1_000_000)
	if least.d != common {
		common *= least.d
	}
	for n, t := range i.tiers {
		if n > 0 && notional <= t.from {
			break
		}
		to := notional
		if n+1 < len(i.tiers) {
			to = min(notional, i.tiers[n+1].from)
		}
		r := t.maint
		if initial {
			r = t.initial
		}
		r = r.atLeast(least)
		high, part := bits.Mul64(uint64(to-t.from), uint64(r.n*(common/r.d)))
		low, carry = bits.Add64(low, part, 0)
		sum += high + carry
	}
	low, carry = bits.Add64(low, uint64(common-1), 0)
	quotient, _ := bits.Div64(sum+carry, low, uint64(common))
	return int64(quotient)
}

// index applies an index price and checks the mark price and the premium that follow from it.
func (a *Auditor) index(e *indexShape) {
	i := a.instrument(e.Symbol)
	now := a.now
	if len(i.window) == 0 || now/second > i.sampled {
		i.sampled = now / second
		i.window = append(i.window, a.basis(i, e.IndexPrice.v))
		if len(i.window) > 30 {
			i.window = i.window[1:]
		}
	}
	if !i.stale && now/minute != i.minute {
		i.minute = now / minute
		premium := a.premium(i, e.IndexPrice.v)
		must((premium == nil) == (e.Premium.r == nil), "a premium of %s: sampled is %v", i.Symbol, e.Premium.r)
		if premium != nil {
			rounded := rat(even(times(premium, rat(1e12, 1))), 1e12)
			must(rounded.Cmp(e.Premium.r) == 0, "the premium of %s is %s, not %s", i.Symbol, rounded, e.Premium.r)
			i.premiums = append(i.premiums, e.Premium.r)
			a.Seen.Premiums++
		}
	} else {
		must(e.Premium.r == nil, "a premium of %s out of turn", i.Symbol)
	}
	mark := a.markOf(i, e.IndexPrice.v)
	must(i.ticks(e.MarkPrice) == mark, "the mark of %s is %d ticks at an index of %d, not %s", i.Symbol, mark, e.IndexPrice.v, text(e.MarkPrice.v))
	a.Seen.Marks++
	i.indexed, i.indexTime, i.mark = e.IndexPrice.v, now, mark
	if i.next == 0 {
		i.next = i.fundingAfter(now)
	}
	if a.settlement == 0 {
		a.settlement = settlementAfter(now)
	}
	a.reach(i, "mark_price", mark)
	for _, h := range a.holders(i) {
		a.touch(h.account)
	}
}

// best returns the best price in ticks of the unexpired orders on a side, or 0.
func (a *Auditor) best(i *instrument, side int) int64 {
	for _, o := range i.book[side] {
		if !o.past(a.now) {
			return o.price
		}
	}
	return 0
}

// basis returns the difference between the middle of the book and an index price, or nil if a side is empty.
func (a *Auditor) basis(i *instrument, index int64) *big.Rat {
	bid, ask := a.best(i, 0), a.best(i, 1)
	if bid == 0 || ask == 0 {
		return nil
	}
	return minus(rat((bid+ask)*i.PriceTick.v, 2), rat(index, 1))
}

// markOf returns the mark price in ticks: the median of three terms, at most 3 % from the index price.
func (a *Auditor) markOf(i *instrument, index int64) int64 {
	at := rat(index, 1)
	terms := []*big.Rat{at, at, at}
	if i.next != 0 {
		interval := i.FundingIntervalSeconds * int64(second)
		left := limit(rat(int64(i.next-a.now), interval), rat(0, 1), rat(1, 1))
		terms[0] = times(at, plus(rat(1, 1), times(rat(i.rate, 1e8), left)))
	}
	sum, count := new(big.Rat), int64(0)
	for _, b := range i.window {
		if b != nil {
			sum.Add(sum, b)
			count++
		}
	}
	if count > 0 {
		terms[1] = plus(at, sum.Quo(sum, rat(count, 1)))
	}
	if i.last != 0 {
		terms[2] = rat(i.last*i.PriceTick.v, 1)
	}
	slices.SortFunc(terms, (*big.Rat).Cmp)
	tick := rat(1, i.PriceTick.v)
	low, high := up(times(at, rat(97, 100), tick)), down(times(at, rat(103, 100), tick))
	mark := even(times(terms[1], tick))
	if low > high {
		return max(1, even(times(limit(terms[1], times(at, rat(97, 100)), times(at, rat(103, 100))), tick)))
	}
	return max(1, min(max(mark, low), high))
}

// premium returns the relative difference between the index price and the impact prices, at which 10,000 USDC of the
// book trade. It is nil if a side of the book has less.
func (a *Auditor) premium(i *instrument, index int64) *big.Rat {
	impact := func(side int) *big.Rat {
		left, amount := rat(10_000*one, 1), new(big.Rat)
		for _, o := range i.book[side] {
			if o.past(a.now) {
				continue
			}
			if n := rat(i.worth(o.price, o.remaining), 1); n.Cmp(left) < 0 {
				left = minus(left, n)
				amount.Add(amount, rat(o.remaining, 1))
				continue
			}
			amount.Add(amount, new(big.Rat).Quo(left, rat(i.worth(o.price, 1), 1)))
			return times(new(big.Rat).Quo(rat(10_000*one, 1), times(amount, rat(i.unit, 1))), rat(i.PriceTick.v, 1))
		}
		return nil
	}
	bid, ask := impact(0), impact(1)
	if bid == nil || ask == nil {
		return nil
	}
	at, zero := rat(index, 1), new(big.Rat)
	above, below := minus(bid, at), minus(at, ask)
	if above.Sign() < 0 {
		above = zero
	}
	if below.Sign() < 0 {
		below = zero
	}
	return new(big.Rat).Quo(minus(above, below), at)
}

// guard checks and applies an event that says whether the index price is stale.
func (a *Auditor) guard(e *guardShape) {
	i := a.instrument(e.Symbol)
	if e.Stale {
		must(a.r.work == "stale_guard" && !i.stale && i.IndexStaleSeconds > 0 && a.now >= i.staleAt(), "the guard of %s is set, and its index is not old", i.Symbol)
		a.Seen.Stale++
	} else {
		fresh := i.mark != 0 && (i.IndexStaleSeconds == 0 || a.now < i.staleAt())
		must(fresh, "the guard of %s is lifted, and its index is old", i.Symbol)
	}
	i.stale = e.Stale
	must(i.inForce() == e.Status, "the status of %s is %s, not %s", i.Symbol, i.inForce(), e.Status)
}

func (i *instrument) staleAt() moment { return i.indexTime + moment(i.IndexStaleSeconds)*second }
