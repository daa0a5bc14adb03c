package market

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

func number(s string) fixed.Decimal {
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

func btc() Instrument {
	return Instrument{Symbol: "BTCUSDC_PERP", Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		PriceTick: number("0.1"), AmountStep: number("0.001"), MinAmount: number("0.001"), MaxAmount: number("1000"), ContractSize: number("1"),
		InitMarginReq: number("5"), MaintMarginReq: number("2.5"), MaxLeverage: 13, FundingIntervalSeconds: 3600,
		PriceBand: number("5"), LimitBand: number("20"), MakerFee: number("2"), TakerFee: number("5")}
}

// TestCheck changes one thing of a good instrument at a time, and looks for the fault.
func TestCheck(t *testing.T) {
	if faults := btc().Normal().check(); len(faults) > 0 {
		t.Fatalf("a good instrument has faults: %v", faults)
	}
	tier := func(from fixed.Money, initial, maintenance string) Tier {
		return Tier{from, number(initial), number(maintenance), 0}
	}
	for name, c := range map[string]struct {
		field  string
		change func(i *Instrument)
	}{
		"no symbol":             {"symbol", func(i *Instrument) { i.Symbol = "" }},
		"lower-case symbol":     {"symbol", func(i *Instrument) { i.Symbol = "btcusdc_perp" }},
		"no underlying":         {"underlying", func(i *Instrument) { i.Underlying = "" }},
		"another currency":      {"settlement_currency", func(i *Instrument) { i.SettlementCurrency = "EUR" }},
		"inverse":               {"quote_currency", func(i *Instrument) { i.QuoteCurrency = "USD" }},
		"unknown status":        {"status", func(i *Instrument) { i.Status = "settled" }},
		"no tick":               {"price_tick", func(i *Instrument) { i.PriceTick = fixed.Decimal{} }},
		"negative step":         {"amount_step", func(i *Instrument) { i.AmountStep = number("-1") }},
		"too fine":              {"price_tick", func(i *Instrument) { i.PriceTick = number("0.000001") }},
		"too many digits":       {"price_tick", func(i *Instrument) { i.ContractSize = number("1000000000") }},
		"min off step":          {"min_amount", func(i *Instrument) { i.MinAmount = number("0.0015") }},
		"max off step":          {"max_amount", func(i *Instrument) { i.MaxAmount = number("1.0005") }},
		"min above max":         {"min_amount", func(i *Instrument) { i.MinAmount = number("2000") }},
		"no leverage":           {"max_leverage", func(i *Instrument) { i.MaxLeverage = -1 }},
		"too much leverage":     {"max_leverage", func(i *Instrument) { i.MaxLeverage = 101 }},
		"funding too often":     {"funding_interval_seconds", func(i *Instrument) { i.FundingIntervalSeconds = 1 }},
		"funding never":         {"funding_interval_seconds", func(i *Instrument) { i.FundingIntervalSeconds = 0 }},
		"funding every 7 hours": {"funding_interval_seconds", func(i *Instrument) { i.FundingIntervalSeconds = 7 * 3600 }},
		"funding once a week":   {"funding_interval_seconds", func(i *Instrument) { i.FundingIntervalSeconds = 7 * 86400 }},
		"stale before":          {"index_stale_seconds", func(i *Instrument) { i.IndexStaleSeconds = -1 }},
		"no band":               {"price_band", func(i *Instrument) { i.PriceBand = fixed.Decimal{} }},
		"band too fine":         {"limit_band", func(i *Instrument) { i.LimitBand = number("1.00001") }},
		"rebate too large":      {"maker_fee", func(i *Instrument) { i.MakerFee = number("-100.1") }},
		"rebate for takers":     {"taker_fee", func(i *Instrument) { i.TakerFee = number("-1") }},
		"margin too fine":       {"init_margin_req", func(i *Instrument) { i.InitMarginReq = number("5.001") }},
		"margin above all":      {"margin_tiers[0].init_margin_req", func(i *Instrument) { i.InitMarginReq = number("101") }},
		"maintenance above":     {"margin_tiers[0].maint_margin_req", func(i *Instrument) { i.MaintMarginReq = number("6") }},
		"no rise":               {"margin_tiers[1].notional_from", func(i *Instrument) { i.Tiers = []Tier{tier(0, "5", "2.5"), tier(0, "6", "3")} }},
		"a late beginning":      {"margin_tiers[0].notional_from", func(i *Instrument) { i.Tiers = []Tier{tier(1, "5", "2.5")} }},
		"falling tiers":         {"margin_tiers[2].notional_from", func(i *Instrument) { i.Tiers = []Tier{tier(0, "5", "2.5"), tier(5, "6", "3"), tier(4, "7", "3")} }},
		"leverage above":        {"margin_tiers[0].max_leverage", func(i *Instrument) { i.Tiers = []Tier{{0, number("5"), number("2.5"), 21}} }},
		"leverage below":        {"margin_tiers[0].max_leverage", func(i *Instrument) { i.Tiers = []Tier{{0, number("5"), number("2.5"), -1}} }},
		"another first rate":    {"init_margin_req", func(i *Instrument) { i.Tiers = []Tier{tier(0, "6", "2.5")} }},
		"another maintenance":   {"maint_margin_req", func(i *Instrument) { i.Tiers = []Tier{tier(0, "5", "2")} }},
		"more tiers than sane":  {"margin_tiers", func(i *Instrument) { i.Tiers = make([]Tier, 33) }},
	} {
		t.Run(name, func(t *testing.T) {
			i := btc()
			c.change(&i)
			faults := i.Normal().check()
			if !slices.ContainsFunc(faults, func(e validation.FieldError) bool { return e.Path.String() == c.field }) {
				t.Errorf("no fault in %s: %v", c.field, faults)
			}
			for _, e := range faults { // who shows the fault puts the field before the message
				if strings.HasPrefix(e.Message, e.Path.String()) {
					t.Errorf("the fault names its field twice: %s %s", e.Path, e.Message)
				}
			}
		})
	}
}

func (i Instrument) check() []validation.FieldError { return i.Check() }

func TestCounting(t *testing.T) {
	c := NewContract(btc().Normal())
	if c.Unit != 10_000 || c.MinSteps != 1 || c.MaxSteps != 1_000_000 || c.Maker != 20_000 || c.Taker != 50_000 {
		t.Errorf("unit %d, steps %d to %d, fees %d and %d", c.Unit, c.MinSteps, c.MaxSteps, c.Maker, c.Taker)
	}
	if n := c.MustNotional(650_001, 1500); n.String() != "97500.15" {
		t.Errorf("1.5 at 65,000.1 is %s", n)
	}
	if _, ok := c.Notional(1<<50, 1<<40); ok {
		t.Error("an enormous notional fits")
	}
	if c.Price(650_000).String() != "65000.0" || c.Amount(-5).String() != "-0.005" {
		t.Errorf("%s, %s", c.Price(650_000), c.Amount(-5))
	}
	if a := c.AveragePrice(-9_750_015_000_000, -1500); a.String() != "65000.1" {
		t.Errorf("average %s", a)
	}
	if a := c.AveragePrice(100, 3000); a.String() != "0.00000033" {
		t.Errorf("average %s", a)
	}
	marks, ok := c.Marks(number("65000.12345"))
	if !ok || c.MarkPrice(marks).String() != "65000.12345" || c.MarkTicks(marks, fixed.Floor) != 650_001 {
		t.Errorf("%d marks are %s", marks, c.MarkPrice(marks))
	}
	if _, ok := c.Marks(number("65000.123456")); ok {
		t.Error("a mark price is too fine")
	}
	marks, _ = c.Marks(number("65000"))
	if c.MarketBound(true, marks) != 682_500 || c.MarketBound(false, marks) != 617_500 || c.LimitBound(true, marks) != 780_000 || c.LimitBound(false, marks) != 520_000 {
		t.Error("bands")
	}
	marks, _ = c.Marks(number("0.00001"))
	if c.MarketBound(true, marks) != 1 || c.MarketBound(false, marks) != 1 {
		t.Error("a band ends at a price of nothing")
	}
	odd := btc()
	odd.PriceTick = number("2.5")
	c = NewContract(odd.Normal())
	if n, ok := c.Ticks(number("65002.5")); !ok || n != 26_001 {
		t.Errorf("%d ticks", n)
	}
	if _, ok := c.Ticks(number("65001.0")); ok {
		t.Error("a price between ticks")
	}
}

func TestStricter(t *testing.T) {
	order := []Status{Open, PostOnly, CancelOnly, TradeHalt, Withdrawn}
	for n, a := range order {
		for m, b := range order {
			if got := a.Stricter(b); got != order[max(n, m)] {
				t.Errorf("%s or %s is %s", a, b, got)
			}
		}
	}
}
