package margin

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// perpetual is an instrument like those that the venue starts with: a tick of 0.1, a step of 0.001.
func perpetual(least string) *market.Contract {
	i := market.Instrument{Symbol: "BTCUSDC_PERP", Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		PriceTick: number("0.1"), AmountStep: number("0.001"), MinAmount: number(least), MaxAmount: number("1000"), ContractSize: number("1"),
		InitMarginReq: number("5"), MaintMarginReq: number("2.5"), MaxLeverage: 13, FundingIntervalSeconds: 3600,
		PriceBand: number("5"), LimitBand: number("20"), MakerFee: number("2"), TakerFee: number("5")}.Normal()
	if faults := i.Check(); len(faults) > 0 {
		panic(faults[0].Path.String() + " " + faults[0].Message)
	}
	return market.NewContract(i)
}

func TestStepSize(t *testing.T) {
	for _, a := range []struct {
		least             string
		began, rest, want int64
	}{
		{"0.001", 1000, 1000, 200},
		{"0.001", 1000, 150, 150}, // at most the rest
		{"0.001", 1001, 1001, 201},
		{"0.001", 1004, 1004, 201}, // a fifth rounded up to a step
		{"0.001", 1, 1, 1},
		{"0.001", 4, 4, 1},
		{"0.010", 20, 20, 10}, // at least the least amount
		{"0.010", 20, 7, 7},
		{"0.001", 9_000_000_000_000_000_004, 9_000_000_000_000_000_000, 1_800_000_000_000_000_001},
	} {
		if got := StepSize(perpetual(a.least), a.began, a.rest); got != a.want {
			t.Errorf("of %d with %d left, at least %s: %d, not %d", a.began, a.rest, a.least, got, a.want)
		}
	}
}

// TestBankruptcyPrice holds worked values: p = m − E × (Mᵢ ÷ M) ÷ (s × c).
func TestBankruptcyPrice(t *testing.T) {
	for _, a := range []struct {
		mark, size                 string
		equity, maintenance, total string
		want                       string
	}{
		// A long of 1 at 50,000 with 1,600 of equity alone in its account: all is gone at 48,400.
		{"50000", "1", "1600", "1923", "1923", "48400"},
		// The short likewise above: 51,600.
		{"50000", "-1", "1600", "1923", "1923", "51600"},
		// Half of the account's maintenance margin, half of its equity.
		{"50000", "1", "1600", "1000", "2000", "49200"},
		// 50,000 − 100 ÷ 3 = 49,966.66… is up to the tick for a long; 50,033.33… down for a short.
		{"50000", "3", "100", "7", "7", "49966.7"},
		{"50000", "-3", "100", "7", "7", "50033.3"},
		// Equity below zero puts it on the other side of mark: 50,000 + 50 ÷ 2.
		{"50000", "2", "-50", "7", "7", "50025"},
		{"50000", "-2", "-50", "7", "7", "49975"},
		// A mark between ticks: 50,000.05 − 0.01 ÷ 1 is 50,000.04, which is up to 50,000.1.
		{"50000.05", "1", "0.01", "7", "7", "50000.1"},
		{"50000.05", "-1", "0.01", "7", "7", "50000"},
		// At least one tick, and no higher than prices are.
		{"10", "1", "1000", "7", "7", "0.1"},
		{"10", "-0.001", "-1000", "7", "7", "0.1"},
		{"10", "0.001", "-90000000000", "7", "7", "9999999999.9"},
	} {
		c := perpetual("0.001")
		mark, _ := c.Marks(number(a.mark))
		size, _ := c.Steps(number(a.size))
		money := func(s string) fixed.Money { m, _ := fixed.MoneyOf(number(s)); return m }
		got := c.Price(BankruptcyPrice(c, mark, size, money(a.equity).Wide(), money(a.maintenance), money(a.total).Wide()))
		if got.Cmp(number(a.want)) != 0 {
			t.Errorf("%+v: %s", a, got)
		}
	}
}

// TestBankruptcyPriceAgreesWithFractions holds the price against its formula on exact fractions.
func TestBankruptcyPriceAgreesWithFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := contract([]market.Tier{{InitMarginReq: number("5"), MaintMarginReq: number("2.5")}})
		mark := rapid.Int64Range(1, 1e13).Draw(t, "mark")
		size := rapid.Int64Range(1, 1e9).Draw(t, "size") * rapid.SampledFrom([]int64{-1, 1}).Draw(t, "sign")
		equity := rapid.Int64Range(-4e18, 4e18).Draw(t, "equity") >> rapid.IntRange(0, 50).Draw(t, "less")
		total := rapid.Int64Range(1, 4e18).Draw(t, "total")
		mine := rapid.Int64Range(1, total).Draw(t, "maintenance")
		p := new(big.Rat).Mul(rat(fixed.Money(equity).Decimal()), big.NewRat(mine, total))
		p.Quo(p, new(big.Rat).Mul(rat(c.Amount(size)), rat(c.ContractSize)))
		p.Sub(rat(c.MarkPrice(mark)), p).Quo(p, rat(c.PriceTick))
		ticks, rest := new(big.Int).DivMod(p.Num(), p.Denom(), new(big.Int))
		if size > 0 && rest.Sign() > 0 {
			ticks.Add(ticks, big.NewInt(1))
		}
		if ticks.Sign() <= 0 {
			ticks.SetInt64(1)
		} else if highest := big.NewInt(c.HighestTicks()); ticks.Cmp(highest) > 0 {
			ticks = highest
		}
		got := BankruptcyPrice(c, mark, size, fixed.WideOf(equity), fixed.Money(mine), fixed.WideOf(total))
		if got != ticks.Int64() {
			t.Fatalf("%d ticks, not %s", got, ticks)
		}
	})
}

func TestLiquidationFee(t *testing.T) {
	for _, a := range []struct{ notional, equity, want fixed.Money }{
		{1000 * fixed.Unit, 100 * fixed.Unit, 5 * fixed.Unit}, // 0.5 %
		{1000 * fixed.Unit, 3 * fixed.Unit, 3 * fixed.Unit},   // no more than is there
		{1000 * fixed.Unit, 0, 0},
		{1000 * fixed.Unit, -7, 0},
		{1, 100, 1}, // rounded up
		{200, 100, 1},
		{201, 100, 2},
		{0, 100, 0},
	} {
		if got := LiquidationFee(a.notional, a.equity); got != a.want {
			t.Errorf("of %s with %s left: %s, not %s", a.notional, a.equity, got, a.want)
		}
	}
}

func TestScore(t *testing.T) {
	for _, a := range []struct{ unrealized, cost, notional, equity, want string }{
		// 500 ÷ 10,000 × (9,500 ÷ 1,900): 5 % gained with a leverage of 5.
		{"500", "10000", "9500", "1900", "0.25"},
		{"500", "-10000", "9500", "1900", "0.25"}, // a short's cost is negative
		// Losers come last, those with the most leverage behind the others with the least: −5 % ÷ 5.
		{"-500", "10000", "9500", "1900", "-0.01"},
		{"0", "10000", "9500", "1900", "0"},
		// Equity counts as 1 at least.
		{"500", "10000", "9500", "-3", "475"},
		{"500", "10000", "9500", "0.5", "475"},
		// Cut toward zero at 8 decimals: 1 ÷ 3 × (1 ÷ 1), and −1 ÷ 3.
		{"1", "3", "1", "1", "0.33333333"},
		{"-1", "3", "1", "1", "-0.33333333"},
		{"-0.00000001", "90000000000", "90000000000", "1", "0"},
		{"5", "0", "5", "1", "0"}, // that cost nothing
	} {
		money := func(s string) fixed.Money { m, _ := fixed.MoneyOf(number(s)); return m }
		want, _ := number(a.want).In(8)
		if got := Score(money(a.unrealized), money(a.cost), money(a.notional), money(a.equity)); got != fixed.WideOf(want) {
			t.Errorf("%+v: %v", a, got)
		}
	}
}

// TestScoreAgreesWithFractions holds the score against its formula on exact fractions.
func TestScoreAgreesWithFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string) int64 {
			return rapid.Int64Range(-9e18, 9e18).Draw(t, name) >> rapid.IntRange(0, 62).Draw(t, name+" less")
		}
		unrealized, cost, notional, equity := amount("unrealized"), amount("cost"), fixed.Abs(amount("notional"))+1, amount("equity")
		got := Score(fixed.Money(unrealized), fixed.Money(cost), fixed.Money(notional), fixed.Money(equity))
		if cost == 0 {
			if got != (fixed.Wide{}) {
				t.Fatal("what cost nothing has a score")
			}
			return
		}
		lev := big.NewRat(notional, max(equity, int64(fixed.Unit)))
		score := big.NewRat(unrealized, fixed.Abs(cost))
		if unrealized > 0 {
			score.Mul(score, lev)
		} else {
			score.Quo(score, lev)
		}
		score.Mul(score, big.NewRat(1e8, 1))
		want := new(big.Int).Quo(score.Num(), score.Denom()) // toward zero
		if want.BitLen() > 127 {
			t.Skip("more than any account can have")
		}
		high, low := got.DivMod(1e18)
		upper, ok := high.Int64()
		if made := new(big.Int).Add(new(big.Int).Mul(big.NewInt(upper), big.NewInt(1e18)), big.NewInt(low)); ok && made.Cmp(want) != 0 {
			t.Fatalf("%s, not %s", made, want)
		}
	})
}

// TestBearable checks that no step more could be taken without the equity ending below zero, and that all that are taken
// leave it at or above.
func TestBearable(t *testing.T) {
	for _, a := range []struct {
		equity, each fixed.Money
		steps, want  int64
	}{
		{100, -7, 50, 14}, {100, -7, 10, 10}, {98, -7, 50, 14}, {100, 7, 50, 50}, {-5, -1, 50, 0}, {0, -1, 50, 0}, {0, 0, 50, 50},
		{-100, 2, 50, 50}, {-101, 2, 50, 0}, {-1, 0, 50, 0},
	} {
		if got := Bearable(a.equity, a.each, a.steps); got != a.want {
			t.Errorf("with %d, %d each: %d of %d, not %d", a.equity, a.each, got, a.steps, a.want)
		}
	}
}

// TestBound checks that up to the bound the account's slack changes by less than the share, to the unit; and for an
// instrument of one bracket that the bound is as far as it may be.
func TestBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tiers := []market.Tier{{InitMarginReq: number("5"), MaintMarginReq: number("2.5")},
			{NotionalFrom: 100 * fixed.Unit, InitMarginReq: number("20"), MaintMarginReq: number("10")},
			{NotionalFrom: 1000 * fixed.Unit, InitMarginReq: number("30"), MaintMarginReq: number("8")}}
		tiers = tiers[:rapid.IntRange(1, 3).Draw(t, "tiers")]
		c := contract(tiers)
		e := Exposure{Contract: c, Mark: rapid.Int64Range(1, 1e12).Draw(t, "mark"), Size: rapid.Int64Range(1, 1e6).Draw(t, "size"),
			Floor: fixed.Leverage(13), MaintenanceFloor: fixed.Leverage(26)}
		if rapid.Bool().Draw(t, "short") {
			e.Size = -e.Size
		}
		share := fixed.Money(rapid.Int64Range(0, 1e15).Draw(t, "share") >> rapid.IntRange(0, 50).Draw(t, "less"))
		lacking := rapid.Bool().Draw(t, "lacking")
		slack := func(mark int64) fixed.Money {
			moved := e
			moved.Mark = mark
			r := moved.Requirements()
			return r.Unrealized.Sub(r.Maintenance)
		}
		bound, above := e.Bound(share, lacking)
		if above != ((e.Size < 0) != lacking) {
			t.Fatal("the bound is on the wrong side")
		}
		change := func(mark int64) fixed.Money {
			if lacking {
				return slack(mark).Sub(slack(e.Mark))
			}
			return slack(e.Mark).Sub(slack(mark))
		}
		within := rapid.Int64Range(min(e.Mark, bound), max(e.Mark, min(bound, 1e13))).Draw(t, "mark within")
		if got := change(within); got > max(share, roundings) || share > roundings && lacking && got >= share {
			t.Fatalf("at %d of %d to %d the slack has changed by %s of %s", within, e.Mark, bound, got, share)
		}
		beyond := bound - 1 - (e.Mark-bound)/100
		if above {
			beyond = bound + 1 + (bound-e.Mark)/100
		}
		each := c.Value(e.Size, 1).Abs().Div(c.MarkDen, fixed.Ceiling)
		if most, _ := each.Money(); len(tiers) == 1 && beyond > 0 && beyond < 1e13 && change(beyond) <= share-2*roundings-2*most {
			t.Fatalf("at %d, beyond %d, the slack has changed by no more than %s of %s", beyond, bound, change(beyond), share)
		}
	})
}

// TestShares checks that the shares of an account's slack do not add up to more than there is.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slack := fixed.Money(rapid.Int64Range(-9e18, 9e18).Draw(t, "slack"))
		var total fixed.Wide
		var shared fixed.Money
		notionals := rapid.SliceOfN(rapid.Int64Range(0, 4e18), 1, 40).Draw(t, "notionals")
		for _, n := range notionals {
			total = total.Add(fixed.WideOf(n))
		}
		for _, n := range notionals {
			share := Share(slack, fixed.Money(n), total)
			if share < 0 {
				t.Fatalf("a share of %s", share)
			}
			shared += share
		}
		if shared > slack.Abs() {
			t.Fatalf("%s are shared out of %s", shared, slack)
		}
	})
}
