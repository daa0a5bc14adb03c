// Package orders is the read model of orders: every order there ever was, as its last record left it.
//
// An order's place in every list is that of the record that made it, so it never moves while a client pages. The
// sequence beside it is that of the record that changed it last.
package orders

import (
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

//go:embed upsert.sql
var upsert string

// Projection keeps the table orders.
type Projection struct{}

// Name returns "orders".
func (Projection) Name() string { return "orders" }

// Tables returns the table orders.
func (Projection) Tables() []string {
	return []string{"orders"}
}

// row is an order and where its first and last events of a batch stand.
type row struct {
	*order.Order
	created  projections.Key
	sequence int64
}

// Project queues one statement with the last state of every order that the entries change. The place where an order
// was made is only kept if the table doesn't have the order yet.
func (Projection) Project(entries []journal.Entry, batch *pgx.Batch) {
	var changed projections.Latest[decide.ID, row]
	for _, e := range entries {
		for i, event := range e.Record.Events {
			o, ok := event.(trading.OrderEvent)
			if !ok {
				continue
			}
			after := o.After()
			at := row{after, projections.Key{Sequence: e.Record.Sequence, Ordinal: int64(i)}, e.Record.Sequence}
			if old, again := changed.Put(after.Code, at); again {
				at.created = old.created
				changed.Put(after.Code, at)
			}
		}
	}
	if rows := changed.Rows(); len(rows) > 0 {
		batch.Queue(upsert, c.Args(rows, columns()...)...)
	}
}

func columns() []c.Of[row] {
	return []c.Of[row]{
		c.ID(func(r *row) decide.ID { return r.Code }),
		c.Text(func(r *row) string { return r.CustomerCode }),
		c.Text(func(r *row) string { return r.Broker }),
		c.Text(func(r *row) string { return r.Symbol }),
		c.Text(func(r *row) string { return string(r.Action) }),
		c.Text(func(r *row) string { return string(r.Type) }),
		c.Text(func(r *row) string { return string(r.Status) }),
		c.Bool(func(r *row) bool { return r.Status.Live() }),
		c.Decimal(func(r *row) fixed.Decimal { return r.Amount }),
		c.Decimal(func(r *row) fixed.Decimal { return r.FilledAmount }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.CashAmount.Decimal() }),
		c.Money(func(r *row) fixed.Money { return r.FilledQuote }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.LimitPrice }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.TriggerPrice }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.StopLossPrice }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.TakeProfitPrice }),
		c.NullText(func(r *row) string { return string(r.TriggerPriceType) }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.AverageFillPrice }),
		c.Text(func(r *row) string { return string(r.TimeInForce) }),
		c.Time(func(r *row) decide.Time { return r.ExpireTime }),
		c.Bool(func(r *row) bool { return r.PostOnly }),
		c.Bool(func(r *row) bool { return r.ReduceOnly }),
		c.Text(func(r *row) string { return r.ReferenceID }),
		c.NullText(func(r *row) string { return string(r.Reason) }),
		c.Time(func(r *row) decide.Time { return r.Created }),
		c.Time(func(r *row) decide.Time { return r.Updated }),
		c.Int(func(r *row) int64 { return r.created.Sequence }),
		c.Small(func(r *row) int64 { return r.created.Ordinal }),
		c.Int(func(r *row) int64 { return r.sequence }),
	}
}
