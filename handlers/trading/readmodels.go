package trading

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/customers"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/projections/tickers"
	"github.com/perpetua-exchange/perpetua/projections/trades"
)

// readModels are the Records in a database.
type readModels struct {
	web.Waiter
	db projections.DB
}

// NewRecords reads from a database. The waiter waits for its rows: the runner of the trading journal's projections.
func NewRecords(db projections.DB, rows web.Waiter) Records { return &readModels{rows, db} }

// Customers implements Records.
func (r *readModels) Customers(ctx context.Context, broker string, p projections.Page) (projections.Paged[customers.Customer], error) {
	return customers.Page(ctx, r.db, broker, p)
}

// OpenOrders implements Records.
func (r *readModels) OpenOrders(ctx context.Context, f orders.Filter) ([]orders.Order, int64, error) {
	return orders.Open(ctx, r.db, f)
}

// OrderHistory implements Records.
func (r *readModels) OrderHistory(ctx context.Context, f orders.Filter, p projections.Page) (projections.Paged[orders.Order], error) {
	return orders.History(ctx, r.db, f, p)
}

// OrderByCode implements Records.
func (r *readModels) OrderByCode(ctx context.Context, s orders.Scope, code scalar.ID) (orders.Order, bool, int64, error) {
	return orders.ByCode(ctx, r.db, s, code)
}

// OrderByReference implements Records.
func (r *readModels) OrderByReference(ctx context.Context, s orders.Scope, reference string) (orders.Order, bool, int64, error) {
	return orders.ByReference(ctx, r.db, s, reference)
}

// Trades implements Records.
func (r *readModels) Trades(ctx context.Context, f trades.Filter, p projections.Page) (projections.Paged[trades.Trade], error) {
	return trades.Page(ctx, r.db, f, p)
}

// Transactions implements Records.
func (r *readModels) Transactions(ctx context.Context, f ledger.Filter, p projections.Page) (projections.Paged[ledger.Transaction], error) {
	return ledger.Transactions(ctx, r.db, f, p)
}

// MarketTrades implements Records.
func (r *readModels) MarketTrades(ctx context.Context, f trades.MarketFilter, p projections.Page) (projections.Paged[trades.MarketTrade], error) {
	return trades.MarketPage(ctx, r.db, f, p)
}

// RecentMarketTrades implements Records.
func (r *readModels) RecentMarketTrades(ctx context.Context, f trades.MarketFilter, limit int) ([]trades.MarketTrade, int64, error) {
	return trades.MostRecent(ctx, r.db, f, limit)
}

// Traded implements Records.
func (r *readModels) Traded(ctx context.Context, since scalar.Time) ([]tickers.Figures, int64, error) {
	return tickers.Since(ctx, r.db, since)
}

// commandLog is a CommandLog in a database.
type commandLog struct {
	web.Waiter
	db   projections.DB
	name string
}

// NewCommandLog reads a journal's commands from a database. The waiter waits for their rows: the runner of the
// journal's projections.
func NewCommandLog(db projections.DB, name string, rows web.Waiter) CommandLog {
	return &commandLog{rows, db, name}
}

// Journal implements CommandLog.
func (l *commandLog) Journal() string { return l.name }

// Command implements CommandLog.
func (l *commandLog) Command(ctx context.Context, broker string, id scalar.ID) (records.Record, bool, int64, error) {
	return records.ByCommand(ctx, l.db, l.name, broker, id)
}
