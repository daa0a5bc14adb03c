package demo

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

func decimal(t testing.TB, s string) fixed.Decimal {
	t.Helper()
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func bitcoin(t testing.TB, seed uint64) *market {
	t.Helper()
	m, err := newMarket(presets()[0], 0, listed{Symbol: "BTCUSDC_PERP", PriceTick: decimal(t, "0.1"), AmountStep: decimal(t, "0.001")}, 0, seed, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// toyVenue matches the demo's orders, so that its logic can be tested without a venue. It does what the engine does
// with them, as far as the demo sees.
type toyVenue struct {
	t       *testing.T
	m       *market
	own     *mirror
	makers  []maker
	codes   int
	said    []string // every command
	traded  int64
	amended int
}

func newToyVenue(t *testing.T, seed uint64) *toyVenue {
	m := bitcoin(t, seed)
	return &toyVenue{t: t, m: m, own: newMirror([]*market{m}), makers: makers()}
}

func (v *toyVenue) tell(o resting, status string, filled int64) {
	price, _ := v.m.tick.Times(o.price)
	amount, _ := v.m.step.Times(o.remaining + o.filled)
	done, _ := v.m.step.Times(filled)
	v.codes++
	v.own.learn(orderView{o.code, o.customer, o.symbol, sideName(o.side), status, amount, done, &price, o.reference}, int64(v.codes))
}

// turn is the demo's turn, with a taker in each.
func (v *toyVenue) turn(p pace) {
	v.m.move()
	v.said = append(v.said, "index "+v.m.price(v.m.index))
	for done := 0; ; done++ {
		d, missing := next(v.makers, v.m, v.own)
		if d.verb == nothing || p.spent(done, missing) {
			break
		}
		v.act(d)
		v.check()
	}
	w := wants(v.m, v.own)
	v.said = append(v.said, fmt.Sprint(w.customer, w.cancel, w.order))
	switch {
	case w.cancel != nil:
		v.tell(*w.cancel, "canceled", w.cancel.filled)
	case w.order["type"] == "market" && w.order["amount"] != nil:
		v.take(w.customer, w.order)
	}
}

func (v *toyVenue) act(d deed) {
	v.said = append(v.said, fmt.Sprint(d.verb, d.slot, d.order.code, d.price))
	o := d.order
	switch d.verb {
	case cancel:
		v.tell(o, "canceled", o.filled)
		return
	case amend:
		v.amended++
		o.price = d.price
	case post:
		o = resting{code: fmt.Sprint("order", v.codes), customer: d.maker.customer, symbol: v.m.symbol, side: d.slot.side,
			remaining: v.m.depth(d.slot.level), reference: d.slot.reference(fmt.Sprint(v.codes))}
		o.price = d.price
	}
	v.tell(o, "open", o.filled)
}

// take fills a market order.
func (v *toyVenue) take(customer string, order map[string]any) {
	amount := decimal(v.t, order["amount"].(string))
	left, _ := amount.Over(v.m.step)
	against := ask
	if order["action"] == "sell" {
		against = bid
	}
	v.codes++
	code, wanted := fmt.Sprint("order", v.codes), left
	book := v.own.on(v.m.symbol)
	slices.SortStableFunc(book, func(a, b resting) int { return int(sign(against) * (b.price - a.price)) })
	for _, o := range book {
		if o.side != against || left == 0 {
			continue
		}
		steps := min(left, o.remaining)
		left -= steps
		status := "partially_filled"
		if steps == o.remaining {
			status = "filled"
		}
		v.tell(o, status, o.filled+steps)
	}
	v.traded += wanted - left
	v.tell(resting{code: code, customer: customer, symbol: v.m.symbol, side: 1 - against, remaining: wanted}, "canceled", wanted-left)
}

// check wants a book of the demo's orders that is not crossed, with one order in each place.
func (v *toyVenue) check() {
	v.t.Helper()
	best := [2]int64{}
	places := make(map[string]bool)
	for _, o := range v.own.on(v.m.symbol) {
		if best[o.side] == 0 || sign(o.side)*(o.price-best[o.side]) > 0 {
			best[o.side] = o.price
		}
		s, ok := slotOf(o.reference)
		key := o.customer + fmt.Sprint(s)
		if ok && places[key] {
			v.t.Fatalf("two orders of %s", key)
		}
		places[key] = true
	}
	if best[bid] != 0 && best[ask] != 0 && best[bid] >= best[ask] {
		v.t.Fatalf("crossed: bid %d, ask %d", best[bid], best[ask])
	}
}

func TestMarketLives(t *testing.T) {
	for seed := range uint64(5) {
		v := newToyVenue(t, seed)
		for range 3 {
			v.turn(brisk())
		}
		for n := range 3000 {
			v.turn(brisk())
			bids, asks := 0, 0
			for _, o := range v.own.on(v.m.symbol) {
				if off := max(o.price-v.m.index, v.m.index-o.price) * million / v.m.index; off > 8000 {
					t.Fatalf("seed %d, turn %d: an order is %d ppm away", seed, n, off)
				}
				if o.side == bid {
					bids++
				} else {
					asks++
				}
			}
			if bids < 3 || asks < 3 {
				t.Fatalf("seed %d, turn %d: %d bids, %d asks", seed, n, bids, asks)
			}
		}
		sum := int64(0)
		for _, customer := range customers() {
			p := v.own.position(customer, v.m.symbol)
			sum += p
			if limit := (makerLimit + 10) * v.m.lot; p > limit || p < -limit {
				t.Errorf("seed %d: %s has %d steps", seed, customer, p)
			}
		}
		if sum != 0 {
			t.Errorf("seed %d: positions sum to %d", seed, sum)
		}
		if v.traded == 0 || v.amended == 0 {
			t.Errorf("seed %d: %d steps traded, %d orders amended", seed, v.traded, v.amended)
		}
		if perTurn := len(v.said) / 3003; perTurn > 5 {
			t.Errorf("seed %d: %d commands a turn", seed, perTurn)
		}
	}
}

func TestSameSeedSameCommands(t *testing.T) {
	run := func(seed uint64) []string {
		v := newToyVenue(t, seed)
		for range 200 {
			v.turn(brisk())
		}
		return v.said
	}
	if !reflect.DeepEqual(run(3), run(3)) {
		t.Error("the same seed gives other commands")
	}
	if reflect.DeepEqual(run(3), run(4)) {
		t.Error("another seed gives the same commands")
	}
}

func TestQuotesLeanAgainstThePosition(t *testing.T) {
	m, k := bitcoin(t, 1), makers()[0]
	flat, long, short := k.centre(m, 0), k.centre(m, 100*m.lot), k.centre(m, -100*m.lot)
	if flat != m.index || long >= flat || short <= flat {
		t.Errorf("centres: long %d, flat %d, short %d", long, flat, short)
	}
	if k.centre(m, 1<<50) != k.centre(m, makerLimit*m.lot) {
		t.Error("the shift is not bounded")
	}
	limit := makerLimit * m.lot
	for _, c := range []struct {
		position   int64
		bids, asks bool
	}{{0, true, true}, {limit - 1, true, true}, {limit, false, true}, {-limit, true, false}} {
		if k.quotes(bid, m, c.position) != c.bids || k.quotes(ask, m, c.position) != c.asks {
			t.Errorf("at %d the maker quotes: bids %v, asks %v", c.position, k.quotes(bid, m, c.position), k.quotes(ask, m, c.position))
		}
	}
}

// A maker at its limit takes away the quotes that would add to its position, and brings them back afterwards.
func TestLimitTakesQuotesAway(t *testing.T) {
	v := newToyVenue(t, 1)
	for range 20 {
		d, _ := next(v.makers, v.m, v.own)
		v.act(d)
	}
	first := v.makers[0].customer
	v.own.positions[first+" "+v.m.symbol] = makerLimit * v.m.lot
	quoteAll := func() (bids int) {
		for range 100 {
			d, _ := next(v.makers, v.m, v.own)
			if d.verb == nothing {
				break
			}
			v.act(d)
			v.check()
		}
		for _, o := range v.own.on(v.m.symbol) {
			if o.customer == first && o.side == bid {
				bids++
			}
		}
		return bids
	}
	if bids := quoteAll(); bids != 0 {
		t.Errorf("%d bids at the limit", bids)
	}
	v.own.positions[first+" "+v.m.symbol] = 0
	if bids := quoteAll(); bids != len(v.makers[0].ladder) {
		t.Errorf("%d bids afterwards", bids)
	}
}

// When the price jumps, quotes that others could profit from go first, and nothing crosses on the way.
func TestJump(t *testing.T) {
	for _, by := range []int64{-20_000, 20_000} {
		v := newToyVenue(t, 1)
		for range 20 {
			d, _ := next(v.makers, v.m, v.own)
			v.act(d)
		}
		v.m.index += by
		threatened := ask
		if by < 0 {
			threatened = bid
		}
		d, _ := next(v.makers, v.m, v.own)
		if d.verb != amend || d.order.side != threatened {
			t.Fatalf("by %d: the first thing is %+v", by, d)
		}
		for n := 0; d.verb != nothing; n++ {
			if n == 200 {
				t.Fatal("there is always another quote to change")
			}
			v.act(d)
			v.check()
			d, _ = next(v.makers, v.m, v.own)
		}
	}
}

func TestTakersKeepTheirLimit(t *testing.T) {
	m := bitcoin(t, 1)
	for range 1000 {
		if leaning(m, takerLimit*m.lot) != ask || leaning(m, -takerLimit*m.lot) != bid {
			t.Fatal("a taker at its limit goes on")
		}
	}
	buys := 0
	for range 10_000 {
		if leaning(m, 0) == bid {
			buys++
		}
	}
	if buys < 4500 || buys > 5500 {
		t.Errorf("%d of 10000 are buys", buys)
	}
}

func TestSlots(t *testing.T) {
	for _, s := range []slot{{bid, 0}, {ask, 4}, {bid, 12}} {
		if got, ok := slotOf(s.reference("2s-77")); !ok || got != s {
			t.Errorf("%v reads back as %v, %v", s, got, ok)
		}
	}
	for _, text := range []string{"", "-", "b-1-1", "x1-1-1", "b1", "t-1-1", "bx-1", "c4d5e6f7-0000-8000-8000-000000000000"} {
		if s, ok := slotOf(text); ok {
			t.Errorf("%q reads as %v", text, s)
		}
	}
}

func TestMirrorCountsAFillOnce(t *testing.T) {
	m := bitcoin(t, 1)
	own := newMirror([]*market{m})
	price := decimal(t, "65000.0")
	at := func(status, filled string) orderView {
		return orderView{"c", "x", m.symbol, "sell", status, decimal(t, "0.010"), decimal(t, filled), &price, "a0-1-1"}
	}
	own.hold("x", []positionOf{{m.symbol, decimal(t, "-0.002")}, {"OTHER_PERP", decimal(t, "5")}}, 20)
	own.learn(at("partially_filled", "0.001"), 18) // the orders were read before the positions,
	own.learn(at("partially_filled", "0.002"), 20) // which know of this fill
	own.learn(at("partially_filled", "0.005"), 21)
	if p := own.position("x", m.symbol); p != -5 {
		t.Errorf("the position is %d", p)
	}
	own.learn(at("filled", "0.010"), 22)
	if p, live := own.position("x", m.symbol), len(own.on(m.symbol)); p != -10 || live != 0 {
		t.Errorf("the position is %d, %d orders are live", p, live)
	}
}

func TestRecord(t *testing.T) {
	for text, want := range map[string]struct {
		sequence int64
		whole    bool
	}{"trading/0@123": {123, true}, "trading/0@123.2": {123, false}, "": {-1, false}, "x": {-1, false}, "trading/0@": {-1, false}} {
		if n, whole := record(text); n != want.sequence || whole != want.whole {
			t.Errorf("%q is %d, %v", text, n, whole)
		}
	}
}

func TestRestartDrawsAnew(t *testing.T) {
	if again([]int64{0, 0, 0}) != 0 {
		t.Error("a fresh venue is no first run")
	}
	if again([]int64{1, 2, 3}) == again([]int64{1, 2, 4}) || again([]int64{1, 2, 3}) == 0 {
		t.Error("a venue that was stopped draws what it drew")
	}
}
