// Package trades is the read model of trades: of customers, a row for each side, and of the market, without names.
//
// A row's place in every list is its record's sequence and, within it, its event's place. Times never go back along
// the sequence, so lists are in the order of time too.
package trades

import (
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

//go:embed insert_trades.sql
var insertTrades string

//go:embed insert_market_trades.sql
var insertMarketTrades string

// Projection keeps the tables trades and market_trades.
type Projection struct{}

// Name returns "trades".
func (Projection) Name() string { return "trades" }

// Tables returns the tables of customers' and of market trades.
func (Projection) Tables() []string {
	return []string{"trades", "market_trades"}
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
	Code         decide.ID
	OrderCode    decide.ID
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
	Time         decide.Time
	Sequence     int64
}

// MarketTrade is a trade as everybody may see it.
type MarketTrade struct {
	Code     decide.ID
	Symbol   string
	Price    fixed.Decimal
	Amount   fixed.Decimal
	Action   order.Action // the taker's
	Type     trading.TradeKind
	Time     decide.Time
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

type (
	row       = projections.Row[Trade]
	marketRow = projections.Row[MarketTrade]
)

// Project queues the rows of every trade in the entries.
func (Projection) Project(entries []journal.Entry, batch *pgx.Batch) {
	var rows []row
	var market []marketRow
	for _, e := range entries {
		for i, event := range e.Record.Events {
			t, ok := event.(*trading.TradeExecuted)
			if !ok {
				continue
			}
			taker, maker := Of(e.Stamp(), t)
			key := projections.Key{Sequence: e.Record.Sequence, Ordinal: int64(i)}
			market = append(market, marketRow{Key: key, Value: OfMarket(e.Stamp(), t)})
			key.Ordinal *= 2
			rows = append(rows, row{Key: key, Value: taker})
			key.Ordinal++
			rows = append(rows, row{Key: key, Value: maker})
		}
	}
	if len(rows) > 0 {
		batch.Queue(insertTrades, c.Args(rows, columns()...)...)
		batch.Queue(insertMarketTrades, c.Args(market, marketColumns()...)...)
	}
}

func columns() []c.Of[row] {
	return []c.Of[row]{
		c.Int(func(r *row) int64 { return r.Key.Sequence }),
		c.Small(func(r *row) int64 { return r.Key.Ordinal }),
		c.ID(func(r *row) decide.ID { return r.Value.Code }),
		c.ID(func(r *row) decide.ID { return r.Value.OrderCode }),
		c.Text(func(r *row) string { return r.Value.CustomerCode }),
		c.Text(func(r *row) string { return r.Value.Broker }),
		c.Text(func(r *row) string { return r.Value.Symbol }),
		c.Text(func(r *row) string { return string(r.Value.Action) }),
		c.Decimal(func(r *row) fixed.Decimal { return r.Value.Price }),
		c.Decimal(func(r *row) fixed.Decimal { return r.Value.Amount }),
		c.Money(func(r *row) fixed.Money { return r.Value.Notional }),
		c.Money(func(r *row) fixed.Money { return r.Value.Fee }),
		c.Text(func(r *row) string { return r.Value.FeeCurrency }),
		c.Text(func(r *row) string { return string(r.Value.Role) }),
		c.Text(func(r *row) string { return string(r.Value.Type) }),
		c.Text(func(r *row) string { return r.Value.ReferenceID }),
		c.Time(func(r *row) decide.Time { return r.Value.Time }),
	}
}

func marketColumns() []c.Of[marketRow] {
	return []c.Of[marketRow]{
		c.Int(func(r *marketRow) int64 { return r.Key.Sequence }),
		c.Small(func(r *marketRow) int64 { return r.Key.Ordinal }),
		c.ID(func(r *marketRow) decide.ID { return r.Value.Code }),
		c.Text(func(r *marketRow) string { return r.Value.Symbol }),
		c.Decimal(func(r *marketRow) fixed.Decimal { return r.Value.Price }),
		c.Decimal(func(r *marketRow) fixed.Decimal { return r.Value.Amount }),
		c.Text(func(r *marketRow) string { return string(r.Value.Action) }),
		c.Text(func(r *marketRow) string { return string(r.Value.Type) }),
		c.Time(func(r *marketRow) decide.Time { return r.Value.Time }),
	}
}
