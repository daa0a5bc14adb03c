package live

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

const update = "update"

// orderMessage is an order in full, as on the channel orders.
type orderMessage struct {
	Channel          string                 `json:"channel"`
	Type             string                 `json:"type"`
	Code             decide.ID              `json:"code"`
	CustomerCode     string                 `json:"customer_code"`
	Symbol           string                 `json:"symbol"`
	Action           order.Action           `json:"action"`
	OrderType        order.Type             `json:"order_type"` // what the order does, not what was submitted
	Status           order.Status           `json:"status"`
	Amount           fixed.Decimal          `json:"amount"`
	FilledAmount     fixed.Decimal          `json:"filled_amount"`
	CashAmount       fixed.Money            `json:"cash_amount,omitzero"`
	FilledQuote      fixed.Money            `json:"filled_quote"`
	LimitPrice       *fixed.Decimal         `json:"limit_price"`
	TriggerPrice     *fixed.Decimal         `json:"trigger_price"`
	StopLossPrice    *fixed.Decimal         `json:"stop_loss_price"`
	TakeProfitPrice  *fixed.Decimal         `json:"take_profit_price"`
	TriggerPriceType order.TriggerPriceType `json:"trigger_price_type,omitzero"`
	AverageFillPrice *fixed.Decimal         `json:"average_fill_price"`
	TimeInForce      order.TimeInForce      `json:"time_in_force"`
	ExpireTime       *decide.Time           `json:"expire_time"`
	PostOnly         bool                   `json:"post_only"`
	ReduceOnly       bool                   `json:"reduce_only"`
	ReferenceID      string                 `json:"reference_id"`
	Reason           *order.Reason          `json:"reason"`
	Created          decide.Time            `json:"created"`
	Timestamp        decide.Time            `json:"timestamp"`
}

func orderUpdate(o *order.Order) *orderMessage {
	return &orderMessage{
		Channel: orders.name, Type: update, Code: o.Code, CustomerCode: o.CustomerCode, Symbol: o.Symbol, Action: o.Action,
		OrderType: o.Type.Mechanical(), Status: o.Status, Amount: o.Amount, FilledAmount: o.FilledAmount,
		CashAmount: o.CashAmount, FilledQuote: o.FilledQuote, LimitPrice: orNull(o.LimitPrice),
		TriggerPrice: orNull(o.TriggerPrice), StopLossPrice: orNull(o.StopLossPrice),
		TakeProfitPrice: orNull(o.TakeProfitPrice), TriggerPriceType: o.TriggerPriceType,
		AverageFillPrice: orNull(o.AverageFillPrice), TimeInForce: o.TimeInForce, ExpireTime: orNull(o.ExpireTime),
		PostOnly: o.PostOnly, ReduceOnly: o.ReduceOnly, ReferenceID: o.ReferenceID, Reason: orNull(o.Reason),
		Created: o.Created, Timestamp: o.Updated,
	}
}

// orNull returns nil, which is null in JSON, for an absent value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// tradeMessage is one party's view of a trade, as on the channel trades.
type tradeMessage struct {
	Channel      string            `json:"channel"`
	Type         string            `json:"type"`
	Code         decide.ID         `json:"code"`
	OrderCode    decide.ID         `json:"order_code"`
	CustomerCode string            `json:"customer_code"`
	Symbol       string            `json:"symbol"`
	Action       order.Action      `json:"action"`
	Price        fixed.Decimal     `json:"price"`
	Amount       fixed.Decimal     `json:"amount"`
	Notional     fixed.Money       `json:"notional"`
	Fee          fixed.Money       `json:"fee"`
	FeeCurrency  string            `json:"fee_currency"`
	Role         string            `json:"role"`
	TradeType    trading.TradeKind `json:"trade_type"`
	ReferenceID  string            `json:"reference_id"`
	Timestamp    decide.Time       `json:"timestamp"`
}

func tradeUpdate(e *trading.TradeExecuted, maker bool, at decide.Time) *tradeMessage {
	leg, action, role, kind := &e.Taker, e.Action, "taker", e.Kind
	if maker {
		leg, action, role = &e.Maker, e.Action.Opposite(), "maker"
		if kind == trading.Liquidation { // the counterparty of a liquidation just trades
			kind = trading.Trade
		}
	}
	return &tradeMessage{
		Channel: trades.name, Type: update, Code: e.Code, OrderCode: leg.OrderCode, CustomerCode: leg.CustomerCode,
		Symbol: e.Symbol, Action: action, Price: e.Price, Amount: e.Amount, Notional: e.Notional, Fee: leg.Fee,
		FeeCurrency: ledger.USDC, Role: role, TradeType: kind, ReferenceID: leg.ReferenceID, Timestamp: at,
	}
}

// marketTradeMessage is a trade as everybody sees it, as on the channel market-trades.
type marketTradeMessage struct {
	Channel   string            `json:"channel"`
	Symbol    string            `json:"symbol"`
	Code      decide.ID         `json:"code"`
	Price     fixed.Decimal     `json:"price"`
	Amount    fixed.Decimal     `json:"amount"`
	Action    order.Action      `json:"action"`
	Type      trading.TradeKind `json:"type"`
	Timestamp decide.Time       `json:"timestamp"`
	Sequence  int64             `json:"sequence"`
}

func marketTrade(e *trading.TradeExecuted, at decide.Stamp) *marketTradeMessage {
	return &marketTradeMessage{
		Channel: marketTrades.topic(e.Symbol), Symbol: e.Symbol, Code: e.Code, Price: e.Price, Amount: e.Amount,
		Action: e.Action, Type: e.Kind, Timestamp: at.Time, Sequence: at.Sequence,
	}
}

// balanceMessage is a row of a customer's transactions, as on the channel balance-changes.
type balanceMessage struct {
	Channel         string        `json:"channel"`
	Type            string        `json:"type"`
	Code            decide.ID     `json:"code"`
	CustomerCode    string        `json:"customer_code"`
	TransactionType ledger.Type   `json:"transaction_type"`
	Currency        string        `json:"currency"`
	Amount          fixed.Money   `json:"amount"`
	Status          ledger.Status `json:"status"`
	Balance         *fixed.Money  `json:"balance,omitzero"` // completed rows only, as is the next
	BalanceAsOf     decide.Time   `json:"balance_as_of,omitzero"`
	Symbol          *string       `json:"symbol"`
	OrderCode       *decide.ID    `json:"order_code"`
	Timestamp       decide.Time   `json:"timestamp"`
	Sequence        int64         `json:"sequence"`
}

func postingRow(p *ledger.Posting, at decide.Stamp) *balanceMessage {
	return &balanceMessage{
		Channel: balanceChanges.name, Type: update, Code: p.Code, CustomerCode: p.CustomerCode, TransactionType: p.Type,
		Currency: p.Currency, Amount: p.Amount, Status: ledger.Completed, Balance: &p.Balance, BalanceAsOf: at.Time,
		Symbol: orNull(p.Symbol), OrderCode: orNull(p.OrderCode), Timestamp: at.Time, Sequence: at.Sequence,
	}
}

func transactionRow(t *ledger.Transaction, at decide.Stamp) *balanceMessage {
	m := &balanceMessage{
		Channel: balanceChanges.name, Type: update, Code: t.Code, CustomerCode: t.CustomerCode, TransactionType: t.Type,
		Currency: t.Currency, Amount: t.Amount, Status: t.Status, Timestamp: t.Updated, Sequence: at.Sequence,
	}
	if t.Status == ledger.Completed {
		m.Balance, m.BalanceAsOf = &t.Balance, at.Time
	}
	return m
}
