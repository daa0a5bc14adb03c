package trading

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections/trades"
)

// Order is an order as REST shows it. Nullable fields are always there; cash_amount and trigger_price_type are left
// out where they do not apply.
type Order struct {
	Code             decide.ID      `json:"code"`
	CustomerCode     string         `json:"customer_code"`
	Symbol           string         `json:"symbol"`
	Action           string         `json:"action"`
	Type             string         `json:"type"`
	Status           string         `json:"status"`
	Amount           fixed.Decimal  `json:"amount"`
	FilledAmount     fixed.Decimal  `json:"filled_amount"`
	CashAmount       fixed.Money    `json:"cash_amount,omitzero"`
	FilledQuote      fixed.Money    `json:"filled_quote"`
	LimitPrice       *fixed.Decimal `json:"limit_price"`
	TriggerPrice     *fixed.Decimal `json:"trigger_price"`
	StopLossPrice    *fixed.Decimal `json:"stop_loss_price"`
	TakeProfitPrice  *fixed.Decimal `json:"take_profit_price"`
	TriggerPriceType string         `json:"trigger_price_type,omitzero"`
	AverageFillPrice *fixed.Decimal `json:"average_fill_price"`
	TimeInForce      string         `json:"time_in_force"`
	ExpireTime       *decide.Time   `json:"expire_time"`
	PostOnly         bool           `json:"post_only"`
	ReduceOnly       bool           `json:"reduce_only"`
	ReferenceID      string         `json:"reference_id"`
	Reason           *string        `json:"reason"`
	Created          decide.Time    `json:"created"`
	Updated          decide.Time    `json:"updated"`
}

// NewOrder shows an order.
func NewOrder(o *order.Order) Order {
	return Order{
		Code: o.Code, CustomerCode: o.CustomerCode, Symbol: o.Symbol, Action: string(o.Action), Type: string(o.Type),
		Status: string(o.Status), Amount: o.Amount, FilledAmount: o.FilledAmount, CashAmount: o.CashAmount,
		FilledQuote: o.FilledQuote, LimitPrice: price(o.LimitPrice), TriggerPrice: price(o.TriggerPrice),
		StopLossPrice: price(o.StopLossPrice), TakeProfitPrice: price(o.TakeProfitPrice),
		TriggerPriceType: string(o.TriggerPriceType), AverageFillPrice: price(o.AverageFillPrice),
		TimeInForce: string(o.TimeInForce), ExpireTime: nullable(o.ExpireTime), PostOnly: o.PostOnly,
		ReduceOnly: o.ReduceOnly, ReferenceID: o.ReferenceID, Reason: nullable(string(o.Reason)),
		Created: o.Created, Updated: o.Updated,
	}
}

// nullable returns nil for the zero value, which stands for nothing.
func nullable[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// price returns nil for a price of zero, of whatever scale: there is none.
func price(d fixed.Decimal) *fixed.Decimal {
	if d.IsZero() {
		return nil
	}
	return &d
}

// Customer is a customer account.
type Customer struct {
	CustomerCode string      `json:"customer_code"`
	Name         *string     `json:"name"`
	Broker       string      `json:"broker"`
	Created      decide.Time `json:"created"`
}

// Transaction is a row of a customer's ledger.
type Transaction struct {
	Code         decide.ID    `json:"code"`
	CustomerCode string       `json:"customer_code"`
	Type         string       `json:"type"`
	Currency     string       `json:"currency"`
	Amount       fixed.Money  `json:"amount"`
	Status       string       `json:"status"`
	Balance      *fixed.Money `json:"balance,omitzero"`
	BalanceAsOf  *decide.Time `json:"balance_as_of,omitzero"`
	Symbol       *string      `json:"symbol"`
	OrderCode    *decide.ID   `json:"order_code"`
	Timestamp    decide.Time  `json:"timestamp"`
	Sequence     int64        `json:"sequence"`
}

// NewTransaction shows a deposit or withdrawal as the record with the sequence left it.
func NewTransaction(t *ledger.Transaction, sequence int64) Transaction {
	out := Transaction{Code: t.Code, CustomerCode: t.CustomerCode, Type: string(t.Type), Currency: t.Currency,
		Amount: t.Amount, Status: string(t.Status), Timestamp: t.Updated, Sequence: sequence}
	if t.Status == ledger.Completed {
		out.Balance, out.BalanceAsOf = &t.Balance, &t.Updated
	}
	return out
}

// FeeProfileItem is what a customer pays on an instrument, in basis points.
type FeeProfileItem struct {
	Symbol   string        `json:"symbol"`
	MakerFee fixed.Decimal `json:"maker_fee"`
	TakerFee fixed.Decimal `json:"taker_fee"`
}

// NewFeeProfileItem shows the fees that were set.
func NewFeeProfileItem(e *domain.FeeProfileSet) FeeProfileItem {
	return FeeProfileItem{e.Symbol, e.MakerFee.Trim(), e.TakerFee.Trim()}
}

// Percent prints a percentage with exactly 2 decimals, rounded up.
func Percent(d fixed.Decimal) fixed.Decimal {
	d = d.Trim().AtLeast(2)
	if d.Scale == 2 {
		return d
	}
	divisor := fixed.Pow10(int(d.Scale) - 2)
	whole := d.Coef / divisor
	if d.Coef > 0 && d.Coef%divisor != 0 {
		whole++
	}
	return fixed.Decimal{Coef: whole, Scale: 2}
}

// trade is a customer's side of a trade.
type trade struct {
	Code         decide.ID     `json:"code"`
	OrderCode    decide.ID     `json:"order_code"`
	CustomerCode string        `json:"customer_code"`
	Symbol       string        `json:"symbol"`
	Action       string        `json:"action"`
	Price        fixed.Decimal `json:"price"`
	Amount       fixed.Decimal `json:"amount"`
	Notional     fixed.Money   `json:"notional"`
	Fee          fixed.Money   `json:"fee"`
	FeeCurrency  string        `json:"fee_currency"`
	Role         string        `json:"role"`
	Type         string        `json:"type"`
	ReferenceID  string        `json:"reference_id"`
	Timestamp    decide.Time   `json:"timestamp"`
}

func newTrade(t *trades.Trade) trade {
	return trade{t.Code, t.OrderCode, t.CustomerCode, t.Symbol, string(t.Action), t.Price, t.Amount, t.Notional, t.Fee,
		t.FeeCurrency, string(t.Role), string(t.Type), t.ReferenceID, t.Time}
}

// publicTrade is a trade as everybody may see it.
type publicTrade struct {
	Code      decide.ID     `json:"code"`
	Symbol    string        `json:"symbol"`
	Price     fixed.Decimal `json:"price"`
	Amount    fixed.Decimal `json:"amount"`
	Action    string        `json:"action"`
	Type      string        `json:"type"`
	Timestamp decide.Time   `json:"timestamp"`
	Sequence  int64         `json:"sequence"`
}

func newPublicTrade(t *trades.MarketTrade) publicTrade {
	return publicTrade{t.Code, t.Symbol, t.Price, t.Amount, string(t.Action), string(t.Type), t.Time, t.Sequence}
}

// instrument is an instrument as everybody may see it, with the status in force.
type instrument struct {
	Symbol                 string        `json:"symbol"`
	Underlying             string        `json:"underlying"`
	QuoteCurrency          string        `json:"quote_currency"`
	SettlementCurrency     string        `json:"settlement_currency"`
	Status                 string        `json:"status"`
	PriceTick              fixed.Decimal `json:"price_tick"`
	AmountStep             fixed.Decimal `json:"amount_step"`
	MinAmount              fixed.Decimal `json:"min_amount"`
	MaxAmount              fixed.Decimal `json:"max_amount"`
	ContractSize           fixed.Decimal `json:"contract_size"`
	InitMarginReq          fixed.Decimal `json:"init_margin_req"`
	MaintMarginReq         fixed.Decimal `json:"maint_margin_req"`
	MaxLeverage            int           `json:"max_leverage"`
	FundingIntervalSeconds int           `json:"funding_interval_seconds"`
}

func newInstrument(i *market.Instrument, status market.Status) instrument {
	return instrument{i.Symbol, i.Underlying, i.QuoteCurrency, i.SettlementCurrency, string(status), i.PriceTick,
		i.AmountStep, i.MinAmount, i.MaxAmount, i.ContractSize, Percent(i.InitMarginReq), Percent(i.MaintMarginReq),
		i.MaxLeverage, i.FundingIntervalSeconds}
}

// position is an open position.
type position struct {
	CustomerCode      string         `json:"customer_code"`
	Symbol            string         `json:"symbol"`
	Amount            fixed.Decimal  `json:"amount"`
	EntryPrice        fixed.Decimal  `json:"entry_price"`
	MarkPrice         *fixed.Decimal `json:"mark_price"`
	Notional          fixed.Money    `json:"notional"`
	UnrealisedPnL     fixed.Money    `json:"unrealised_pnl"`
	InitialMargin     fixed.Money    `json:"initial_margin"`
	MaintenanceMargin fixed.Money    `json:"maintenance_margin"`
	Leverage          string         `json:"leverage"`
	LiquidationPrice  *fixed.Decimal `json:"liquidation_price"`
	Updated           decide.Time    `json:"updated"`
}

func newPosition(p *domain.Position) position {
	return position{p.CustomerCode, p.Symbol, p.Amount, p.EntryPrice, price(p.MarkPrice), p.Notional, p.UnrealisedPnL,
		p.InitialMargin, p.MaintenanceMargin, strconv.Itoa(p.Leverage), price(p.LiquidationPrice), p.Updated}
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
	UpdatedAt         decide.Time   `json:"updated_at"`
}

func newAccountSummary(s *domain.Summary) accountSummary {
	return accountSummary{s.CustomerCode, s.Currency, s.Balance, s.TotalEquity, s.UnrealisedPnL, s.UsedMargin, s.OrderMargin,
		s.MaintenanceMargin, s.AvailableMargin, s.MarginRatio, string(s.RiskState), s.Updated}
}

// marginProfile is an account's default margins and its overrides.
type marginProfile struct {
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
	out := marginProfile{Percent(p.InitialMargin), Percent(p.MaintenanceMargin), []instrumentMargin{}}
	for _, m := range p.Instruments {
		out.InstrumentMargins = append(out.InstrumentMargins, instrumentMargin{m.Symbol, strconv.Itoa(m.Leverage), Percent(m.InitialMargin)})
	}
	return out
}
