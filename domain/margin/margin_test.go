package margin

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

func number(s string) fixed.Decimal {
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

// contract is an instrument whose marks do not come out even in units of 10⁻⁸.
func contract(tiers []market.Tier) *market.Contract {
	i := market.Instrument{Symbol: "ODDUSDC_PERP", Underlying: "ODD", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		PriceTick: number("0.5"), AmountStep: number("0.001"), MinAmount: number("0.001"), MaxAmount: number("1000"), ContractSize: number("0.0003"),
		InitMarginReq: tiers[0].InitMarginReq, MaintMarginReq: tiers[0].MaintMarginReq, MaxLeverage: 13, FundingIntervalSeconds: 3600,
		PriceBand: number("5"), LimitBand: number("20"), MakerFee: number("2"), TakerFee: number("5"), Tiers: tiers}.Normal()
	if faults := i.Check(); len(faults) > 0 {
		panic(faults[0].Path.String() + " " + faults[0].Message)
	}
	return market.NewContract(i)
}

// rat returns d as an exact fraction.
func rat(d fixed.Decimal) *big.Rat {
	r, _ := new(big.Rat).SetString(d.String())
	return r
}

// rounded returns an exact amount in units of 10⁻⁸, rounded up or down.
func rounded(r *big.Rat, up bool) fixed.Money {
	r = new(big.Rat).Mul(r, big.NewRat(1e8, 1))
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if up && m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return fixed.Money(q.Int64())
}

// bracketed is the definition of the marginal tiers on exact fractions.
func bracketed(value, floor *big.Rat, tiers []market.Tier, maintenance bool) *big.Rat {
	sum, from := new(big.Rat), new(big.Rat)
	for n, t := range tiers {
		rate := rat(t.InitMarginReq)
		if maintenance {
			rate = rat(t.MaintMarginReq)
		}
		if rate.Quo(rate, big.NewRat(100, 1)); rate.Cmp(floor) < 0 {
			rate = floor
		}
		to := value
		if n+1 < len(tiers) && rat(tiers[n+1].NotionalFrom.Decimal()).Cmp(value) < 0 {
			to = rat(tiers[n+1].NotionalFrom.Decimal())
		}
		if part := new(big.Rat).Sub(to, from); part.Sign() > 0 {
			sum.Add(sum, part.Mul(part, rate))
			from = to
		}
	}
	return sum
}

// TestRequirementsAgreeWithFractions holds the computation in integers against the formulas on exact fractions.
func TestRequirementsAgreeWithFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tiers := []market.Tier{{InitMarginReq: number("1.25"), MaintMarginReq: number("0.6")},
			{NotionalFrom: 10_000 * fixed.Unit, InitMarginReq: number("7.1234"), MaintMarginReq: number("5")},
			{NotionalFrom: fixed.Money(12_345_67890123), InitMarginReq: number("50"), MaintMarginReq: number("33.3333")}}
		tiers = tiers[rapid.IntRange(0, 2).Draw(t, "tiers"):]
		if tiers[0].InitMarginReq.Scale > 2 {
			tiers[0].InitMarginReq = number("7.12")
		}
		tiers[0].MaintMarginReq, tiers[0].NotionalFrom = number("0.6"), 0
		c := contract(tiers)
		leverage := rapid.IntRange(1, 13).Draw(t, "leverage")
		e := Exposure{Contract: c, Mark: rapid.Int64Range(1, 1e10).Draw(t, "mark"), Size: rapid.Int64Range(-1e7, 1e7).Draw(t, "size"),
			Cost: fixed.Money(rapid.Int64Range(-1e14, 1e14).Draw(t, "cost")), Bids: fixed.Money(rapid.Int64Range(0, 1e14).Draw(t, "bids")),
			Asks: fixed.Money(rapid.Int64Range(0, 1e14).Draw(t, "asks")), Floor: fixed.Leverage(leverage),
			MaintenanceFloor: fixed.Leverage(leverage).Half(), TakerFee: rapid.Int64Range(0, 1e6).Draw(t, "fee")}
		value := rat(c.MarkPrice(e.Mark))
		value.Mul(value, rat(c.Amount(e.Size))).Mul(value, rat(c.ContractSize))
		most := new(big.Rat).Abs(new(big.Rat).Add(value, rat(e.Bids.Decimal())))
		if other := new(big.Rat).Abs(new(big.Rat).Sub(value, rat(e.Asks.Decimal()))); other.Cmp(most) > 0 {
			most = other
		}
		absolute := new(big.Rat).Abs(value)
		floor, half := big.NewRat(1, int64(leverage)), big.NewRat(1, 2*int64(leverage))
		want := Requirements{Initial: rounded(bracketed(most, floor, tiers, false), true),
			Fees: rounded(new(big.Rat).Mul(rat((e.Bids+e.Asks).Decimal()), big.NewRat(e.TakerFee, 1e8)), true)}
		if e.Size != 0 {
			want.Notional = rounded(absolute, false)
			want.Unrealized = rounded(new(big.Rat).Sub(value, rat(e.Cost.Decimal())), false)
			want.Used = rounded(bracketed(absolute, floor, tiers, false), true)
			want.Maintenance = rounded(bracketed(absolute, half, tiers, true), true)
		}
		if got := e.Requirements(); got != want {
			t.Fatalf("%+v\nis %+v,\nnot %+v", e, got, want)
		}
	})
}

// TestLiquidationPrice checks that equity is below maintenance at the price that is found, and not one tick before; that
// an account which is below already has the mark; and that none is found only where the last price there is would not do.
func TestLiquidationPrice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := contract([]market.Tier{{InitMarginReq: number("5"), MaintMarginReq: number("2.5")}, {NotionalFrom: 100 * fixed.Unit, InitMarginReq: number("20"), MaintMarginReq: number("10")}})
		e := Exposure{Contract: c, Mark: rapid.Int64Range(1e6, 1e15).Draw(t, "mark"), Size: rapid.Int64Range(-1e6, 1e6).Draw(t, "size"),
			Floor: fixed.Leverage(13), MaintenanceFloor: fixed.Leverage(26)}
		e.Size /= max(1, e.Mark/1e9) // so that what it is worth can be counted
		e.Cost = fixed.Money(rapid.Int64Range(-1e15, 1e15).Draw(t, "cost"))
		account := Standing{Balance: fixed.WideOf(rapid.Int64Range(0, 4e18).Draw(t, "balance") >> rapid.IntRange(0, 40).Draw(t, "less"))}
		account.Add(e)
		price := LiquidationPrice(account, e)
		if e.Size == 0 {
			if !price.IsZero() {
				t.Fatalf("no position is liquidated at %s", price)
			}
			return
		}
		if account.Risk() == Liquidation {
			if price != c.MarkPrice(e.Mark) {
				t.Fatalf("it is below at %s, and not only at %s", c.MarkPrice(e.Mark), price)
			}
			return
		}
		liquidated := func(ticks int64) bool {
			moved := e
			moved.Mark = c.TickMarks(ticks)
			then := Standing{Balance: account.Balance}
			then.Add(moved)
			return then.Risk() == Liquidation
		}
		better, last := int64(1), int64(1) // a tick towards mark; the last price there is
		if e.Size < 0 {
			better, last = -1, c.HighestTicks()
		}
		ticks, whole := c.Ticks(price)
		switch {
		case price.IsZero() && liquidated(last):
			t.Fatal("there is a price")
		case price.IsZero():
		case !whole || !liquidated(ticks):
			t.Fatalf("at %s it is not liquidated", price)
		case liquidated(ticks + better):
			t.Fatalf("a tick before %s it is liquidated already", price)
		}
	})
}

// TestLiquidationPriceIsAsHighAsPricesAre checks shorts at prices of many ticks, up to the last price there is, and where
// what a position would be worth cannot be counted.
func TestLiquidationPriceIsAsHighAsPricesAre(t *testing.T) {
	listed := func(tick, step, size string) *market.Contract {
		i := market.Instrument{Symbol: "FINEUSDC_PERP", Underlying: "FINE", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
			PriceTick: number(tick), AmountStep: number(step), MinAmount: number(step), MaxAmount: number("1000"), ContractSize: number(size),
			InitMarginReq: number("5"), MaintMarginReq: number("2.5"), MaxLeverage: 13, FundingIntervalSeconds: 3600,
			PriceBand: number("5"), LimitBand: number("20"), MakerFee: number("0"), TakerFee: number("0")}.Normal()
		if faults := i.Check(); len(faults) > 0 {
			t.Fatal(faults)
		}
		return market.NewContract(i)
	}
	for _, a := range []struct{ tick, step, size, mark, amount, balance, want string }{
		{"0.01", "0.001", "1", "65000", "1", "40000", "102439.03"}, // 10,243,903 ticks
		{"0.1", "0.001", "1", "200000", "1", "100000", "292683"},
		{"0.01", "0.001", "1", "65000", "0.001", "9000000", "8780551219.52"},
		{"0.1", "0.001", "1", "65000", "0.001", "10249000", "9999087804.9"},
		{"0.1", "0.001", "1", "65000", "0.001", "10250000", "0"}, // some 10¹⁰ would do, and no price is that high
		{"0.000001", "0.01", "1", "2", "0.01", "39000000000", "0"},
		{"1", "1", "1000", "2", "1000", "30000000000", "29271"}, // the position is worth some 3·10¹⁸ units then
		{"1", "1", "1000000", "2", "1000", "39000000000", "41"},
	} {
		c := listed(a.tick, a.step, a.size)
		size, _ := c.Steps(number(a.amount))
		mark, _ := c.Marks(number(a.mark))
		balance, _ := fixed.MoneyOf(number(a.balance))
		e := Exposure{Contract: c, Mark: mark, Size: -size, Floor: fixed.Leverage(20), MaintenanceFloor: fixed.Leverage(40)}
		e.Cost = e.Requirements().Unrealized // so that nothing is gained or lost yet
		account := Standing{Balance: balance.Wide()}
		account.Add(e)
		if got := LiquidationPrice(account, e); got.Cmp(number(a.want)) != 0 {
			t.Errorf("%+v: %s", a, got)
		}
	}
}

func TestRisk(t *testing.T) {
	for _, c := range []struct {
		balance, maintenance fixed.Money
		risk                 RiskState
		ratio                string
	}{
		{100, 0, Normal, "0.0000"}, {-5, 0, Liquidation, "9999.9999"}, {0, 0, Normal, "0.0000"}, {100, 79, Normal, "0.7900"}, {100, 80, MarginCall, "0.8000"}, {100, 100, MarginCall, "1.0000"},
		{100, 101, Liquidation, "1.0100"}, {0, 1, Liquidation, "9999.9999"}, {-1, 1, Liquidation, "9999.9999"}, {1, 1e9, Liquidation, "9999.9999"}, {3, 1, Normal, "0.3334"},
	} {
		s := Standing{Balance: c.balance.Wide(), Maintenance: c.maintenance.Wide()}
		if s.Risk() != c.risk || s.Ratio().String() != c.ratio {
			t.Errorf("%d of %d is %s, %s", c.maintenance, c.balance, s.Risk(), s.Ratio())
		}
	}
}

func TestFee(t *testing.T) {
	for _, c := range []struct {
		notional fixed.Money
		parts    int64
		want     fixed.Money
	}{{1, 1, 1}, {1, -1, 0}, {1e8, 50_000, 50_000}, {1e8 + 1, 50_000, 50_001}, {1e8 + 1, -50_000, -50_000}, {0, 5, 0}, {5, 0, 0}} {
		if got := Fee(c.notional, c.parts); got != c.want {
			t.Errorf("%d parts of %d are %d, not %d", c.parts, c.notional, got, c.want)
		}
	}
}

// TestWhatAnAccountHasIsSummedUpWide: the sums over an account's instruments are exact where they are more than money can
// be, and so are the judgements by them.
func TestWhatAnAccountHasIsSummedUpWide(t *testing.T) {
	c := contract([]market.Tier{{InitMarginReq: number("5"), MaintMarginReq: number("2.5")}})
	e := Exposure{Contract: c, Floor: fixed.Leverage(13), MaintenanceFloor: fixed.Leverage(26)}
	e.Mark, _ = c.Marks(number("1000000000"))
	e.Size, _ = c.Steps(number("100000")) // 30 billion, and nothing paid for it
	one := e.Requirements()
	if one.Unrealized != 30_000_000_000*fixed.Unit {
		t.Fatalf("one instrument is worth %s", one.Unrealized)
	}
	account, equity, maintenance := Standing{}, new(big.Int), new(big.Int)
	for n := range 1000 {
		account.Add(e)
		equity.Add(equity, big.NewInt(int64(one.Unrealized)))
		maintenance.Add(maintenance, big.NewInt(int64(one.Maintenance)))
		if account.Equity().Big().Cmp(equity) != 0 || account.Maintenance.Big().Cmp(maintenance) != 0 {
			t.Fatalf("%d instruments: %s and %s", n+1, account.Equity().Big(), account.Maintenance.Big())
		}
		if account.Risk() != Normal || account.Ratio().String() != "0.0385" || account.Available().Sign() <= 0 { // a 26th, up
			t.Fatalf("%d instruments: %s, %s", n+1, account.Risk(), account.Ratio())
		}
	}
	if account.Withdrawable() != 0 { // of a balance of nothing
		t.Errorf("%s can be withdrawn", account.Withdrawable())
	}
	e.Size, e.Cost = -e.Size, 0
	for range 2000 {
		account.Add(e)
	}
	if account.Risk() != Liquidation || account.Equity().Capped() != -math.MaxInt64 {
		t.Errorf("%s with %s", account.Risk(), account.Equity().Capped())
	}
}
