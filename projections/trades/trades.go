// Package trades is the read model of trades: a row for each side. The market's trades are the takers' rows without
// their names.
//
// A row's position in every list is its record's sequence and, within it, twice its event's index, plus 1 for the maker.
// Times never go back along the sequence, so lists are in the order of time too.
package trades

import (
	"iter"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection keeps the table trades.
var Projection = projections.NewProjection("trades", project, table.Name)

// Trade is one customer's side of a trade.
type Trade = trading.CustomerTrade

// MarketTrade is a trade as everybody may see it.
type MarketTrade = trading.PublicTrade

type row = projections.Row[Trade]

var table = &projections.Table[Trade]{
	Name: "trades", Journal: "trading", Keys: []string{"sequence", "ordinal"},
	Columns: []c.Column[row]{
		c.Int("sequence", func(r *row) *int64 { return &r.Key.Sequence }),
		c.Small("ordinal", func(r *row) *int64 { return &r.Key.Ordinal }),
		c.ID("code", func(r *row) *scalar.ID { return &r.Value.Code }),
		c.ID("order_code", func(r *row) *scalar.ID { return &r.Value.OrderCode }),
		c.Text("customer_code", func(r *row) *string { return &r.Value.CustomerCode }),
		c.Text("broker", func(r *row) *string { return &r.Value.Broker }),
		c.Text("symbol", func(r *row) *string { return &r.Value.Symbol }),
		c.Text("action", func(r *row) *order.Action { return &r.Value.Action }),
		c.Decimal("price", func(r *row) *fixed.Decimal { return &r.Value.Price }),
		c.Decimal("amount", func(r *row) *fixed.Decimal { return &r.Value.Amount }),
		c.Money("notional", func(r *row) *fixed.Money { return &r.Value.Notional }),
		c.Money("fee", func(r *row) *fixed.Money { return &r.Value.Fee }),
		c.Text("fee_currency", func(r *row) *string { return &r.Value.FeeCurrency }),
		c.Text("role", func(r *row) *trading.Role { return &r.Value.Role }),
		c.Text("type", func(r *row) *trading.TradeType { return &r.Value.Type }),
		c.NullText("reference_id", func(r *row) *string { return &r.Value.ReferenceID }),
		c.Time("time", func(r *row) *scalar.Time { return &r.Value.Time }),
	},
	Loaded: func(r *row) error {
		r.Value.Sequence, r.Value.Ordinal = r.Key.Sequence, int(r.Key.Ordinal/2)
		return nil
	},
}

// project adds the rows of every trade in the entries.
func project(entries []record.Entry, batch *projections.Batch) {
	rows := table.Copy(batch)
	for i := range entries {
		for r := range Rows(&entries[i]) {
			rows.Add(r)
		}
	}
}

// Rows returns the two rows of every trade in a record, in the order of their keys.
func Rows(e *record.Entry) iter.Seq[*projections.Row[Trade]] {
	return func(yield func(*row) bool) {
		at, ordinal := e.Stamp(), 0
		for _, event := range e.Record.Events {
			t, ok := event.(*trading.TradeExecuted)
			if !ok {
				continue
			}
			taker, maker := t.Sides(at, ordinal)
			key := projections.Key{Sequence: at.Sequence, Ordinal: 2 * int64(ordinal)}
			ordinal++
			if !yield(&row{Key: key, Value: taker}) {
				return
			}
			key.Ordinal++
			if !yield(&row{Key: key, Value: maker}) {
				return
			}
		}
	}
}
