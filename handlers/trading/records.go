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

// Records are the read models of the trading journal, as far as this interface reads them. Every answer comes with the
// sequence that it is as of. As a waiter it waits for the rows.
type Records interface {
	web.Waiter
	Customers(ctx context.Context, broker string, p projections.Page) (projections.Paged[customers.Customer], error)
	OpenOrders(ctx context.Context, f orders.Filter) ([]orders.Order, int64, error)
	OrderHistory(ctx context.Context, f orders.Filter, p projections.Page) (projections.Paged[orders.Order], error)
	OrderByCode(ctx context.Context, s orders.Scope, code scalar.ID) (o orders.Order, found bool, asOf int64, err error)
	OrderByReference(ctx context.Context, s orders.Scope, reference string) (o orders.Order, found bool, asOf int64, err error)
	Trades(ctx context.Context, f trades.Filter, p projections.Page) (projections.Paged[trades.Trade], error)
	Transactions(ctx context.Context, f ledger.Filter, p projections.Page) (projections.Paged[ledger.Transaction], error)
	MarketTrades(ctx context.Context, f trades.MarketFilter, p projections.Page) (projections.Paged[trades.MarketTrade], error)
	RecentMarketTrades(ctx context.Context, f trades.MarketFilter, limit int) ([]trades.MarketTrade, int64, error)
	// Traded returns what was traded since a time. A symbol without trades has no figures.
	Traded(ctx context.Context, since scalar.Time) ([]tickers.Figures, int64, error)
}

// CommandLog tells what became of a journal's commands.
type CommandLog interface {
	web.Waiter
	// Journal is its name.
	Journal() string
	// Command returns the record of a command of the broker's users; broker "" stands for any.
	Command(ctx context.Context, broker string, id scalar.ID) (r records.Record, found bool, asOf int64, err error)
}
