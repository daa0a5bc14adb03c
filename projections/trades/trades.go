// Package trades is the read model of trades: a row for each side. The market's trades are the takers' rows without
// their names. Candles sum them up by the minute and by the hour.
//
// A row's place in every list is its record's sequence and, within it, twice its event's place, plus 1 for the maker.
// Times never go back along the sequence, so lists are in the order of time too.
package trades

import (
	_ "embed"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

//go:embed copy.sql
var copyTrades string

//go:embed upsert_candles.sql
var upsertCandles string

// Projection keeps the tables trades and candles.
type Projection struct{}

// Name returns "trades".
func (Projection) Name() string { return "trades" }

// Tables returns the tables of trades and of candles.
func (Projection) Tables() []string {
	return []string{"trades", "candles"}
}

// Role says which side of a trade a customer was.
type Role string

// The two roles.
const (
	Maker Role = "maker"
	Taker Role = "taker"
)

// Trade is one customer's side of a trade.
type Trade struct {
	Code         scalar.ID
	OrderCode    scalar.ID
	CustomerCode string
	Broker       string
	Symbol       string
	Action       order.Action
	Price        fixed.Decimal
	Amount       fixed.Decimal
	Notional     fixed.Money
	Fee          fixed.Money // negative: a rebate
	FeeCurrency  string
	Role         Role
	Type         trading.TradeKind // what it was to this customer
	ReferenceID  string            // of the order
	Time         scalar.Time
	Sequence     int64
}

// MarketTrade is a trade as everybody may see it.
type MarketTrade struct {
	Code     scalar.ID
	Symbol   string
	Price    fixed.Decimal
	Amount   fixed.Decimal
	Action   order.Action // the taker's
	Type     trading.TradeKind
	Time     scalar.Time
	Sequence int64
}

// Of returns the taker's and the maker's side of a trade. Of a liquidation only the taker was liquidated; to the maker
// it was a trade like any other. Deleveraging is what it is for both.
func Of(at decide.Stamp, e *trading.TradeExecuted) (taker, maker Trade) {
	side := func(leg *trading.TradeLeg, role Role, action order.Action, kind trading.TradeKind) Trade {
		return Trade{Code: e.Code, OrderCode: leg.OrderCode, CustomerCode: leg.CustomerCode, Broker: leg.Broker,
			Symbol: e.Symbol, Action: action, Price: e.Price, Amount: e.Amount, Notional: e.Notional, Fee: leg.Fee,
			FeeCurrency: ledger.USDC, Role: role, Type: kind, ReferenceID: leg.ReferenceID, Time: at.Time, Sequence: at.Sequence}
	}
	makers := e.Kind
	if makers == trading.Liquidation {
		makers = trading.Trade
	}
	return side(&e.Taker, Taker, e.Action, e.Kind), side(&e.Maker, Maker, e.Action.Opposite(), makers)
}

// OfMarket returns a trade as everybody may see it.
func OfMarket(at decide.Stamp, e *trading.TradeExecuted) MarketTrade {
	return MarketTrade{Code: e.Code, Symbol: e.Symbol, Price: e.Price, Amount: e.Amount, Action: e.Action, Type: e.Kind,
		Time: at.Time, Sequence: at.Sequence}
}

// Project adds the rows of every trade in the entries, and what the trades make of their candles.
func (Projection) Project(entries []journal.Entry, batch *projections.Batch) {
	rows := batch.Copy(copyTrades)
	var changed candles
	for _, e := range entries {
		at := e.Stamp()
		for i, event := range e.Record.Events {
			t, ok := event.(*trading.TradeExecuted)
			if !ok {
				continue
			}
			taker, maker := Of(at, t)
			taker.encode(rows, 2*int64(i))
			maker.encode(rows, 2*int64(i)+1)
			changed.add(at.Time, t)
		}
	}
	changed.queue(batch)
}

// encode adds the columns of copy.sql.
func (t *Trade) encode(to *c.Rows, ordinal int64) {
	to.Begin(17)
	to.Int(t.Sequence)
	to.Small(ordinal)
	to.ID(t.Code)
	to.ID(t.OrderCode)
	to.Text(t.CustomerCode)
	to.Text(t.Broker)
	to.Text(t.Symbol)
	to.Text(string(t.Action))
	to.Decimal(t.Price)
	to.Decimal(t.Amount)
	to.Money(t.Notional)
	to.Money(t.Fee)
	to.Text(t.FeeCurrency)
	to.Text(string(t.Role))
	to.Text(string(t.Type))
	to.Text(t.ReferenceID)
	to.Time(t.Time)
}
