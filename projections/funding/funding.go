// Package funding is the read model of funding rates: a row for each funding time of each instrument, including missed
// ones. Payments to and from customers are rows of package ledger.
//
// The funding times of an instrument never decrease along the sequence of their records, so lists are also ordered by
// time.
package funding

import (
	"context"
	"iter"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection maintains the table funding_rates.
var Projection = projections.NewProjection("funding", project, table.Name)

// Rate is the funding rate of a funding time, with its inputs.
type Rate = trading.FundingFixed

type row = projections.Row[Rate]

var table = &projections.Table[Rate]{
	Name: "funding_rates", Journal: "trading", Keys: []string{"sequence", "ordinal"},
	Columns: []c.Column[row]{
		c.Int("sequence", func(r *row) *int64 { return &r.Key.Sequence }),
		c.Small("ordinal", func(r *row) *int64 { return &r.Key.Ordinal }),
		c.Text("symbol", func(r *row) *string { return &r.Value.Symbol }),
		c.Decimal("funding_rate", func(r *row) *fixed.Decimal { return &r.Value.FundingRate }),
		c.Decimal("index_price", func(r *row) *fixed.Decimal { return &r.Value.IndexPrice }),
		c.Decimal("mark_price", func(r *row) *fixed.Decimal { return &r.Value.MarkPrice }),
		c.Small("interval_seconds", func(r *row) *int { return &r.Value.IntervalSeconds }),
		c.Time("time", func(r *row) *scalar.Time { return &r.Value.Time }),
		c.Bool("missed", func(r *row) *bool { return &r.Value.Missed }),
	},
}

// project adds a row for each funding time that the entries fix.
func project(entries []record.Entry, batch *projections.Batch) {
	rates := table.Copy(batch)
	for i := range entries {
		for r := range Rows(&entries[i]) {
			rates.Add(r)
		}
	}
}

// Rows returns a row for each funding time that a record fixes.
func Rows(e *record.Entry) iter.Seq[*projections.Row[Rate]] {
	return func(yield func(*row) bool) {
		key := projections.Key{Sequence: e.Record.Sequence}
		for _, event := range e.Record.Events {
			fixed, ok := event.(*trading.FundingFixed)
			if !ok {
				continue
			}
			if !yield(&row{Key: key, Value: *fixed}) {
				return
			}
			key.Ordinal++
		}
	}
}

// Filter limits a list. Empty fields have no effect.
type Filter struct {
	Symbol string
	// Span limits the funding times. A missed one may have been recorded much later.
	projections.Span
}

// Rates returns a page of funding rates.
func Rates(ctx context.Context, db projections.DB, f Filter, p projections.Page) (projections.Paged[Rate], error) {
	l := projections.List[Rate]{Table: table}
	l.Where.AndText("symbol", f.Symbol)
	if !f.From.IsZero() {
		l.Where.And("time >= ?", c.Timestamp(f.From))
	}
	if !f.To.IsZero() {
		l.Where.And("time < ?", c.Timestamp(f.To))
	}
	return l.Page(ctx, db, p)
}
