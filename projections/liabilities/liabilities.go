// Package liabilities is the read model of the recorded statements of liabilities: a row for each.
package liabilities

import (
	"context"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection maintains the table liabilities.
var Projection = projections.NewProjection("liabilities", project, table.Name)

// Statement is a recorded statement.
type Statement = form.Recorded

type row = projections.Row[Statement]

var table = &projections.Table[Statement]{
	Name: "liabilities", Journal: "trading", Keys: []string{"sequence"},
	Columns: []c.Column[row]{
		c.Int("sequence", func(r *row) *int64 { return &r.Key.Sequence }),
		c.Time("time", func(r *row) *scalar.Time { return &r.Value.Timestamp }),
		c.Int("position", func(r *row) *int64 { return &r.Value.Position.Sequence }),
		c.Text("hash", func(r *row) *string { return &r.Value.Position.Hash }),
		c.Text("asset", func(r *row) *string { return &r.Value.Asset }),
		c.Small("scale", func(r *row) *int { return &r.Value.Scale }),
		c.Int("leaves", func(r *row) *int64 { return &r.Value.Leaves }),
		c.Whole("total", func(r *row) *form.Amount { return &r.Value.Total }),
		c.Whole("deficits", func(r *row) *form.Amount { return &r.Value.Deficits }),
		c.Whole("insurance", func(r *row) *form.Balance { return &r.Value.Venue.Insurance }),
		c.Whole("fees", func(r *row) *form.Balance { return &r.Value.Venue.Fees }),
		c.Whole("funding", func(r *row) *form.Balance { return &r.Value.Venue.Funding }),
		c.Whole("clearing", func(r *row) *form.Balance { return &r.Value.Venue.Clearing }),
		c.Whole("rounding", func(r *row) *form.Balance { return &r.Value.Venue.Rounding }),
		c.Whole("net_paid_in", func(r *row) *form.Balance { return &r.Value.NetPaidIn }),
		c.Hash("root", func(r *row) *form.Hash { return &r.Value.Root }),
	},
}

// project adds a row for each statement.
func project(entries []record.Entry, batch *projections.Batch) {
	rows := table.Copy(batch)
	for _, e := range entries {
		for _, event := range e.Record.Events {
			if recorded, ok := event.(*trading.LiabilitiesRecorded); ok {
				rows.Add(&row{Key: projections.Key{Sequence: e.Record.Sequence}, Value: Statement{Sequence: e.Record.Sequence, Statement: recorded.Statement}})
			}
		}
	}
}

// Statements returns a page of statements.
func Statements(ctx context.Context, db projections.DB, p projections.Page) (projections.Paged[Statement], error) {
	return page(ctx, db, &projections.List[Statement]{Table: table}, p)
}

// About returns the statement about a position, or the newest one if the position is 0. It is the only row of the page, which is
// empty if there is none.
func About(ctx context.Context, db projections.DB, position int64) (projections.Paged[Statement], error) {
	l := &projections.List[Statement]{Table: table}
	if position != 0 {
		l.Where.And("position = ?", position)
	}
	return page(ctx, db, l, projections.Page{Size: 1, Descending: true})
}

func page(ctx context.Context, db projections.DB, l *projections.List[Statement], p projections.Page) (projections.Paged[Statement], error) {
	found, err := l.Page(ctx, db, p)
	for i := range found.Rows {
		found.Rows[i].Value.Sequence = found.Rows[i].Key.Sequence
	}
	return found, err
}
