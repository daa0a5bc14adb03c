package market

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// input is an index input with the book's best prices, in ticks.
type input struct {
	second   int64
	index    string
	bid, ask int64
}

// fed returns a window that the inputs were added to.
func fed(c *Contract, inputs ...input) *Window {
	w := &Window{}
	for _, i := range inputs {
		index, _ := c.Index(number(i.index))
		w.Add(c, scalar.Time(i.second)*scalar.Second, index, i.bid, i.ask)
	}
	return w
}

// TestMark holds worked values against the formula, on a tick of 0.1.
func TestMark(t *testing.T) {
	c := NewContract(btc().Normal())
	const hour = scalar.Hour
	for name, tt := range map[string]struct {
		index  string
		rate   int64
		to     scalar.Time
		inputs []input
		last   int64
		want   string
	}{
		"the index alone": {index: "65000", want: "65000.0"},
		// Between two ticks, to the even one.
		"a tie down":                 {index: "65000.25", want: "65000.2"},
		"a tie up":                   {index: "65000.35", want: "65000.4"},
		"finer than a tick":          {index: "65000.25000001", want: "65000.3"},
		"no less than a tick":        {index: "0.00000001", want: "0.1"},
		"the last trade is one term": {index: "65000", last: 700_000, want: "65000.0"}, // of 65000, 65000 and 70000
		// 65000 × (1 + 0.0001 × 30/60) = 65003.25, between the index (no basis) and the last trade.
		"funding to come":                    {index: "65000", rate: 10_000, to: hour / 2, last: 650_100, want: "65003.2"},
		"funding to come, which shorts pay":  {index: "65000", rate: -10_000, to: hour / 2, last: 649_900, want: "64996.8"},
		"funding comes this very moment":     {index: "65000", rate: 10_000, to: 0, last: 650_100, want: "65000.0"},
		"the microseconds count":             {index: "65000", rate: 1_875_000, to: 295_385, last: 650_100, want: "65000.1"}, // 0.10000013…
		"a microsecond less would not do":    {index: "65000.05", rate: 1_875_000, to: 1, last: 650_100, want: "65000.1"},
		"the middle of 65000 and 65008":      {index: "65000", inputs: []input{{1, "65000", 650_000, 650_080}}, last: 651_000, want: "65004.0"},
		"the average of 4 and 8":             {index: "65000", inputs: []input{{1, "65000", 650_000, 650_080}, {2, "65002", 650_000, 650_200}}, last: 651_000, want: "65006.0"},
		"an empty side is left out":          {index: "65000", inputs: []input{{1, "65000", 650_000, 650_080}, {2, "65000", 650_000, 0}, {3, "65000", 0, 650_200}}, last: 651_000, want: "65004.0"},
		"a basis that is half a tick":        {index: "65000", inputs: []input{{1, "65000", 650_000, 650_001}}, last: 651_000, want: "65000.0"},
		"one input a second":                 {index: "65000", inputs: []input{{1, "65000", 650_000, 650_080}, {1, "65000", 660_000, 660_000}}, last: 651_000, want: "65004.0"},
		"no more than 3 % above":             {index: "65000", inputs: []input{{1, "65000", 690_000, 690_000}}, last: 700_000, want: "66950.0"},
		"no more than 3 % below":             {index: "65000", inputs: []input{{1, "65000", 620_000, 620_000}}, last: 600_000, want: "63050.0"},
		"3 % above lies between ticks":       {index: "3.37", inputs: []input{{1, "3.37", 40, 40}}, last: 40, want: "3.4"}, // 3.4711 would round to 3.5
		"3 % below lies between ticks":       {index: "3.34", inputs: []input{{1, "3.34", 20, 20}}, last: 20, want: "3.3"}, // 3.2398 would round to 3.2
		"no tick within 3 %":                 {index: "1.05", last: 20, want: "1.0"},
		"no tick within 3 %, and well above": {index: "1.05", inputs: []input{{1, "1.05", 20, 20}}, last: 20, want: "1.1"}, // 1.0815
	} {
		t.Run(name, func(t *testing.T) {
			index, ok := c.Index(number(tt.index))
			if !ok {
				t.Fatal("the index is refused")
			}
			mark := c.Mark(Pricing{Index: index, Rate: tt.rate, ToFunding: tt.to, Interval: hour, Window: fed(c, tt.inputs...), Last: tt.last})
			if got := c.Price(mark).String(); got != tt.want {
				t.Errorf("%s, not %s", got, tt.want)
			}
		})
	}
}

// TestWindow: the last 30 samples count, one of each second, and no side of the clock's second is skipped.
func TestWindow(t *testing.T) {
	c := NewContract(btc().Normal())
	w := &Window{}
	index, _ := c.Index(number("65000"))
	for n := range int64(31) { // the first one is far off, and is the one that leaves
		middle := int64(650_100)
		if n == 0 {
			middle = 660_000
		}
		w.Add(c, scalar.Time(n)*scalar.Second+999_999, index, middle, middle)
		w.Add(c, scalar.Time(n+1)*scalar.Second-1, index, 640_000, 640_000)
	}
	if sum, count := w.sum(); count != 30 || sum.Int64() != 30*2*10*1e8 {
		t.Errorf("%d samples sum to %s", count, sum)
	}
	again := new(Window)
	if err := pack.Read(pack.Append(nil, w.Visit), again.Visit); err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		for _, w := range []*Window{w, again} {
			w.Add(c, scalar.Time(40+n)*scalar.Second, index, 0, 1)
		}
	}
	a, n := w.sum()
	if b, m := again.sum(); a.Cmp(b) != 0 || n != m || n != 27 {
		t.Errorf("the window that was saved has %s of %d, the other %s of %d", b, m, a, n)
	}
}

// TestIndex: 8 decimals whatever the tick, and nothing that no mark could follow.
func TestIndex(t *testing.T) {
	c := NewContract(btc().Normal())
	for text, want := range map[string]bool{"65000.12345678": true, "65000.123456789": false, "0": false, "-1": false,
		"9999999999": false, "9708737863.9": true, "9708737864.1": false} { // × 1.03 is 9,999,999,999.8, and 10,000,000,000.02
		units, ok := c.Index(number(text))
		if ok != want {
			t.Errorf("%s: %t", text, ok)
		}
		if price := c.IndexPrice(units); ok && price.Cmp(number(text)) != 0 {
			t.Errorf("%s is %s", text, price)
		}
	}
	if units, _ := c.Index(number("65000")); c.IndexPrice(units).String() != "65000.0" {
		t.Error("an index price does not print at tick precision")
	}
}

// markOracle is the rule once more, in fractions, in the order in which it is told.
func markOracle(c *Contract, p Pricing, inputs []input) int64 {
	rat := func(d fixed.Decimal) *big.Rat { return new(big.Rat).SetFrac64(d.Coef, fixed.Pow10(int(d.Scale))) }
	tick, index := rat(c.PriceTick), rat(c.IndexPrice(p.Index))
	carried := new(big.Rat).SetFrac64(int64(p.ToFunding), int64(p.Interval))
	carried.Mul(carried, new(big.Rat).SetFrac64(p.Rate, RateUnit))
	carried.Mul(carried.Add(carried, big.NewRat(1, 1)), index)
	basis, sum, count := new(big.Rat).Set(index), new(big.Rat), int64(0)
	var window []input
	for _, i := range inputs {
		if len(window) == 0 || i.second > window[len(window)-1].second {
			window = append(window, i)
		}
	}
	for _, i := range window[max(0, len(window)-30):] {
		if i.bid != 0 && i.ask != 0 {
			middle := new(big.Rat).Mul(big.NewRat(i.bid+i.ask, 2), tick)
			sum.Add(sum, middle.Sub(middle, rat(number(i.index))))
			count++
		}
	}
	if count > 0 {
		basis.Add(basis, sum.Quo(sum, big.NewRat(count, 1)))
	}
	last := new(big.Rat).Set(index)
	if p.Last != 0 {
		last.Mul(big.NewRat(p.Last, 1), tick)
	}
	terms := []*big.Rat{carried, basis, last}
	slices.SortFunc(terms, (*big.Rat).Cmp)
	low, high := new(big.Rat).Mul(index, big.NewRat(97, 100)), new(big.Rat).Mul(index, big.NewRat(103, 100))
	mark := terms[1]
	if mark.Cmp(low) < 0 {
		mark = low
	}
	if mark.Cmp(high) > 0 {
		mark = high
	}
	at := func(n int64) *big.Rat { return new(big.Rat).Mul(big.NewRat(n, 1), tick) }
	ticks := new(big.Rat).Quo(mark, tick)
	n := new(big.Int).Quo(ticks.Num(), ticks.Denom()).Int64()
	switch rest := new(big.Rat).Sub(ticks, big.NewRat(n, 1)).Cmp(big.NewRat(1, 2)); {
	case rest > 0, rest == 0 && n%2 == 1:
		n++
	}
	if at(n).Cmp(high) > 0 && at(n-1).Cmp(low) >= 0 {
		n--
	} else if at(n).Cmp(low) < 0 && at(n+1).Cmp(high) <= 0 {
		n++
	}
	return max(n, 1)
}

// TestMarkIsTheRule holds the mark price against the rule in fractions, for ticks of every kind.
func TestMarkIsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := btc()
		i.PriceTick = rapid.SampledFrom([]fixed.Decimal{number("0.1"), number("2.5"), number("0.00000025"), number("0.0000000001"), number("1000")}).Draw(t, "tick")
		if i.PriceTick.Scale > 7 {
			i.AmountStep, i.MinAmount, i.MaxAmount = number("1000"), number("1000"), number("1000000")
		}
		i = i.Normal()
		if faults := i.Check(); len(faults) > 0 {
			t.Fatalf("%v", faults)
		}
		c := NewContract(i)
		ticks := func(name string) int64 { return rapid.Int64Range(1, 60).Draw(t, name) }
		scale := rapid.SampledFrom([]int64{1, 17, 1_000, 65_003, 90_000_001}).Draw(t, "scale")
		price := func(name string) (int64, string) {
			for n := int64(1); ; n *= 10 { // what is drawn may be below 10⁻⁸
				tick, _ := i.PriceTick.Times(1)
				d := fixed.Decimal{Coef: ticks(name) * scale * tick.Coef * n, Scale: tick.Scale}
				off := rapid.Int64Range(-3, 3).Draw(t, name+" off the tick")
				if units, ok := d.In(8); ok && units+off > 0 {
					d = fixed.Decimal{Coef: units + off, Scale: 8}
				}
				if units, ok := c.Index(d); ok {
					return units, d.String()
				} else if n > 1e10 {
					t.Skip("no such price")
				}
			}
		}
		var inputs []input
		second := int64(1_800_000_000)
		for range rapid.IntRange(0, 40).Draw(t, "inputs") {
			second += rapid.Int64Range(0, 2).Draw(t, "seconds")
			_, text := price("index of then")
			in := input{second: second, index: text}
			if rapid.IntRange(0, 4).Draw(t, "sides") > 0 {
				in.bid = ticks("bid") * scale
				in.ask = in.bid + ticks("spread")
			}
			inputs = append(inputs, in)
		}
		index, _ := price("index")
		p := Pricing{Index: index, Rate: rapid.Int64Range(-75_000_000, 75_000_000).Draw(t, "rate"), Interval: scalar.Hour,
			ToFunding: scalar.Time(rapid.Int64Range(0, int64(scalar.Hour)).Draw(t, "to funding")), Window: fed(c, inputs...)}
		if rapid.Bool().Draw(t, "traded") {
			p.Last = ticks("last") * scale
		}
		if got, want := c.Mark(p), markOracle(c, p, inputs); got != want {
			t.Fatalf("%d ticks, the rule says %d", got, want)
		}
	})
}

// TestIndexBeyondCounting: an index price that is too high to be counted in ticks is refused, however fine the tick is.
func TestIndexBeyondCounting(t *testing.T) {
	for scale := uint8(6); scale <= 10; scale++ {
		c := NewContract(Instrument{Symbol: "A", PriceTick: fixed.Decimal{Coef: 1, Scale: scale}, AmountStep: fixed.Decimal{Coef: 1000000},
			ContractSize: fixed.Decimal{Coef: 1}, MinAmount: fixed.Decimal{Coef: 1000000}, MaxAmount: fixed.Decimal{Coef: 1000000},
			Tiers: []Tier{{InitMarginReq: fixed.Decimal{Coef: 5}, MaintMarginReq: fixed.Decimal{Coef: 2}}}})
		for price := int64(1); price < MaxPrice; price = price*3 + 1 {
			_, ok := c.Index(fixed.Decimal{Coef: price})
			ticks, fits := fixed.MulInt64(price, fixed.Pow10(int(scale)))
			if countable := fits && ticks <= c.HighestTicks(); ok && !countable {
				t.Errorf("tick 10^-%d: %d is an index price", scale, price)
			}
		}
	}
}
