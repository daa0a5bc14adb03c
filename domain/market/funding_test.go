package market

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// offer is what rests at one price: ticks and steps.
type offer struct{ ticks, steps int64 }

func walked(c *Contract, side []offer) *Impact {
	w := c.Impact()
	for _, l := range side {
		if w.Take(l.ticks, l.steps) {
			break
		}
	}
	return w
}

// TestPremium holds worked values against the formula.
func TestPremium(t *testing.T) {
	c := NewContract(btc().Normal())
	// Bids of 0.1 at 65010 (6501 USDC) and at 65000: 3499 USDC of the second. 10,000 USDC sell at
	// 10,000 ÷ (0.1 + 3499/65000) = 65006.500650065…
	bids := []offer{{650_100, 100}, {650_000, 100}}
	// Asks of 0.1 at 65000 (6500 USDC) and at 65020: 3500 USDC of the second. They are bought at 65006.998600279…
	asks := []offer{{650_000, 100}, {650_200, 100}}
	far := []offer{{700_000, 1000}}
	for name, tt := range map[string]struct {
		index      string
		bids, asks []offer
		want       string
	}{
		"bids above the index": {"64900", bids, far, "0.001640996149"}, // 65006.500650065… ÷ 64900 − 1
		"asks below the index": {"65100", []offer{{600_000, 1000}}, asks, "-0.001428592930"},
		"the index between":    {"65006.7", bids, asks, "0.000000000000"},
		"bids alone":           {"64900", bids, nil, ""},
		"asks alone":           {"65100", nil, asks, ""},
		"bids a cent short":    {"64900", []offer{{650_100, 100}, {349_899, 100}}, far, ""}, // 6501 + 3498.99 USDC
		"bids to the last":     {"64900", []offer{{650_100, 100}, {349_900, 100}}, far, "0.000000000000"},
		"one level holds more": {"50000", []offer{{650_000, 1_000_000}}, far, "0.300000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			index, _ := c.Index(number(tt.index))
			p, ok := c.Premium(index, walked(c, tt.bids), walked(c, tt.asks))
			if ok != (tt.want != "") || ok && p.String() != tt.want {
				t.Errorf("%s %t, not %q", p, ok, tt.want)
			}
		})
	}
}

// TestPremiumIsTheRule holds premiums against the rule in fractions: by how many contracts 10,000 USDC trade.
func TestPremiumIsTheRule(t *testing.T) {
	i := btc()
	i.ContractSize, i.PriceTick = number("0.07"), number("0.5")
	c := NewContract(i.Normal())
	rapid.Check(t, func(t *rapid.T) {
		side := func(name string, from, step int64) (out []offer) {
			for n := range rapid.Int64Range(0, 8).Draw(t, name) {
				out = append(out, offer{from + n*step, rapid.Int64Range(1, 200_000).Draw(t, "steps")})
			}
			return out
		}
		bids, asks := side("bids", 2_000, -7), side("asks", 2_003, 11)
		impact := func(side []offer) *big.Rat {
			left, contracts := big.NewRat(10_000, 1), new(big.Rat)
			for _, o := range side {
				price, size := big.NewRat(o.ticks, 2), new(big.Rat).Mul(big.NewRat(o.steps, 1000), big.NewRat(7, 100))
				if most := new(big.Rat).Quo(left, price); most.Cmp(size) <= 0 {
					contracts.Add(contracts, most)
					return contracts.Quo(big.NewRat(10_000, 1), contracts)
				}
				contracts.Add(contracts, size)
				left.Sub(left, new(big.Rat).Mul(price, size))
			}
			return nil
		}
		units := rapid.Int64Range(900e8, 1_100e8).Draw(t, "index")
		got, ok := c.Premium(units, walked(c, bids), walked(c, asks))
		bid, ask, index := impact(bids), impact(asks), big.NewRat(units, 1e8)
		if bid == nil || ask == nil {
			if ok {
				t.Fatalf("%s, and a side is short", got)
			}
			return
		}
		premium := new(big.Rat)
		if above := new(big.Rat).Sub(bid, index); above.Sign() > 0 {
			premium.Add(premium, above)
		}
		if below := new(big.Rat).Sub(index, ask); below.Sign() > 0 {
			premium.Sub(premium, below)
		}
		premium.Quo(premium, index)
		off := new(big.Rat).Sub(premium, big.NewRat(got.Coef, 1e12))
		if !ok || off.Abs(off).Cmp(big.NewRat(1, 2e12)) > 0 {
			t.Fatalf("%s %t, the rule says %s", got, ok, premium.FloatString(16))
		}
	})
}

// TestFundingRate holds worked values against the formula: of an hour, an eighth of the rate of 8 hours.
func TestFundingRate(t *testing.T) {
	for name, tt := range map[string]struct {
		samples  []string
		interval int
		want     string
	}{
		"no sample":                 {nil, 3600, "0.00000000"},
		"no premium: the interest":  {[]string{"0"}, 3600, "0.00001250"},                 // 0.01 % ÷ 8
		"a premium near it":         {[]string{"0.0003"}, 3600, "0.00001250"},            // 0.03 % − 0.02 %
		"a premium well above":      {[]string{"0.001"}, 3600, "0.00006250"},             // 0.1 % − 0.05 %
		"a premium well below":      {[]string{"-0.001"}, 3600, "-0.00006250"},           // −0.1 % + 0.05 %
		"8 hours":                   {[]string{"0.001"}, 28_800, "0.00050000"},           //
		"a day":                     {[]string{"0.001"}, 86_400, "0.00150000"},           // × 3
		"the average":               {[]string{"0.001", "0.003"}, 3600, "0.00018750"},    // (0.2 % − 0.05 %) ÷ 8
		"the cap":                   {[]string{"0.5"}, 3600, "0.01875000"},               // 0.75 × (5 % − 2.5 %)
		"the cap below":             {[]string{"-0.5"}, 3600, "-0.01875000"},             //
		"a tie to the even":         {[]string{"0.00100004"}, 3600, "0.00006250"},        // 0.000062505
		"a tie to the even, higher": {[]string{"0.00100012"}, 3600, "0.00006252"},        // 0.000062515
		"beyond a tie":              {[]string{"0.001000040008"}, 3600, "0.00006251"},    // 0.000062505001
		"a tie below zero":          {[]string{"-0.00100012"}, 3600, "-0.00006252"},      //
		"as large as can be":        {[]string{"999999.999999999999"}, 60, "0.01875000"}, //
	} {
		t.Run(name, func(t *testing.T) {
			i := btc()
			i.FundingIntervalSeconds = tt.interval
			c := NewContract(i.Normal())
			var p Premiums
			for _, s := range tt.samples {
				p.Add(number(s))
			}
			if got := Rate(c.FundingRate(p)).String(); got != tt.want {
				t.Errorf("%s, not %s", got, tt.want)
			}
		})
	}
}

// TestFunding: who pays rounds up, who receives down.
func TestFunding(t *testing.T) {
	i := btc()
	i.AmountStep, i.MinAmount, i.ContractSize = number("0.0001"), number("0.0001"), number("1")
	c := NewContract(i.Normal())
	marks := c.TickMarks(650_001) // 65000.1
	for name, tt := range map[string]struct {
		steps, rate int64
		want        string
	}{
		"a long pays":                     {10_000, 1250, "-0.81250125"},           // 65000.1 × 0.0000125
		"a short receives":                {-10_000, 1250, "0.81250125"},           //
		"a long receives":                 {10_000, -1250, "0.81250125"},           //
		"a payment is rounded up":         {1, 1250, "-0.00008126"},                // 0.000081250125
		"what is received is cut":         {-1, 1250, "0.00008125"},                //
		"a payment of less than nothing":  {1, 0, "0"},                             //
		"what is too little is not there": {-1, 1, "0.00000006"},                   // 0.000000065…
		"the largest":                     {10_000_000, 1_875_000, "-1218751.875"}, // 1000 × 65000.1 × 1.875 %
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.Funding(tt.steps, marks, tt.rate).String(); got != tt.want {
				t.Errorf("%s, not %s", got, tt.want)
			}
		})
	}
}

// TestInstants: multiples of the interval since midnight, settlement at 08:00, always after the time that is given.
func TestInstants(t *testing.T) {
	at := func(s string) scalar.Time {
		v, err := scalar.ParseTime("2026-03-31T" + s + "Z")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, tt := range []struct {
		after    scalar.Time
		interval int
		want     scalar.Time
	}{
		{at("09:00:00.000000"), 3600, at("10:00:00.000000")},
		{at("09:59:59.999999"), 3600, at("10:00:00.000000")},
		{at("23:00:00.000001"), 3600, at("00:00:00.000000") + scalar.Day},
		{at("09:00:00.000000"), 28_800, at("16:00:00.000000")},
		{at("09:00:00.000000"), 86_400, at("00:00:00.000000") + scalar.Day},
		{at("23:59:30.000000"), 60, at("00:00:00.000000") + scalar.Day},
		{at("23:20:00.000000"), 7000, at("00:00:00.000000") + scalar.Day}, // does not divide a day
		{at("09:00:00.000000"), 7 * 86_400, at("00:00:00.000000") + scalar.Day},
	} {
		if got := NextFunding(tt.after, tt.interval); got != tt.want {
			t.Errorf("after %s every %d: %s", tt.after, tt.interval, got)
		}
	}
	for after, want := range map[scalar.Time]scalar.Time{
		at("07:59:59.999999"): at("08:00:00.000000"),
		at("08:00:00.000000"): at("08:00:00.000000") + scalar.Day,
		at("23:00:00.000000"): at("08:00:00.000000") + scalar.Day,
	} {
		if got := NextSettlement(after); got != want {
			t.Errorf("settlement after %s: %s", after, got)
		}
	}
}

// TestManyPremiums holds the sums of premiums, which may be wider than 64 bits.
func TestManyPremiums(t *testing.T) {
	var p Premiums
	for range 2000 {
		p.Add(number("-999999.999999999999"))
	}
	want := new(big.Int).Mul(big.NewInt(-999_999_999_999_999_999), big.NewInt(2000))
	if p.Sum.Big().Cmp(want) != 0 || p.Count != 2000 {
		t.Errorf("%s", p.Sum.Big())
	}
	if w := fixed.Mul(-3, 5).Big(); w.Int64() != -15 {
		t.Errorf("%s", w)
	}
}
