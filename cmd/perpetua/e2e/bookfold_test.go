package e2e

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/twmb/franz-go/pkg/kgo"
)

// shelf is what rests at one price, both in thousandths.
type shelf struct{ price, amount int64 }

// depth is an order book: both sides from their best price. Its digest is the sum of a hash of each level, which costs the
// same to keep however deep the book is; two books with one digest are taken for the same.
type depth struct {
	bids, asks []shelf
	digest     uint64
}

// set has a level hold an amount, nothing if it is zero, and returns what it held before.
func (d *depth) set(ask bool, price, amount int64) (before int64) {
	side, sign := &d.bids, int64(-1)
	if ask {
		side, sign = &d.asks, 1
	}
	at, there := slices.BinarySearchFunc(*side, price, func(s shelf, price int64) int { return cmp.Compare(sign*s.price, sign*price) })
	if there {
		before = (*side)[at].amount
		d.digest -= mixed(ask, price, before)
	}
	switch {
	case amount != 0 && there:
		(*side)[at].amount = amount
	case amount != 0:
		*side = slices.Insert(*side, at, shelf{price, amount})
	case there:
		*side = slices.Delete(*side, at, at+1)
	}
	if amount != 0 {
		d.digest += mixed(ask, price, amount)
	}
	return before
}

// add has a level hold more, or less.
func (d *depth) add(ask bool, price, amount int64) {
	d.set(ask, price, d.set(ask, price, 0)+amount)
}

// mixed mixes a level as splitmix64 does.
func mixed(ask bool, price, amount int64) uint64 {
	x := uint64(price)*0x9e3779b97f4a7c15 ^ uint64(amount)*0xd6e8feb86659fd93
	if ask {
		x = ^x
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// crossed reports whether the best bid is as high as the best ask.
func (d *depth) crossed() bool {
	return len(d.bids) > 0 && len(d.asks) > 0 && d.bids[0].price >= d.asks[0].price
}

// String shows the book near its middle.
func (d *depth) String() string {
	return fmt.Sprintf("bids %v asks %v (%d and %d levels)", d.bids[:min(10, len(d.bids))], d.asks[:min(10, len(d.asks))], len(d.bids), len(d.asks))
}

// thousandths reads a decimal that is none finer.
func thousandths(text string) (int64, error) {
	d, err := decimal.NewFromString(text)
	if err != nil {
		return 0, err
	}
	if d = d.Shift(3); !d.IsInteger() {
		return 0, fmt.Errorf("%s is finer than a thousandth", text)
	}
	return d.IntPart(), nil
}

// restingOrder is what a book needs of an order. Its names are the same in the log, in REST and on the channel orders.
type restingOrder struct {
	Code         string
	Symbol       string
	Action       string
	Type         string
	OrderType    string `json:"order_type"` // in place of type on the channel
	Status       string
	Amount       string
	FilledAmount string `json:"filled_amount"`
	LimitPrice   string `json:"limit_price"`
}

// rests reports whether the order is in the book. Orders that wait for a price are not given here, save those that take what
// there is once they fire.
func (o *restingOrder) rests() bool {
	return (o.Status == "open" || o.Status == "partially_filled") && (o.Type == "limit" || o.OrderType == "limit")
}

// orderDepth is a book made of orders alone, each told in full whenever it has changed.
type orderDepth struct {
	depth
	orders map[string]placedShelf
}

// placedShelf is what an order adds to a level.
type placedShelf struct {
	ask bool
	shelf
}

func newOrderDepth() *orderDepth { return &orderDepth{orders: make(map[string]placedShelf)} }

// told takes an order as it is now.
func (d *orderDepth) told(o *restingOrder) error {
	if was, there := d.orders[o.Code]; there {
		d.add(was.ask, was.price, -was.amount)
		delete(d.orders, o.Code)
	}
	if o.Symbol != bitcoin || !o.rests() {
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
	now := placedShelf{o.Action == "sell", shelf{price, amount - filled}}
	d.orders[o.Code] = now
	d.add(now.ask, now.price, now.amount)
	return nil
}

// bookFold is what the book of bitcoin was after each record of the log, by nothing but a Kafka client, the rule which records
// are valid, and the orders in them.
type bookFold struct {
	digests []uint64 // by sequence
	changed int      // records that changed the book
	deepest int      // the most levels there were
}

// foldBook folds the log up to a sequence. see is called after each record, if there is one.
func foldBook(t *testing.T, v *venue, last int64, see func(sequence int64, d *depth)) *bookFold {
	t.Helper()
	topic := v.prefix + "trading"
	client, err := kgo.NewClient(kgo.SeedBrokers(v.Kafka...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	f, book, prev := &bookFold{}, newOrderDepth(), strings.Repeat("0", 64)
	for int64(len(f.digests)) <= last {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		fetches := client.PollFetches(ctx)
		cancel()
		if err := fetches.Err(); err != nil {
			t.Fatalf("reading the log at %d of %d: %v", len(f.digests), last, err)
		}
		for _, k := range fetches.Records() {
			if valid, err := f.fold(k.Value, prev, book); err != nil {
				t.Fatalf("the record at the offset %d: %v", k.Offset, err)
			} else if valid {
				sum := sha256.Sum256(k.Value)
				prev = hex.EncodeToString(sum[:])
				if see != nil {
					see(int64(len(f.digests)-1), &book.depth)
				}
			}
		}
	}
	return f
}

// fold takes a record if it is valid: if it follows on the one before.
func (f *bookFold) fold(value []byte, prev string, book *orderDepth) (valid bool, err error) {
	var r struct {
		Sequence int64
		Prev     string
		Events   []struct {
			Type string
			Data json.RawMessage
		}
	}
	if json.Unmarshal(value, &r) != nil || r.Prev != prev {
		return false, nil
	}
	if r.Sequence != int64(len(f.digests)) {
		return false, fmt.Errorf("the sequence is %d where %d belongs", r.Sequence, len(f.digests))
	}
	before := book.digest
	for _, event := range r.Events {
		if !strings.HasPrefix(event.Type, "order.") {
			continue
		}
		var o restingOrder
		if err := json.Unmarshal(event.Data, &o); err != nil {
			return false, err
		}
		if err := book.told(&o); err != nil {
			return false, fmt.Errorf("%s: %w", event.Data, err)
		}
	}
	if book.crossed() {
		return false, fmt.Errorf("the book is crossed: %v", &book.depth)
	}
	f.digests = append(f.digests, book.digest)
	f.deepest = max(f.deepest, len(book.bids)+len(book.asks))
	if book.digest != before {
		f.changed++
	}
	return true, nil
}

// visit is a book that somebody had as of a sequence.
type visit struct {
	sequence int64
	digest   uint64
}

// span is a time without an interruption: from each visit to the next the book was the same, and after the last one until the end.
type span struct {
	visits []visit
	end    int64
}

// check holds a span against the log at each of its sequences.
func (f *bookFold) check(s span) error {
	for i, v := range s.visits {
		end := s.end
		if i+1 < len(s.visits) {
			end = s.visits[i+1].sequence - 1
		}
		for n := v.sequence; n <= end; n++ {
			if n < 0 || n >= int64(len(f.digests)) {
				return fmt.Errorf("the log has no record %d", n)
			}
			if f.digests[n] != v.digest {
				return fmt.Errorf("the book that stood from %d on is not that of the log at %d", v.sequence, n)
			}
		}
	}
	return nil
}
