package trading

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// Customer is a customer account.
type Customer struct {
	CustomerCode string                `json:"customer_code"`
	Name         wire.Nullable[string] `json:"name"`
	Broker       string                `json:"broker"`
	Created      scalar.Time           `json:"created"`
}

// position is an open position.
type position struct {
	CustomerCode      string        `json:"customer_code"`
	Symbol            string        `json:"symbol"`
	Amount            fixed.Decimal `json:"amount"`
	EntryPrice        fixed.Decimal `json:"entry_price"`
	MarkPrice         wire.Price    `json:"mark_price"`
	Notional          fixed.Money   `json:"notional"`
	UnrealisedPnL     fixed.Money   `json:"unrealised_pnl"`
	InitialMargin     fixed.Money   `json:"initial_margin"`
	MaintenanceMargin fixed.Money   `json:"maintenance_margin"`
	Leverage          string        `json:"leverage"`
	LiquidationPrice  wire.Price    `json:"liquidation_price"`
	Updated           scalar.Time   `json:"updated"`
}

func newPosition(p *domain.Position) position {
	return position{p.CustomerCode, p.Symbol, p.Amount, p.EntryPrice, wire.Price(p.MarkPrice), p.Notional, p.UnrealisedPnL,
		p.InitialMargin, p.MaintenanceMargin, strconv.Itoa(p.Leverage), wire.Price(p.LiquidationPrice), p.Updated}
}

// accountSummary is what an account has and needs in one currency.
type accountSummary struct {
	CustomerCode      string        `json:"customer_code"`
	Currency          string        `json:"currency"`
	Balance           fixed.Money   `json:"balance"`
	TotalEquity       fixed.Money   `json:"total_equity"`
	UnrealisedPnL     fixed.Money   `json:"unrealised_pnl"`
	UsedMargin        fixed.Money   `json:"used_margin"`
	OrderMargin       fixed.Money   `json:"order_margin"`
	MaintenanceMargin fixed.Money   `json:"maintenance_margin"`
	AvailableMargin   fixed.Money   `json:"available_margin"`
	MarginRatio       fixed.Decimal `json:"margin_ratio"`
	RiskState         string        `json:"risk_state"`
	UpdatedAt         scalar.Time   `json:"updated_at"`
}

func newAccountSummary(s *domain.Summary) accountSummary {
	return accountSummary{s.CustomerCode, s.Currency, s.Balance, s.TotalEquity, s.UnrealisedPnL, s.UsedMargin, s.OrderMargin,
		s.MaintenanceMargin, s.AvailableMargin, s.MarginRatio, string(s.RiskState), s.Updated}
}

// marginProfile is an account's default margins and its overrides.
type marginProfile struct {
	Leverage          string             `json:"leverage"` // that initial_margin stands for
	InitialMargin     fixed.Decimal      `json:"initial_margin"`
	MaintenanceMargin fixed.Decimal      `json:"maintenance_margin"`
	InstrumentMargins []instrumentMargin `json:"instrument_margins"`
}

type instrumentMargin struct {
	Symbol        string        `json:"symbol"`
	Leverage      string        `json:"leverage"`
	InitialMargin fixed.Decimal `json:"initial_margin"`
}

func newMarginProfile(p *domain.MarginProfile) marginProfile {
	out := marginProfile{strconv.Itoa(p.Leverage), wire.Percent(p.InitialMargin), wire.Percent(p.MaintenanceMargin), []instrumentMargin{}}
	for _, m := range p.Instruments {
		out.InstrumentMargins = append(out.InstrumentMargins, instrumentMargin{m.Symbol, strconv.Itoa(m.Leverage), wire.Percent(m.InitialMargin)})
	}
	return out
}
