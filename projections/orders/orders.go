// Package orders is the read model of orders: one row for every order, in its state after the last record that changed
// it.
//
// An order has the sequence of the record that created it, which determines its place in every list. So it never moves
// while a client pages. Order.Sequence is the sequence of the record that last changed it.
package orders

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection keeps the tables orders and order_history.
var Projection = projections.NewProjection("orders", project, table.Name, history.Name())

// Order is an order in its state after the record Sequence.
type Order struct {
	order.Order
	Sequence int64
	// Sweeping says that the order continues to trade in a later record. Until then it is live, but not in the book.
	Sweeping bool
}

// row has as its key the place of the record that made the order.
type row = projections.Row[Order]

var table = &projections.Table[Order]{
	Name: "orders", Journal: "trading", Keys: []string{"created_sequence", "created_ordinal"},
	Columns: []c.Column[row]{
		c.ID("code", func(r *row) *scalar.ID { return &r.Value.Code }).Key(),
		c.Text("customer_code", func(r *row) *string { return &r.Value.CustomerCode }).Fixed(),
		c.Text("broker", func(r *row) *string { return &r.Value.Broker }).Fixed(),
		c.Text("symbol", func(r *row) *string { return &r.Value.Symbol }).Fixed(),
		c.Text("action", func(r *row) *order.Action { return &r.Value.Action }).Fixed(),
		c.Text("type", func(r *row) *order.Type { return &r.Value.Type }).Fixed(),
		c.Text("status", func(r *row) *order.Status { return &r.Value.Status }),
		c.Whether("live", func(r *row) bool { return r.Value.Status.Live() }),
		c.Bool("sweeping", func(r *row) *bool { return &r.Value.Sweeping }),
		c.Decimal("amount", func(r *row) *fixed.Decimal { return &r.Value.Amount }),
		c.Decimal("filled_amount", func(r *row) *fixed.Decimal { return &r.Value.FilledAmount }),
		c.MoneyWhere("cash_amount", func(r *row) bool { return r.Value.CashAmount != 0 }, func(r *row) *fixed.Money { return &r.Value.CashAmount }).Fixed(),
		c.Money("filled_quote", func(r *row) *fixed.Money { return &r.Value.FilledQuote }),
		c.NullDecimal("limit_price", func(r *row) *fixed.Decimal { return &r.Value.LimitPrice }),
		c.NullDecimal("trigger_price", func(r *row) *fixed.Decimal { return &r.Value.TriggerPrice }),
		c.NullDecimal("stop_loss_price", func(r *row) *fixed.Decimal { return &r.Value.StopLossPrice }),
		c.NullDecimal("take_profit_price", func(r *row) *fixed.Decimal { return &r.Value.TakeProfitPrice }),
		c.NullText("trigger_price_type", func(r *row) *order.TriggerPriceType { return &r.Value.TriggerPriceType }).Fixed(),
		// Only the record that triggers an order says so, in logs that follow rules 1: later changes keep the time.
		c.Time("triggered", func(r *row) *scalar.Time { return &r.Value.Triggered }).Once(),
		c.NullDecimal("average_fill_price", func(r *row) *fixed.Decimal { return &r.Value.AverageFillPrice }),
		c.Text("time_in_force", func(r *row) *order.TimeInForce { return &r.Value.TimeInForce }).Fixed(),
		c.Time("expire_time", func(r *row) *scalar.Time { return &r.Value.ExpireTime }),
		c.Bool("post_only", func(r *row) *bool { return &r.Value.PostOnly }).Fixed(),
		c.Bool("reduce_only", func(r *row) *bool { return &r.Value.ReduceOnly }).Fixed(),
		c.Text("reference_id", func(r *row) *string { return &r.Value.ReferenceID }).Fixed(),
		c.NullText("reason", func(r *row) *order.Reason { return &r.Value.Reason }),
		c.Time("created", func(r *row) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Time("updated", func(r *row) *scalar.Time { return &r.Value.Updated }),
		c.Int("created_sequence", func(r *row) *int64 { return &r.Key.Sequence }).Fixed(),
		c.Small("created_ordinal", func(r *row) *int64 { return &r.Key.Ordinal }).Fixed(),
		c.Int("sequence", func(r *row) *int64 { return &r.Value.Sequence }),
	},
}

// history has the earlier states of orders.
var history = projections.NewHistory(table, "order_history", "customer_code")

// version is a state that an order had until a later record.
type version = projections.Version[Order]

// changed is an order as the entries leave it.
type changed struct {
	last      *order.Order
	made      bool // by one of the entries
	created   projections.Key
	triggered scalar.Time // zero if none of the entries says so
	sequence  int64
	first     int64 // the sequence of the first entry that changes the order
	sweeping  bool  // after the last entry
}

// row returns the order's row as the last entry so far leaves it.
func (o *changed) row() row {
	r := row{Key: o.created, Value: Order{*o.last, o.sequence, o.sweeping}}
	r.Value.Triggered = o.triggered
	return r
}

// project adds the last state of every order that the entries change: new rows of those that they make, changes of
// the others. An order is made where its code is the one that the journal gives to that place. The earlier states are
// added to the history: those that the entries make, and the one in the row before them. Of the states that one record
// makes, only the last counts.
func project(entries []record.Entry, batch *projections.Batch) {
	var orders projections.Latest[scalar.ID, changed]
	var madeVersions, knownVersions []version
	for _, e := range entries {
		var triggered trading.Triggered
		sweeping := trading.Sweeping(e.Record.Events)
		for i, event := range e.Record.Events {
			after := triggered.Order(event, e.Record.Time)
			if after == nil {
				continue
			}
			r, again := orders.Slot(after.Code)
			switch {
			case !again:
				r.first = e.Record.Sequence
			case r.sequence == e.Record.Sequence:
			case r.made:
				madeVersions = append(madeVersions, version{Row: r.row(), Until: e.Record.Sequence})
			default:
				knownVersions = append(knownVersions, version{Row: r.row(), Until: e.Record.Sequence})
			}
			r.last, r.sequence, r.triggered = after, e.Record.Sequence, max(r.triggered, after.Triggered)
			r.sweeping = after.Code == sweeping
			if !again && r.last.Code == e.Stamp().Derive(i) {
				r.made, r.created = true, projections.Key{Sequence: r.sequence, Ordinal: int64(i)}
			}
		}
	}
	made := table.Copy(batch)
	var known []row
	var replaced []version
	for _, o := range orders.Rows() {
		r := o.row()
		if o.made {
			made.Add(&r)
		} else {
			known = append(known, r)
			replaced = append(replaced, version{Row: r, Until: o.first})
		}
	}
	history.Insert(batch, madeVersions)
	history.Close(batch, replaced, true)
	history.CloseKnown(batch, knownVersions)
	table.Update(batch, known)
}
