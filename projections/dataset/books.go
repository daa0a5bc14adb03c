package dataset

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/google/btree"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// depth is the number of price levels on each side of a book that have rows.
const depth = 20

// Books holds the order books after a record of the journal trading. It follows the orders after each event, so it needs every record from
// the first one on, or what Save has returned. Books is not safe for concurrent use.
type Books struct {
	next   int64       // sequence of the next record
	hash   record.Hash // of the record before it
	orders map[scalar.ID]resting
	books  map[string]*book // by symbol

	taker scalar.ID            // the order that continues to trade in the next record, and does not rest; zero for none
	aside map[string]scalar.ID // such orders whose work was set aside, by the name of the work
}

// resting is an order with a limit that has no trigger to wait for. Price and amount are multiples of 10⁻¹⁸. It has no text of the order,
// which would keep the order's record in memory.
type resting struct {
	in     *book
	buys   bool
	takes  bool // it is between two records of its trades, and not in the book
	price  fixed.Wide
	amount fixed.Wide // not filled
}

// book is the book of an instrument.
type book struct {
	symbol     string
	bids, asks ladder
	shown      best // the levels that the last rows have
	touched    bool // since then
}

// best holds the best levels of both sides.
type best struct{ bids, asks []level }

// level is a price at which orders rest. Price and amount are multiples of 10⁻¹⁸.
type level struct {
	price, amount fixed.Wide
	orders        int64
}

// NewBooks returns the books before the first record.
func NewBooks() *Books {
	return &Books{orders: make(map[scalar.ID]resting), books: make(map[string]*book), aside: make(map[string]scalar.ID)}
}

// Next returns the sequence of the record that Add expects.
func (b *Books) Next() int64 { return b.next }

// Position returns the position of the last record. Its offset is a guess.
func (b *Books) Position() record.Position {
	if b.next == 0 {
		return record.Before
	}
	return record.Position{Offset: b.next - 1, Sequence: b.next - 1, Hash: b.hash}
}

// Add applies the next record. After an error, the books are of no use.
func (b *Books) Add(e *record.Entry) error {
	m := maker{sequence: e.Record.Sequence}
	b.follow(e.Record.Events)
	var triggered trading.Triggered
	for _, event := range e.Record.Events {
		if o := triggered.Order(event, e.Record.Time); o != nil {
			b.replace(&m, o)
		}
	}
	b.next, b.hash = e.Record.Sequence+1, e.Position.Hash
	return m.err
}

// follow learns which order continues to trade after a record. The events say so after those of the order.
func (b *Books) follow(events []decide.Event) {
	for _, event := range events {
		switch e := event.(type) {
		case *trading.WorkStarted:
			b.taker = e.OrderCode
		case *trading.WorkFinished:
			b.taker = scalar.ID{}
		case *decide.DueSetAside:
			if kind, _, _ := strings.Cut(e.Entry, "/"); kind == string(trading.WorkSweep) {
				b.aside[e.Entry], b.taker = b.taker, scalar.ID{}
			}
		case *decide.DuePutBack:
			if taker, ok := b.aside[e.Entry]; ok {
				b.taker = taker
				delete(b.aside, e.Entry)
			}
		}
	}
}

// replace replaces an order by its state after an event.
func (b *Books) replace(m *maker, o *order.Order) {
	was, rested := b.orders[o.Code]
	if rested {
		was.change(was.amount.Neg(), -1)
		delete(b.orders, o.Code)
	}
	// Under rules 1, only one record gives the time at which an order was triggered. A resting order has been triggered.
	waits := o.TriggerPriceType != "" && o.Triggered.IsZero() && !rested
	if waits || !o.Status.Live() || o.LimitPrice.IsZero() {
		return
	}
	b.put(o.Code, &resting{b.book(o.Symbol), o.Action == order.Buy, o.Code == b.taker, m.wide(o.LimitPrice), m.wide(o.Amount).Sub(m.wide(o.FilledAmount))})
}

// book returns the book of an instrument.
func (b *Books) book(symbol string) *book {
	of := b.books[symbol]
	if of == nil {
		of = &book{symbol: strings.Clone(symbol), bids: newLadder(fixed.Wide.Cmp), asks: newLadder(func(x, y fixed.Wide) int { return y.Cmp(x) })}
		b.books[of.symbol] = of
	}
	return of
}

// put adds an order.
func (b *Books) put(code scalar.ID, o *resting) {
	b.orders[code] = *o
	o.change(o.amount, 1)
}

// change adds an amount and a number of orders to the level of an order, if it rests.
func (o *resting) change(amount fixed.Wide, orders int64) {
	if o.takes {
		return
	}
	o.in.touched = true
	side := o.in.asks
	if o.buys {
		side = o.in.bids
	}
	side.change(o.price, amount, orders)
}

// settle forgets what has changed, so that changed reports later changes.
func (b *Books) settle() {
	for _, of := range b.books {
		of.shown, of.touched = of.best(), false
	}
}

// unsettle makes changed report every book that is not empty.
func (b *Books) unsettle() {
	for _, of := range b.books {
		of.shown, of.touched = best{}, true
	}
}

// changed calls each for the books with other best levels than at the last call of changed or settle. It sorts them by symbol.
func (b *Books) changed(each func(symbol string, now best)) {
	for _, symbol := range slices.Sorted(maps.Keys(b.books)) {
		of := b.books[symbol]
		if !of.touched {
			continue
		}
		of.touched = false
		now := of.best()
		if slices.Equal(now.bids, of.shown.bids) && slices.Equal(now.asks, of.shown.asks) {
			continue
		}
		of.shown = now
		each(symbol, now)
	}
}

func (b *book) best() best { return best{b.bids.best(), b.asks.best()} }

// ladder holds the levels of one side of a book. The best price is the greatest.
type ladder struct{ levels *btree.BTreeG[level] }

// newLadder returns an empty ladder. inOrder compares prices; the better one is greater.
func newLadder(inOrder func(x, y fixed.Wide) int) ladder {
	const degree = 32
	return ladder{btree.NewG(degree, func(x, y level) bool { return inOrder(x.price, y.price) < 0 })}
}

// change adds an amount and a number of orders to the level at a price.
func (l ladder) change(price, amount fixed.Wide, orders int64) {
	of, _ := l.levels.Get(level{price: price})
	of = level{price, of.amount.Add(amount), of.orders + orders}
	if of.orders == 0 {
		l.levels.Delete(of)
		return
	}
	l.levels.ReplaceOrInsert(of)
}

// best returns the best levels, the best one first.
func (l ladder) best() (all []level) {
	l.levels.Descend(func(of level) bool {
		all = append(all, of)
		return len(all) < depth
	})
	return all
}

// codes returns the codes of the orders in their order.
func (b *Books) codes() []scalar.ID {
	return slices.SortedFunc(maps.Keys(b.orders), func(x, y scalar.ID) int { return bytes.Compare(x[:], y[:]) })
}
