package wire

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// Trade is the REST form of a customer's side of a trade.
type Trade struct {
	TradeHead
	Type trading.TradeType `json:"type"`
	TradeRest
}

// NewTrade converts a customer's side of a trade to its REST form.
func NewTrade(t *trading.CustomerTrade) Trade {
	return Trade{TradeHead{Code: t.Code, OrderCode: NullIfZero(t.OrderCode), CustomerCode: t.CustomerCode, Symbol: t.Symbol, Action: t.Action,
		Price: t.Price, Amount: t.Amount, Notional: t.Notional, Fee: t.Fee, FeeCurrency: t.FeeCurrency, Role: t.Role},
		t.Type, TradeRest{NullIfZero(t.ReferenceID), t.Time, t.Sequence, t.Ordinal}}
}

// Message returns the trade as a message on a channel.
func (t Trade) Message(channel string) *TradeMessage {
	return &TradeMessage{channel, Update, t.TradeHead, t.Type, t.TradeRest}
}

// TradeMessage is a customer's side of a trade on the trades channel.
type TradeMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"` // the message type, always "update"
	TradeHead
	Type trading.TradeType `json:"trade_type"`
	TradeRest
}

// TradeHead holds the leading members, which both forms of a trade share.
type TradeHead struct {
	Code         scalar.ID           `json:"code"`
	OrderCode    Nullable[scalar.ID] `json:"order_code"` // null for takeovers and deleveraging
	CustomerCode string              `json:"customer_code"`
	Symbol       string              `json:"symbol"`
	Action       order.Action        `json:"action"`
	Price        fixed.Decimal       `json:"price"`
	Amount       fixed.Decimal       `json:"amount"`
	Notional     fixed.Money         `json:"notional"`
	Fee          fixed.Money         `json:"fee"`
	FeeCurrency  string              `json:"fee_currency"`
	Role         trading.Role        `json:"role"`
}

// TradeRest holds the members after the type, which both forms of a trade share.
type TradeRest struct {
	ReferenceID Nullable[string] `json:"reference_id"` // of the order
	Timestamp   scalar.Time      `json:"timestamp"`
	Sequence    int64            `json:"sequence"`
	Ordinal     int              `json:"ordinal"` // index among the record's trades
}

// AppendJSON appends the message exactly as the generic encoder writes it.
func (m *TradeMessage) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	envelope(&w, m.Channel, m.Kind)
	m.TradeHead.write(&w)
	w.Raw(`,"trade_type":`)
	w.String(string(m.Type))
	m.TradeRest.write(&w)
	return w.Bytes, w.Err
}

func (h *TradeHead) write(w *fastjson.Writer) {
	w.Raw(`"code":`)
	fastjson.Text(w, h.Code)
	w.Raw(`,"order_code":`)
	if h.OrderCode.Value.IsZero() {
		w.Raw(`null`)
	} else {
		fastjson.Text(w, h.OrderCode.Value)
	}
	w.Raw(`,"customer_code":`)
	w.String(h.CustomerCode)
	w.Raw(`,"symbol":`)
	w.String(h.Symbol)
	w.Raw(`,"action":`)
	w.String(string(h.Action))
	w.Raw(`,"price":`)
	fastjson.Text(w, h.Price)
	w.Raw(`,"amount":`)
	fastjson.Text(w, h.Amount)
	w.Raw(`,"notional":`)
	fastjson.Text(w, h.Notional)
	w.Raw(`,"fee":`)
	fastjson.Text(w, h.Fee)
	w.Raw(`,"fee_currency":`)
	w.String(h.FeeCurrency)
	w.Raw(`,"role":`)
	w.String(string(h.Role))
}

func (r *TradeRest) write(w *fastjson.Writer) {
	w.Raw(`,"reference_id":`)
	if r.ReferenceID.Value == "" {
		w.Raw(`null`)
	} else {
		w.String(r.ReferenceID.Value)
	}
	w.Raw(`,"timestamp":`)
	fastjson.Text(w, r.Timestamp)
	writePosition(w, r.Sequence, r.Ordinal)
	w.Raw(`}`)
}

// MarketTrade is the REST form of a public trade.
type MarketTrade struct {
	Code   scalar.ID `json:"code"`
	Symbol string    `json:"symbol"`
	MarketTradeRest
}

// NewMarketTrade converts a public trade to its REST form.
func NewMarketTrade(t *trading.PublicTrade) MarketTrade {
	return MarketTrade{t.Code, t.Symbol, MarketTradeRest{Price: t.Price, Amount: t.Amount, Action: t.Action, Type: t.Type,
		Timestamp: t.Time, Sequence: t.Sequence, Ordinal: t.Ordinal}}
}

// Message returns the trade as a message on a channel.
func (t MarketTrade) Message(channel string) *MarketTradeMessage {
	return &MarketTradeMessage{channel, t.Symbol, t.Code, t.MarketTradeRest}
}

// MarketTradeMessage is a public trade on a market-trades channel.
type MarketTradeMessage struct {
	Channel string    `json:"channel"`
	Symbol  string    `json:"symbol"`
	Code    scalar.ID `json:"code"`
	MarketTradeRest
}

// MarketTradeRest holds the members after the code and symbol, which both forms of a public trade share.
type MarketTradeRest struct {
	Price     fixed.Decimal     `json:"price"`
	Amount    fixed.Decimal     `json:"amount"`
	Action    order.Action      `json:"action"` // of the taker
	Type      trading.TradeType `json:"type"`
	Timestamp scalar.Time       `json:"timestamp"`
	Sequence  int64             `json:"sequence"`
	Ordinal   int               `json:"ordinal"` // index among the record's trades
}

// AppendJSON appends the message exactly as the generic encoder writes it.
func (m *MarketTradeMessage) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	w.Raw(`{"channel":`)
	w.String(m.Channel)
	w.Raw(`,"symbol":`)
	w.String(m.Symbol)
	w.Raw(`,"code":`)
	fastjson.Text(&w, m.Code)
	w.Raw(`,"price":`)
	fastjson.Text(&w, m.Price)
	w.Raw(`,"amount":`)
	fastjson.Text(&w, m.Amount)
	w.Raw(`,"action":`)
	w.String(string(m.Action))
	w.Raw(`,"type":`)
	w.String(string(m.Type))
	w.Raw(`,"timestamp":`)
	fastjson.Text(&w, m.Timestamp)
	writePosition(&w, m.Sequence, m.Ordinal)
	w.Raw(`}`)
	return w.Bytes, w.Err
}

func writePosition(w *fastjson.Writer, sequence int64, ordinal int) {
	writeSequence(w, sequence)
	w.Raw(`,"ordinal":`)
	w.Bytes = strconv.AppendInt(w.Bytes, int64(ordinal), 10)
}
