package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// BookChange is a price level that the last record changed.
type BookChange struct {
	Symbol string
	Action order.Action // buy for bids
	Price  fixed.Decimal
	// Before and After are the amounts that rested at the price before and after the record, zero for none.
	Before fixed.Decimal
	After  fixed.Decimal
}

type touchedLevel struct {
	instrument *instrument
	side       book.Side
	price      int64
	before     int64
}

// TrackBook makes the state record which price levels each record changes. It is off by default, since an owner does
// not need it.
func (s *State) TrackBook() { s.tracking = true }

// BookChanges returns the price levels that the last record changed, by instrument in the order of listing, bids before
// asks, best price first. It leaves out levels with the same amount before and after the record.
func (s *State) BookChanges() []BookChange {
	touched := slices.Clone(s.changes)
	slices.SortFunc(touched, func(a, b touchedLevel) int {
		switch {
		case a.instrument != b.instrument:
			return a.instrument.index - b.instrument.index
		case a.side != b.side:
			return int(a.side) - int(b.side)
		case a.side.Better(a.price, b.price):
			return -1
		}
		return 1
	})
	out := []BookChange{}
	for _, t := range touched {
		after := int64(0)
		if l := t.instrument.book.Level(t.side, t.price); l != nil {
			after = l.Amount
		}
		if after == t.before {
			continue
		}
		c := t.instrument.contract
		out = append(out, BookChange{c.Symbol, action(t.side), c.Price(t.price), c.Amount(t.before), c.Amount(after)})
	}
	return out
}

// touch records the amount at a level before it changes, for BookChanges.
func (f *fold) touch(i *instrument, side book.Side, price int64) {
	if !f.tracking || price == 0 {
		return
	}
	for n := range f.changes {
		if c := &f.changes[n]; c.price == price && c.side == side && c.instrument == i {
			return
		}
	}
	before := int64(0)
	if l := i.book.Level(side, price); l != nil {
		before = l.Amount
	}
	f.changes = append(f.changes, touchedLevel{i, side, price, before})
}
