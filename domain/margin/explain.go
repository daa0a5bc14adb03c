package margin

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// Explain writes down Requirements. The subject identifies the exposure.
func (e Exposure) Explain(s *arithmetic.Sheet, party, subject string) {
	if !s.On() {
		return
	}
	c, r := e.Contract, e.Requirements()
	value := arithmetic.Value{Name: "position_value", Text: valueText(c, c.Value(e.Size, e.Mark))}
	if e.Size != 0 {
		c.ExplainValue(s, party, subject, e.Size, e.Mark)
		s.Add(party, "unrealised_pnl", subject, "floor(position_value, 8) - cost", r.Unrealized.String(), value, arithmetic.Money("cost", e.Cost))
		c.ExplainRequirement(s, party, subject, "abs(position_value)", value, e.MaintenanceFloor, true, r.Maintenance)
	}
	bids, asks := fixed.Mul(int64(e.Bids), c.MarkDen), fixed.Mul(int64(e.Asks), c.MarkDen)
	most := c.Value(e.Size, e.Mark).Add(bids).Abs()
	if short := c.Value(e.Size, e.Mark).Sub(asks).Abs(); short.Cmp(most) > 0 {
		most = short
	}
	exposure := arithmetic.Value{Name: "exposure", Text: valueText(c, most)}
	s.Add(party, "exposure", subject, "max(abs(position_value + buy_orders), abs(position_value - sell_orders))", exposure.Text, value,
		arithmetic.Money("buy_orders", e.Bids), arithmetic.Money("sell_orders", e.Asks))
	c.ExplainRequirement(s, party, subject, "exposure", exposure, e.Floor, false, r.Initial)
	ExplainFee(s, party, "order_fees", subject, e.Bids.Add(e.Asks), e.TakerFee, r.Fees)
}

// valueText returns a value in units of 10⁻⁸ ÷ MarkDen as a decimal.
func valueText(c *market.Contract, value fixed.Wide) string {
	return arithmetic.Text(ratOf(value, c.MarkDen))
}

// Explain writes down the margin of an account with these exposures, of which s is the sum.
func (s Standing) Explain(sheet *arithmetic.Sheet, party, subject string, exposures []Exposure) {
	if !sheet.On() {
		return
	}
	var all [4]total // unrealized, initial, maintenance, fees
	for _, e := range exposures {
		if e.Size == 0 && e.Bids == 0 && e.Asks == 0 {
			continue
		}
		e.Explain(sheet, party, e.Contract.Symbol+" "+subject)
		r := e.Requirements()
		for n, m := range [...]fixed.Money{r.Unrealized, r.Initial, r.Maintenance, r.Fees} {
			all[n].add(m)
		}
	}
	for n, x := range [...]struct {
		name string
		sum  fixed.Wide
	}{{"unrealised_pnl", s.Unrealized}, {"initial_margin", s.Initial}, {"maintenance_margin", s.Maintenance}, {"order_fees", s.Fees}} {
		all[n].explain(sheet, party, "total_"+x.name, x.name, subject, x.sum)
	}
	sheet.Add(party, "equity", subject, "balance + total_unrealised_pnl", arithmetic.SumText(s.Equity()), arithmetic.Sum("balance", s.Balance),
		arithmetic.Sum("total_unrealised_pnl", s.Unrealized))
	sheet.Add(party, "reserved_margin", subject, "total_initial_margin + total_order_fees", arithmetic.SumText(s.Reserved()),
		arithmetic.Sum("total_initial_margin", s.Initial), arithmetic.Sum("total_order_fees", s.Fees))
	sheet.Add(party, "available_margin", subject, "equity - reserved_margin - pending_withdrawals", arithmetic.SumText(s.Available()),
		arithmetic.Sum("equity", s.Equity()), arithmetic.Sum("reserved_margin", s.Reserved()), arithmetic.Sum("pending_withdrawals", s.Pending))
}

// total is a sum over the instruments of an account.
type total struct{ parts []fixed.Money }

func (t *total) add(m fixed.Money) { t.parts = append(t.parts, m) }

func (t *total) explain(s *arithmetic.Sheet, party, name, part, subject string, sum fixed.Wide) {
	if len(t.parts) == 0 {
		return
	}
	var names []string
	var values []arithmetic.Value
	for n, m := range t.parts {
		v := arithmetic.Money(fmt.Sprintf("%s_%d", part, n+1), m)
		names, values = append(names, v.Name), append(values, v)
	}
	s.Add(party, name, subject, strings.Join(names, " + "), arithmetic.SumText(sum), values...)
}

// ExplainLacks writes down Lacks.
func (s Standing) ExplainLacks(sheet *arithmetic.Sheet, party string) {
	sheet.Add(party, "liquidated", "", "equity < total_maintenance_margin", arithmetic.Truth(s.Lacks()), arithmetic.Sum("equity", s.Equity()),
		arithmetic.Sum("total_maintenance_margin", s.Maintenance))
}

// ExplainFee writes down Fee. parts is in parts of 10⁸ of the notional.
func ExplainFee(s *arithmetic.Sheet, party, name, subject string, notional fixed.Money, parts int64, fee fixed.Money) {
	if notional == 0 || parts == 0 {
		return
	}
	formula := "away(notional * fee_basis_points / 10000, 8)"
	if parts < 0 {
		formula = "truncate(notional * fee_basis_points / 10000, 8)"
	}
	s.Add(party, name, subject, formula, fee.String(), arithmetic.Money("notional", notional), arithmetic.Decimal("fee_basis_points", market.FeePoints(parts)))
}

// ExplainLiquidationFee writes down LiquidationFee.
func ExplainLiquidationFee(s *arithmetic.Sheet, party, subject string, notional, equity, fee fixed.Money) {
	s.Add(party, "liquidation_fee", subject, "max(0, min(ceil(notional * 0.005, 8), equity))", fee.String(), arithmetic.Money("notional", notional),
		arithmetic.Money("equity", equity))
}

// ExplainStepSize writes down StepSize.
func ExplainStepSize(s *arithmetic.Sheet, party string, c *market.Contract, began, rest, steps int64) {
	s.Add(party, "liquidated_amount", c.Symbol, "min(max(ceil(amount_at_begin / 5 / step, 0) * step, min_amount), position)", c.Amount(steps).String(),
		arithmetic.Decimal("amount_at_begin", c.Amount(began)), arithmetic.Decimal("step", c.AmountStep), arithmetic.Decimal("min_amount", c.MinAmount),
		arithmetic.Decimal("position", c.Amount(rest)))
}

// ExplainBankruptcyPrice writes down BankruptcyPrice. The result is in ticks.
func ExplainBankruptcyPrice(s *arithmetic.Sheet, party string, c *market.Contract, mark, size int64, equity fixed.Wide, maintenance fixed.Money, total fixed.Wide, ticks int64) {
	rounded := "ceil"
	if size < 0 {
		rounded = "floor"
	}
	s.Add(party, "bankruptcy_price", c.Symbol, "max(tick, min(highest_price, "+rounded+
		"((mark_price - equity * maintenance_margin / total_maintenance_margin / (position * contract_size)) / tick, 0) * tick))", c.Price(ticks).String(),
		arithmetic.Decimal("tick", c.PriceTick), arithmetic.Decimal("highest_price", c.Price(c.HighestTicks())), arithmetic.Decimal("mark_price", c.MarkPrice(mark)),
		arithmetic.Sum("equity", equity), arithmetic.Money("maintenance_margin", maintenance), arithmetic.Sum("total_maintenance_margin", total),
		arithmetic.Decimal("position", c.Amount(size)), arithmetic.Decimal("contract_size", c.ContractSize))
}

// ExplainScore writes down Score.
func ExplainScore(s *arithmetic.Sheet, party, subject string, unrealized, cost, notional, equity fixed.Money, score fixed.Wide) {
	if cost == 0 || notional == 0 {
		return
	}
	formula := "truncate(unrealised_pnl / abs(cost) * notional / max(equity, 1), 8)"
	if unrealized <= 0 {
		formula = "truncate(unrealised_pnl / abs(cost) * max(equity, 1) / notional, 8)"
	}
	s.Add(party, "deleveraging_score", subject, formula, arithmetic.SumText(score), arithmetic.Money("unrealised_pnl", unrealized), arithmetic.Money("cost", cost),
		arithmetic.Money("notional", notional), arithmetic.Money("equity", equity))
}

// ExplainBearable writes down Bearable for an account that a trade of one step costs something, in steps.
func ExplainBearable(s *arithmetic.Sheet, party string, c *market.Contract, equity, each fixed.Money) {
	if each >= 0 || equity < 0 {
		return
	}
	s.Add(party, "bearable_amount", c.Symbol, "truncate(equity / loss_per_step, 0) * step", c.Amount(int64(equity/-each)).String(),
		arithmetic.Money("equity", equity), arithmetic.Money("loss_per_step", -each), arithmetic.Decimal("step", c.AmountStep))
}

// ExplainRule writes down the margin rule for an account before and after a change: see package trading.
func ExplainRule(s *arithmetic.Sheet, party string, before, after Standing, holds bool) {
	s.Add(party, "margin_rule", "", "equity_before >= maintenance_before and available_after >= 0 or reserved_after <= reserved_before", arithmetic.Truth(holds),
		arithmetic.Sum("equity_before", before.Equity()), arithmetic.Sum("maintenance_before", before.Maintenance), arithmetic.Sum("available_after", after.Available()),
		arithmetic.Sum("reserved_after", after.Reserved()), arithmetic.Sum("reserved_before", before.Reserved()))
}

// ratOf returns a value in units of 10⁻⁸ ÷ den.
func ratOf(value fixed.Wide, den int64) *big.Rat {
	return new(big.Rat).SetFrac(value.Big(), new(big.Int).Mul(big.NewInt(den), big.NewInt(int64(fixed.Unit))))
}
