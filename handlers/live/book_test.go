package live_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// sides is a book as the fold has it.
type sides struct{ bids, asks []livetest.Level }

func sidesOf(s *trading.State, symbol string) sides {
	text := func(levels []trading.Level) []livetest.Level {
		out := make([]livetest.Level, 0, len(levels))
		for _, l := range levels {
			out = append(out, livetest.Level{Price: l.Price.String(), Amount: l.Amount.String()})
		}
		return out
	}
	bids, asks := s.Depth(symbol, 0)
	return sides{text(bids), text(asks)}
}

func (s sides) equal(o sides) bool {
	return slices.Equal(s.bids, o.bids) && slices.Equal(s.asks, o.asks)
}

// history keeps the book of an instrument after each record.
func (v *venue) history(symbol string) func(sequence int64) sides {
	var mu sync.Mutex
	after := make(map[int64]sides)
	v.Listen(func(e record.Entry, s decide.State) {
		mu.Lock()
		defer mu.Unlock()
		after[e.Record.Sequence] = sidesOf(s.(*trading.State), symbol)
	})
	return func(sequence int64) sides {
		mu.Lock()
		defer mu.Unlock()
		return after[sequence]
	}
}

// someone does something random on the instrument: mostly limit orders around 1000, some of them crossing, market
// orders, cancels, amendments and mass cancels.
func (v *venue) someone(r *rand.Rand, symbol string) {
	customer := []string{"A1", "A2", "B1"}[r.IntN(3)]
	action := []order.Action{order.Buy, order.Sell}[r.IntN(2)]
	price := fixed.Decimal{Coef: 9900 + r.Int64N(200), Scale: 1}
	amount := fixed.Decimal{Coef: 1 + r.Int64N(2000), Scale: 3}
	open := v.state.OpenOrders(customer)
	switch n := r.IntN(20); {
	case n < 10 || len(open) == 0:
		_, _ = v.try(trading.CommandPlaceOrder, &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: action,
			Type: order.Limit, Amount: amount, LimitPrice: price})
	case n < 12:
		_, _ = v.try(trading.CommandPlaceOrder, &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: action,
			Type: order.Market, Amount: amount})
	case n < 15:
		o := open[r.IntN(len(open))]
		_, _ = v.as(customer, trading.CommandCancelOrder, &trading.CancelOrder{CustomerCode: customer, OrderCode: o.Code})
	case n < 19:
		o := open[r.IntN(len(open))]
		ask := &trading.AmendOrder{CustomerCode: customer, OrderCode: o.Code, LimitPrice: &price}
		if r.IntN(2) == 0 {
			ask.Amount = &amount
		}
		_, _ = v.as(customer, trading.CommandAmendOrder, ask) // may be refused, for example below what is filled
	case r.IntN(10) == 0:
		_, _ = v.as(customer, trading.CommandCancelAll, &trading.CancelAll{CustomerCode: customer})
	}
}

// TestBooksEqualTheFold lets readers of a book come while it changes. Each rebuilds the book from what it gets, and
// has that of the fold at every sequence, none left out.
func TestBooksEqualTheFold(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	v := newVenue(t, live.Limits{}, nil)
	history := v.history(btc)
	const records, readers = 1500, 12
	clients := make(chan *livetest.Client, readers)
	var coming sync.WaitGroup
	first := v.dial("")
	first.SubscribeWith(livetest.Request{Args: []string{"orderbook-stream:" + btc}, Data: map[string]bool{"positions": true}})
	for n := range records {
		if n%(records/readers) == records/readers/2 {
			c := v.dial("")
			coming.Go(func() { // beside the records to come
				c.Send(livetest.Request{Op: "subscribe", Args: []string{"orderbook-stream:" + btc}, Data: map[string]bool{"positions": true}})
				clients <- c
			})
		}
		symbol := btc
		if r.IntN(10) == 0 {
			symbol = eth
		}
		v.someone(r, symbol)
	}
	coming.Wait()
	close(clients)
	// A last change that everybody waits for.
	v.do(trading.CommandPlaceOrder, limit("A1", btc, order.Buy, "0.001", "950"))
	last := v.stamp().Sequence - 1
	if n := rebuilds(t, first, last, history); n < records/3 {
		t.Errorf("only %d of %d records changed the book", n, records)
	}
	for c := range clients {
		rebuilds(t, c, last, history)
	}
}

// rebuilds checks one reader's stream up to the last sequence, and returns how many messages it had.
func rebuilds(t *testing.T, c *livetest.Client, last int64, history func(int64) sides) int {
	t.Helper()
	messages := c.Until("the last change", func(all []livetest.Message) bool {
		return len(all) > 0 && all[len(all)-1].Fields()["sequence"] == fmt.Sprint(last)
	})
	var book livetest.Book
	for i, m := range messages[1:] { // after the acknowledgement
		before := book.Sequence
		if err := book.Apply(m); err != nil {
			t.Fatal(err)
		}
		if got := (sides{book.Bids(), book.Asks()}); !got.equal(history(book.Sequence)) {
			t.Fatalf("at %d the book is\n%v, want\n%v", book.Sequence, got, history(book.Sequence))
		}
		if want := fmt.Sprintf("trading/0@%d", book.Sequence); m.Fields()["position"] != want {
			t.Errorf("position %s, want %s", m.Fields()["position"], want)
		}
		for between := before + 1; i > 0 && between < book.Sequence; between++ {
			if !history(between).equal(history(before)) {
				t.Fatalf("the change at %d was left out", between)
			}
		}
	}
	return len(messages)
}

// TestOneUpdateForEachRecord checks that all levels that a record changes come together.
func TestOneUpdateForEachRecord(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	for i := range 3 {
		v.place(limit("A1", btc, order.Sell, "1", fmt.Sprintf("100%d", i)))
	}
	c := v.dial("")
	c.Subscribe("orderbook-stream:" + btc)
	v.place(limit("A2", btc, order.Buy, "2.5", "1001")) // takes two levels and rests
	v.place(limit("A1", eth, order.Sell, "1", "1000"))  // another book
	v.place(limit("A1", btc, order.Sell, "1", "1002"))
	c.Until("two updates", func(all []livetest.Message) bool { return len(all) >= 4 })
	got := changes(c.On("orderbook-stream:" + btc))
	want := []string{"new bid 1001.0 0.500", "delete ask 1000.0 0", "delete ask 1001.0 0", "change ask 1002.0 2.000"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if n := len(c.On("orderbook-stream:" + btc)); n != 3 {
		t.Errorf("%d messages, want the snapshot and two updates", n)
	}
}
