package trades

import (
	"context"

	"github.com/jackc/pgx/v5"

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
	l := projections.List[Trade]{Journal: "trading", From: "trades", Keys: []string{"sequence", "ordinal"}, Scan: scan,
		Columns: `code, order_code, customer_code, broker, symbol, action, price::text, amount::text, notional::text,
			fee::text, fee_currency, role, type, reference_id, time, sequence`}
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

func scan(row pgx.CollectableRow, t *Trade, key ...any) error {
	return row.Scan(append([]any{c.IntoID(&t.Code), c.IntoID(&t.OrderCode), &t.CustomerCode, &t.Broker, &t.Symbol,
		c.IntoText(&t.Action), c.IntoDecimal(&t.Price), c.IntoDecimal(&t.Amount), c.IntoMoney(&t.Notional),
		c.IntoMoney(&t.Fee), &t.FeeCurrency, c.IntoText(&t.Role), c.IntoText(&t.Type), &t.ReferenceID, c.IntoTime(&t.Time),
		&t.Sequence}, key...)...)
}

// MarketFilter narrows a list of market trades. Empty fields narrow nothing.
type MarketFilter struct {
	Symbol string
	projections.Span
}

// MarketPage returns a page of the market's trades.
func MarketPage(ctx context.Context, db projections.DB, f MarketFilter, p projections.Page) (projections.Paged[MarketTrade], error) {
	l := market(f)
	return l.Page(ctx, db, p)
}

// MostRecent returns the last trades of the market, the latest first.
func MostRecent(ctx context.Context, db projections.DB, f MarketFilter, limit int) ([]MarketTrade, int64, error) {
	l := market(f)
	l.Order, l.Limit = "sequence DESC, ordinal DESC", limit
	return l.All(ctx, db)
}

func market(f MarketFilter) projections.List[MarketTrade] {
	l := projections.List[MarketTrade]{Journal: "trading", From: "trades", Keys: []string{"sequence", "ordinal"},
		Columns: "code, symbol, price::text, amount::text, action, type, time, sequence", Scan: scanMarket}
	l.Where.And("role = 'taker'") // a literal, for the indexes that hold nothing else
	l.Where.AndText("symbol", f.Symbol)
	f.In(&l.Where, "trading", "sequence")
	return l
}

func scanMarket(row pgx.CollectableRow, t *MarketTrade, key ...any) error {
	return row.Scan(append([]any{c.IntoID(&t.Code), &t.Symbol, c.IntoDecimal(&t.Price), c.IntoDecimal(&t.Amount),
		c.IntoText(&t.Action), c.IntoText(&t.Type), c.IntoTime(&t.Time), &t.Sequence}, key...)...)
}
