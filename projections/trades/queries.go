package trades

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Filter narrows a list. Empty fields narrow nothing.
type Filter struct {
	Broker       string // confines the list to what the caller may see; an operator has none
	CustomerCode string
	Symbol       string
	OrderCode    scalar.ID
	Types        []trading.TradeType
	projections.Span
}

// Page returns a page of the trades of customers.
func Page(ctx context.Context, db projections.DB, f Filter, p projections.Page) (projections.Paged[Trade], error) {
	l := projections.List[Trade]{Table: table, EachBroker: f.Broker == "" && f.CustomerCode == ""}
	l.Where.AndText("broker", f.Broker)
	l.Where.AndText("customer_code", f.CustomerCode)
	l.Where.AndText("symbol", f.Symbol)
	types := make([]string, len(f.Types))
	for i, t := range f.Types {
		types[i] = string(t)
	}
	l.Where.AndAnyOf("type", types)
	if !f.OrderCode.IsZero() {
		// An order's trades lie between the record that made it and the one that changed it last.
		l.Where.And("order_code = ?", c.UUID(f.OrderCode))
		l.Where.And("sequence >= (SELECT o.created_sequence FROM orders o WHERE o.code = ?)", c.UUID(f.OrderCode))
		l.Where.And("sequence <= (SELECT o.sequence FROM orders o WHERE o.code = ?)", c.UUID(f.OrderCode))
	}
	f.In(&l.Where, "trading", "sequence")
	return l.Page(ctx, db, p)
}

// MarketFilter narrows a list of market trades. Empty fields narrow nothing.
type MarketFilter struct {
	Symbol string
	projections.Span
}

// MarketPage returns a page of the market's trades.
func MarketPage(ctx context.Context, db projections.DB, f MarketFilter, p projections.Page) (projections.Paged[MarketTrade], error) {
	l := market(f)
	found, err := l.Page(ctx, db, p)
	return projections.Converted(found, public), err
}

// MostRecent returns the last trades of the market, the latest first.
func MostRecent(ctx context.Context, db projections.DB, f MarketFilter, limit int) ([]MarketTrade, int64, error) {
	l := market(f)
	l.Order, l.Limit = "sequence DESC, ordinal DESC", limit
	found, asOf, err := l.All(ctx, db)
	out := make([]MarketTrade, len(found))
	for i := range found {
		out[i] = public(&found[i])
	}
	return out, asOf, err
}

// market lists the takers' sides: each trade once.
func market(f MarketFilter) projections.List[Trade] {
	l := projections.List[Trade]{Table: table}
	l.Where.And("role = 'taker'") // a literal, for the indexes that hold nothing else
	l.Where.AndText("symbol", f.Symbol)
	f.In(&l.Where, "trading", "sequence")
	return l
}

// public takes the names off a taker's side.
func public(t *Trade) MarketTrade {
	return MarketTrade{Code: t.Code, Symbol: t.Symbol, Price: t.Price, Amount: t.Amount, Action: t.Action, Type: t.Type,
		Time: t.Time, Sequence: t.Sequence, Ordinal: t.Ordinal}
}
