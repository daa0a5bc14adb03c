package trades

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
)

// Filter narrows a list. Empty fields narrow nothing.
type Filter struct {
	projections.Scope
	Symbol    string
	OrderCode scalar.ID
	Types     []trading.TradeType
	projections.Span
}

// Page returns a page of the trades of customers.
func Page(ctx context.Context, db projections.DB, f Filter, p projections.Page) (projections.Paged[Trade], error) {
	l := table.In(f.Scope)
	l.Where.AndText("symbol", f.Symbol)
	projections.AndAnyOf(&l.Where, "type", f.Types)
	l.OfOrder(f.OrderCode)
	l.During(f.Span)
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
	l.Order, l.Limit = table.NewestFirst(), limit
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
	l.During(f.Span)
	return l
}

// public takes the names off a taker's side.
func public(t *Trade) MarketTrade {
	return MarketTrade{Code: t.Code, Symbol: t.Symbol, Price: t.Price, Amount: t.Amount, Action: t.Action, Type: t.Type,
		Time: t.Time, Sequence: t.Sequence, Ordinal: t.Ordinal}
}
