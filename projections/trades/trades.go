// Package trades is the read model of trades: a row for each side. The market's trades are the takers' rows without
// their names. Candles sum them up by the minute and by the hour.
//
// A row's place in every list is its record's sequence and, within it, twice its event's place, plus 1 for the maker.
// Times never go back along the sequence, so lists are in the order of time too.
package trades

import (
	_ "embed"

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

// Trade is one customer's side of a trade.
type Trade = trading.CustomerTrade

// MarketTrade is a trade as everybody may see it.
type MarketTrade = trading.PublicTrade

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
			taker, maker := t.Sides(at)
			encode(rows, &taker, 2*int64(i))
			encode(rows, &maker, 2*int64(i)+1)
			changed.add(at.Time, t)
		}
	}
	changed.queue(batch)
}

// encode adds the columns of copy.sql.
func encode(to *c.Rows, t *Trade, ordinal int64) {
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
