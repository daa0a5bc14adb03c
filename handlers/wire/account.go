package wire

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// Position is an open position, valued at the mark price.
type Position struct {
	CustomerCode      string        `json:"customer_code"`
	Symbol            string        `json:"symbol"`
	Amount            fixed.Decimal `json:"amount"`
	EntryPrice        fixed.Decimal `json:"entry_price"`
	MarkPrice         Price         `json:"mark_price"`
	Notional          fixed.Money   `json:"notional"`
	UnrealizedPnL     fixed.Money   `json:"unrealised_pnl"`
	InitialMargin     fixed.Money   `json:"initial_margin"`
	MaintenanceMargin fixed.Money   `json:"maintenance_margin"`
	Leverage          string        `json:"leverage"`
	LiquidationPrice  Price         `json:"liquidation_price"`
	Updated           scalar.Time   `json:"updated"`
}

// NewPosition converts a position to its JSON form.
func NewPosition(p *trading.Position) Position {
	return Position{p.CustomerCode, p.Symbol, p.Amount, p.EntryPrice, Price(p.MarkPrice), p.Notional, p.UnrealizedPnL,
		p.InitialMargin, p.MaintenanceMargin, strconv.Itoa(p.Leverage), Price(p.LiquidationPrice), p.Updated}
}

// PositionHeld is an open position as of a past record, with the values of the ledger and without those that depend on prices.
type PositionHeld struct {
	CustomerCode string        `json:"customer_code"`
	Symbol       string        `json:"symbol"`
	Amount       fixed.Decimal `json:"amount"`
	EntryPrice   fixed.Decimal `json:"entry_price"`
	Cost         fixed.Money   `json:"cost"`
	Updated      scalar.Time   `json:"updated"`
	Sequence     int64         `json:"sequence"` // of the record that last changed the position
}

// Balance is the balance of a customer in one currency.
type Balance struct {
	CustomerCode string      `json:"customer_code"`
	Currency     string      `json:"currency"`
	Balance      fixed.Money `json:"balance"`
	Updated      scalar.Time `json:"updated"`
	Sequence     int64       `json:"sequence"` // of the record that last changed the balance
}

// AccountSummary is the equity, margin and risk state of an account in one currency.
type AccountSummary struct {
	CustomerCode      string        `json:"customer_code"`
	Currency          string        `json:"currency"`
	Balance           fixed.Money   `json:"balance"`
	TotalEquity       fixed.Money   `json:"total_equity"`
	UnrealizedPnL     fixed.Money   `json:"unrealised_pnl"`
	UsedMargin        fixed.Money   `json:"used_margin"`
	OrderMargin       fixed.Money   `json:"order_margin"`
	MaintenanceMargin fixed.Money   `json:"maintenance_margin"`
	AvailableMargin   fixed.Money   `json:"available_margin"`
	MarginRatio       fixed.Decimal `json:"margin_ratio"`
	RiskState         string        `json:"risk_state"`
	UpdatedAt         scalar.Time   `json:"updated_at"`
}

// NewAccountSummary converts a summary to its JSON form.
func NewAccountSummary(s *trading.Summary) AccountSummary {
	return AccountSummary{s.CustomerCode, s.Currency, s.Balance, s.TotalEquity, s.UnrealizedPnL, s.UsedMargin, s.OrderMargin,
		s.MaintenanceMargin, s.AvailableMargin, s.MarginRatio, string(s.RiskState), s.Updated}
}
