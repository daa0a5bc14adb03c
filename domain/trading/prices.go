package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// prices are the inputs of an instrument's mark price, besides its book and its last trade.
type prices struct {
	indexPrice int64 // units of 10⁻⁸; 0 before the first
	indexTime  scalar.Time
	window     market.Window
	stale      bool // the index price is too old: see due_stale.go
	guard      *dueEntry
	// premiums belong to the current funding interval, as does minute, that of the last input that could have had a
	// sample. rate is the rate fixed for the previous interval.
	premiums market.Premiums
	minute   int64
	rate     int64 // parts of 10⁸
	funding  *dueEntry
}

// AlarmPrice is the kind of alarm for an index price that is refused because the open positions would be worth too
// much. The instrument's mark then does not follow the market until positions are closed or the price returns.
const AlarmPrice = "price_refused"

// setIndexPrice decides an index price, the resulting mark price and, for the first input of a minute, a sample of the
// premium.
func (r request) setIndexPrice(payload *SetIndexPrice) (decide.Decision, error) {
	i, err := r.instrumentToChange(payload.Symbol)
	if err != nil {
		return decide.Decision{}, err
	}
	c := i.contract
	index, ok := c.Index(payload.Price)
	if !ok {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Invalid, Code: "INVALID_PRICE", Field: "price",
			Message: "price must be positive, below 10000000000 and have at most 8 decimals"}
	}
	mark := r.markAfter(i, r.at.Time, index)
	if n, fits := c.Notional(c.LimitBound(true, c.TickMarks(mark)), i.openInterest+1); !fits || n > maxNotional {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Unacceptable, Code: "PRICE_ABOVE_MAXIMUM", Field: "price", Alarm: AlarmPrice,
			Message: "at this price the open positions on " + c.Symbol + " would be worth too much to be counted: its mark stays where it is"}
	}
	e := &IndexUpdated{Symbol: c.Symbol, IndexPrice: c.IndexPrice(index), MarkPrice: c.Price(mark)}
	if i.samples(r.at.Time) {
		e.Premium = r.premium(i, r.at.Time, index)
	}
	if !i.guarded() {
		return accepted(e)
	}
	return accepted(e, &GuardSet{Symbol: c.Symbol, Status: c.Status})
}

// markAfter returns the mark price in ticks after an index price at the time now.
func (s *State) markAfter(i *instrument, now scalar.Time, index int64) int64 {
	window := i.window // a copy, because only Evolve changes the state
	s.addBasis(i, &window, now, index)
	p := market.Pricing{Index: index, Rate: i.rate, Window: &window, Last: i.last}
	if i.funding != nil {
		p.Interval = scalar.Time(i.contract.FundingIntervalSeconds) * scalar.Second
		p.ToFunding = min(max(i.funding.Time-now, 0), p.Interval)
	}
	return i.contract.Mark(p)
}

// addBasis adds the basis of the book at an index price to a window.
func (s *State) addBasis(i *instrument, w *market.Window, now scalar.Time, index int64) {
	best := func(side book.Side) int64 {
		for l := i.book.Best(side); l != nil; l = l.Worse() {
			if hasLiveOrder(l, now) {
				return l.Price
			}
		}
		return 0
	}
	w.Add(i.contract, now, index, best(book.Bid), best(book.Ask))
}

// hasLiveOrder reports whether a level has any order that has not expired. Expired orders match nothing.
func hasLiveOrder(l *book.Level[live], now scalar.Time) bool {
	for o := l.Front(); o != nil; o = o.Next() {
		if !isOverdue(o, now) {
			return true
		}
	}
	return false
}

// standingAmount returns the amount at a level without expired orders, and how many orders it looked at for that: none
// unless some have expired, otherwise the expired ones or those of the level, the fewer of the two.
func (s *State) standingAmount(i *instrument, side book.Side, l *book.Level[live], now scalar.Time) (amount int64, looked int) {
	if !s.anyOverdue(now) {
		return l.Amount, 0
	}
	amount = l.Amount
	leave := func(o *resting) {
		looked++
		if isOverdue(o, now) && o.Resting() && o.Value.position.instrument == i && o.Side == side && o.Price == l.Price {
			amount -= o.Remaining
		}
	}
	if s.eachOverdue(now, l.Orders, leave) {
		return amount, looked
	}
	amount = l.Amount
	for o := l.Front(); o != nil; o = o.Next() {
		leave(o)
	}
	return amount, looked
}

// samples reports whether an index input is the first within a minute. An input that ends staleness has no sample,
// since the book is older than the input.
func (i *instrument) samples(now scalar.Time) bool {
	return !i.stale && int64(now/scalar.Minute) != i.minute
}

// premium returns the premium of the book over an index price, or nil if a side of the book is too small.
func (s *State) premium(i *instrument, now scalar.Time, index int64) *fixed.Decimal {
	walk := func(side book.Side) *market.Impact {
		w := i.contract.Impact()
		for l := i.book.Best(side); l != nil; l = l.Worse() {
			if amount, _ := s.standingAmount(i, side, l, now); amount > 0 && w.Take(l.Price, amount) {
				break
			}
		}
		return w
	}
	if p, ok := i.contract.Premium(index, walk(book.Bid), walk(book.Ask)); ok {
		return &p
	}
	return nil
}

// indexUpdated applies the event.
func (f *fold) indexUpdated(e *IndexUpdated) {
	i, now := f.instrument(e.Symbol), f.at.Time
	index, _ := i.contract.Index(e.IndexPrice)
	f.addBasis(i, &i.window, now, index)
	if i.samples(now) {
		i.minute = int64(now / scalar.Minute)
	}
	if e.Premium != nil {
		i.premiums.Add(*e.Premium)
	}
	i.indexPrice, i.indexTime, i.stale = index, now, false
	f.armGuard(i)
	if i.funding == nil {
		f.armFunding(i, now)
	}
	if f.settlement == nil {
		f.armSettlement(now)
	}
	mark, _ := i.contract.Marks(e.MarkPrice)
	f.setMark(i, mark)
	f.marked(i)
	f.moved = append(f.moved, i)
}
