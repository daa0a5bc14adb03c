package market

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// ExplainBound writes down MarketBound or LimitBound. percent is the band, and the result is in ticks.
func (c *Contract) ExplainBound(s *arithmetic.Sheet, party, name string, buy bool, marks int64, percent fixed.Decimal, ticks int64) {
	formula := "max(tick, floor(mark_price * (100 + band_percent) / 100 / tick, 0) * tick)"
	if !buy {
		formula = "max(tick, ceil(mark_price * (100 - band_percent) / 100 / tick, 0) * tick)"
	}
	s.Add(party, name, c.Symbol, formula, c.Price(ticks).String(), arithmetic.Decimal("mark_price", c.MarkPrice(marks)),
		arithmetic.Decimal("band_percent", percent), arithmetic.Decimal("tick", c.PriceTick))
}

// ExplainNotional writes down Notional.
func (c *Contract) ExplainNotional(s *arithmetic.Sheet, party, name, subject string, ticks, steps int64) {
	s.Add(party, name, subject, "price * amount * contract_size", c.MustNotional(ticks, steps).String(), arithmetic.Decimal("price", c.Price(ticks)),
		arithmetic.Decimal("amount", c.Amount(steps)), arithmetic.Decimal("contract_size", c.ContractSize))
}

// ExplainValue writes down Value.
func (c *Contract) ExplainValue(s *arithmetic.Sheet, party, subject string, steps, marks int64) {
	value := new(big.Rat).SetFrac(c.Value(steps, marks).Big(), new(big.Int).Mul(big.NewInt(c.MarkDen), big.NewInt(int64(fixed.Unit))))
	s.Add(party, "position_value", subject, "position * contract_size * mark_price", arithmetic.Text(value), arithmetic.Decimal("position", c.Amount(steps)),
		arithmetic.Decimal("contract_size", c.ContractSize), arithmetic.Decimal("mark_price", c.MarkPrice(marks)))
}

// ExplainRequirement writes down Initial or, with maintenance set, Maintenance. formula is the value that the
// requirement is for, and value is the name and number in it.
func (c *Contract) ExplainRequirement(s *arithmetic.Sheet, party, subject, formula string, value arithmetic.Value, floor fixed.Rate, maintenance bool, result fixed.Money) {
	if !s.On() {
		return
	}
	name, least := "initial_margin", "initial_rate"
	if maintenance {
		name, least = "maintenance_margin", "maintenance_rate"
	}
	values := []arithmetic.Value{value, arithmetic.Rate("account_"+least, floor)}
	var parts []string
	for n, t := range c.Tiers {
		percent, rate := t.InitMarginReq, fmt.Sprintf("tier_%d_rate", n+1)
		if maintenance {
			percent = t.MaintMarginReq
		}
		values = append(values, arithmetic.Rate(rate, fixed.Percent(percent)))
		part, from, last := formula, fmt.Sprintf("tier_%d_from", n+1), n+1 == len(c.Tiers)
		if !last {
			end := fmt.Sprintf("tier_%d_from", n+2)
			values = append(values, arithmetic.Money(end, c.Tiers[n+1].NotionalFrom))
			part = fmt.Sprintf("min(%s, %s)", formula, end)
		}
		if n > 0 {
			part = fmt.Sprintf("max(0, %s - %s)", part, from)
		}
		parts = append(parts, fmt.Sprintf("%s * max(%s, account_%s)", part, rate, least))
	}
	s.Add(party, name, subject, "ceil("+strings.Join(parts, " + ")+", 8)", result.String(), values...)
}

// ExplainFundingRate writes down FundingRate. Without samples there is nothing to write.
func (c *Contract) ExplainFundingRate(s *arithmetic.Sheet, p Premiums, rate int64) {
	if !s.On() || p.Count == 0 {
		return
	}
	premium := new(big.Rat).SetFrac(p.Sum.Big(), new(big.Int).Mul(big.NewInt(p.Count), big.NewInt(fixed.Pow10(premiumDigits))))
	sum := new(big.Rat).SetFrac(p.Sum.Big(), big.NewInt(fixed.Pow10(premiumDigits)))
	s.Add("", "average_premium", c.Symbol, "premiums / samples", arithmetic.Text(premium), arithmetic.Value{Name: "premiums", Text: arithmetic.Text(sum)},
		arithmetic.Value{Name: "samples", Text: fmt.Sprint(p.Count)})
	const most = "0.75 * (initial_percent - maintenance_percent) / 100"
	s.Add("", "funding_rate", c.Symbol, "half_even(max(-"+most+", min("+most+
		", (average_premium + max(-0.0005, min(0.0005, 0.0001 - average_premium))) * interval_seconds / 28800)), 8)", Rate(rate).String(),
		arithmetic.Value{Name: "average_premium", Text: arithmetic.Text(premium)}, arithmetic.Decimal("initial_percent", c.Tiers[0].InitMarginReq),
		arithmetic.Decimal("maintenance_percent", c.Tiers[0].MaintMarginReq),
		arithmetic.Value{Name: "interval_seconds", Text: fmt.Sprint(c.FundingIntervalSeconds)})
}

// ExplainFunding writes down Funding.
func (c *Contract) ExplainFunding(s *arithmetic.Sheet, party string, steps, marks, rate int64, amount fixed.Money) {
	s.Add(party, "funding", c.Symbol, "floor(-position * contract_size * mark_price * funding_rate, 8)", amount.String(),
		arithmetic.Decimal("position", c.Amount(steps)), arithmetic.Decimal("contract_size", c.ContractSize),
		arithmetic.Decimal("mark_price", c.MarkPrice(marks)), arithmetic.Decimal("funding_rate", Rate(rate)))
}

// ExplainSettlement writes down what a position with a cost gains at a mark price.
func (c *Contract) ExplainSettlement(s *arithmetic.Sheet, party string, steps, marks int64, cost, amount fixed.Money) {
	s.Add(party, "settlement", c.Symbol, "floor(position * contract_size * mark_price, 8) - cost", amount.String(),
		arithmetic.Decimal("position", c.Amount(steps)), arithmetic.Decimal("contract_size", c.ContractSize),
		arithmetic.Decimal("mark_price", c.MarkPrice(marks)), arithmetic.Money("cost", cost))
}
