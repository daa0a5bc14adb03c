// Package orders is the read model of orders: every order there ever was, as its last record left it.
//
// An order's place in every list is that of the record that made it, so it never moves while a client pages. The
// sequence beside it is that of the record that changed it last.
package orders

import (
	_ "embed"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

//go:embed copy.sql
var copyOrders string

//go:embed update.sql
var update string

// Projection keeps the table orders.
type Projection struct{}

// Name returns "orders".
func (Projection) Name() string { return "orders" }

// Tables returns the table orders.
func (Projection) Tables() []string {
	return []string{"orders"}
}

// row is an order as the entries leave it, and where its first and last events among them stand.
type row struct {
	*order.Order
	made     bool // by one of the entries
	created  projections.Key
	sequence int64
}

// Project adds the last state of every order that the entries change: new rows of those that they make, changes of
// the others. An order is made where its code is the one that the journal gives to that place.
func (Projection) Project(entries []journal.Entry, batch *projections.Batch) {
	var changed projections.Latest[scalar.ID, row]
	for _, e := range entries {
		for i, event := range e.Record.Events {
			o, ok := event.(trading.OrderEvent)
			if !ok {
				continue
			}
			r, again := changed.Slot(o.After().Code)
			r.Order, r.sequence = o.After(), e.Record.Sequence
			if !again && r.Code == e.Stamp().Derive(i) {
				r.made, r.created = true, projections.Key{Sequence: r.sequence, Ordinal: int64(i)}
			}
		}
	}
	made := batch.Copy(copyOrders)
	var known []row
	for _, r := range changed.Rows() {
		if r.made {
			r.encode(made)
		} else {
			known = append(known, r)
		}
	}
	if len(known) > 0 {
		batch.Change(len(known), update, c.Args(known, columns()...)...)
	}
}

// encode adds the columns of copy.sql.
func (r *row) encode(to *c.Rows) {
	to.Begin(29)
	to.ID(r.Code)
	to.Text(r.CustomerCode)
	to.Text(r.Broker)
	to.Text(r.Symbol)
	to.Text(string(r.Action))
	to.Text(string(r.Type))
	to.Text(string(r.Status))
	to.Bool(r.Status.Live())
	to.Decimal(r.Amount)
	to.Decimal(r.FilledAmount)
	to.NullDecimal(r.CashAmount.Decimal())
	to.Money(r.FilledQuote)
	to.NullDecimal(r.LimitPrice)
	to.NullDecimal(r.TriggerPrice)
	to.NullDecimal(r.StopLossPrice)
	to.NullDecimal(r.TakeProfitPrice)
	to.NullText(string(r.TriggerPriceType))
	to.NullDecimal(r.AverageFillPrice)
	to.Text(string(r.TimeInForce))
	to.Time(r.ExpireTime)
	to.Bool(r.PostOnly)
	to.Bool(r.ReduceOnly)
	to.Text(r.ReferenceID)
	to.NullText(string(r.Reason))
	to.Time(r.Created)
	to.Time(r.Updated)
	to.Int(r.created.Sequence)
	to.Small(r.created.Ordinal)
	to.Int(r.sequence)
}

// columns are those of update.sql: what changes while an order lives.
func columns() []c.Of[row] {
	return []c.Of[row]{
		c.ID(func(r *row) scalar.ID { return r.Code }),
		c.Text(func(r *row) string { return string(r.Status) }),
		c.Bool(func(r *row) bool { return r.Status.Live() }),
		c.Decimal(func(r *row) fixed.Decimal { return r.Amount }),
		c.Decimal(func(r *row) fixed.Decimal { return r.FilledAmount }),
		c.Money(func(r *row) fixed.Money { return r.FilledQuote }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.LimitPrice }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.TriggerPrice }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.StopLossPrice }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.TakeProfitPrice }),
		c.NullDecimal(func(r *row) fixed.Decimal { return r.AverageFillPrice }),
		c.Time(func(r *row) scalar.Time { return r.ExpireTime }),
		c.NullText(func(r *row) string { return string(r.Reason) }),
		c.Time(func(r *row) scalar.Time { return r.Updated }),
		c.Int(func(r *row) int64 { return r.sequence }),
	}
}
