package live_test

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// place is one price on one side of a book, in units of 10^-3.
type place struct {
	ask   bool
	price int64
}

// levels are what rests in a book, in units of 10^-3, and a digest of it that costs the same to keep however deep the
// book is: the sum of a hash of each level. Two books with the same digest are taken for the same.
type levels struct {
	amounts map[place]int64
	digest  uint64
}

func newLevels() *levels { return &levels{amounts: make(map[place]int64)} }

// set makes a level hold an amount, nothing if it is zero.
func (l *levels) set(at place, amount int64) {
	if before, there := l.amounts[at]; there {
		l.digest -= hashOf(at, before)
		delete(l.amounts, at)
	}
	if amount != 0 {
		l.digest += hashOf(at, amount)
		l.amounts[at] = amount
	}
}

// hashOf mixes a level as splitmix64 does.
func hashOf(at place, amount int64) uint64 {
	x := uint64(at.price)*0x9e3779b97f4a7c15 ^ uint64(amount)*0xd6e8feb86659fd93
	if at.ask {
		x = ^x
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// crossed reports whether a bid is as high as an ask.
func (l *levels) crossed() bool {
	var bid, ask int64
	for at := range l.amounts {
		switch {
		case at.ask && (ask == 0 || at.price < ask):
			ask = at.price
		case !at.ask && at.price > bid:
			bid = at.price
		}
	}
	return bid > 0 && ask > 0 && bid >= ask
}

// thousandths reads a number as JSON has it.
func thousandths(text string) (int64, error) {
	d, err := fixed.ParseDecimal(text)
	if err != nil {
		return 0, err
	}
	n, whole := d.In(3)
	if !whole {
		return 0, fmt.Errorf("%s is finer than a thousandth", text)
	}
	return n, nil
}

// rested is what one order adds to a level.
type rested struct {
	at     place
	amount int64
}

// orderText is what the book needs of an order, in the log and on the channel orders alike.
type orderText struct {
	Code         string `json:"code"`
	Symbol       string `json:"symbol"`
	Action       string `json:"action"`
	Type         string `json:"type"`
	OrderType    string `json:"order_type"` // in place of type on the channel
	Status       string `json:"status"`
	Amount       string `json:"amount"`
	FilledAmount string `json:"filled_amount"`
	LimitPrice   string `json:"limit_price"`
}

// resting is a book made of orders alone, each told in full whenever it changed.
type resting struct {
	*levels
	orders map[string]rested
}

func newResting() *resting { return &resting{newLevels(), make(map[string]rested)} }

// told takes an order as it is now.
func (r *resting) told(o *orderText) error {
	if was, there := r.orders[o.Code]; there {
		r.set(was.at, r.amounts[was.at]-was.amount)
		delete(r.orders, o.Code)
	}
	if o.Status != "open" && o.Status != "partially_filled" || o.Type != "limit" && o.OrderType != "limit" {
		return nil
	}
	price, err := thousandths(o.LimitPrice)
	if err != nil {
		return err
	}
	amount, err := thousandths(o.Amount)
	if err != nil {
		return err
	}
	filled, err := thousandths(o.FilledAmount)
	if err != nil {
		return err
	}
	now := rested{place{o.Action == "sell", price}, amount - filled}
	r.orders[o.Code] = now
	r.set(now.at, r.amounts[now.at]+now.amount)
	return nil
}

// truth is what the book of an instrument was after each record, found out beside the hub: from the bytes of the log's
// orders, and from the book of a fold of its own, which must agree.
type truth struct {
	symbol string

	mu      sync.Mutex
	book    *resting
	digests []uint64 // after each record
	changed int      // records that changed the book
	levels  int      // the most there were at once
	err     error
}

func newTruth(symbol string) *truth { return &truth{symbol: symbol, book: newResting()} }

// observe is called by the fold after each record.
func (t *truth) observe(e record.Entry, s decide.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.book.digest
	err := t.fold(e.Value)
	folded := newLevels()
	bids, asks := s.(*trading.State).Depth(t.symbol, 0)
	for side, all := range [][]trading.Level{bids, asks} {
		for _, l := range all {
			price, _ := l.Price.In(3)
			amount, _ := l.Amount.In(3)
			folded.set(place{side == 1, price}, amount)
		}
	}
	switch sequence := e.Record.Sequence; {
	case t.err != nil:
	case err != nil:
		t.err = fmt.Errorf("reading record %d: %w", sequence, err)
	case sequence != int64(len(t.digests)):
		t.err = fmt.Errorf("record %d after %d", sequence, len(t.digests)-1)
	case folded.digest != t.book.digest:
		t.err = fmt.Errorf("after record %d the fold's book is %v, that of the log's orders %v", sequence, folded.amounts, t.book.amounts)
	case folded.crossed():
		t.err = fmt.Errorf("after record %d the book is crossed: %v", sequence, folded.amounts)
	}
	t.digests = append(t.digests, t.book.digest)
	t.levels = max(t.levels, len(t.book.amounts))
	if t.book.digest != before {
		t.changed++
	}
}

// fold applies the orders in a record's bytes.
func (t *truth) fold(value []byte) error {
	var record struct {
		Events []struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		} `json:"events"`
	}
	if err := json.Unmarshal(value, &record); err != nil {
		return err
	}
	for _, event := range record.Events {
		if len(event.Type) < 6 || event.Type[:6] != "order." {
			continue
		}
		var o orderText
		if err := json.Unmarshal(event.Data, &o); err != nil {
			return err
		}
		if o.Symbol != t.symbol {
			continue
		}
		if err := t.book.told(&o); err != nil {
			return fmt.Errorf("%s: %w", event.Data, err)
		}
	}
	return nil
}

// visit is a book that a reader had, from the sequence on.
type visit struct {
	sequence int64
	digest   uint64
}

// check holds a reader's books against the truth at every sequence from the first on to the last.
func (t *truth) check(visits []visit, last int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, v := range visits {
		end := last
		if i+1 < len(visits) {
			end = visits[i+1].sequence - 1
		}
		for n := v.sequence; n <= end; n++ {
			if t.digests[n] != v.digest {
				return fmt.Errorf("the book that stood from %d on is not the fold's at %d", v.sequence, n)
			}
		}
	}
	return nil
}
