// Package records is the read model of the journals themselves: one row for each record, without its events.
package records

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection keeps the rows of one journal in the table records.
type Projection struct{ Journal string }

// Name returns "records".
func (Projection) Name() string { return "records" }

// Tables returns nothing: the table records is shared by all journals, and Forget knows it.
func (Projection) Tables() []string {
	return nil
}

// Record is one record of a journal.
type Record struct {
	Journal  string
	Position record.Position
	Time     scalar.Time
	Outcome  decide.Outcome
	Command  scalar.ID
	Type     string // of the command
	Actor    decide.Actor
}

type row = projections.Row[Record]

// table returns the table as one journal's projections and queries see it.
func table(name string) *projections.Table[Record] {
	return &projections.Table[Record]{
		Name: "records", Journal: name, Keys: []string{"sequence"},
		Columns: []c.Column[row]{
			c.Text("journal", func(r *row) *string { return &r.Value.Journal }),
			c.Int("sequence", func(r *row) *int64 { return &r.Value.Position.Sequence }),
			c.Int("log_offset", func(r *row) *int64 { return &r.Value.Position.Offset }),
			c.Hash("hash", func(r *row) *record.Hash { return &r.Value.Position.Hash }),
			c.Time("time", func(r *row) *scalar.Time { return &r.Value.Time }),
			c.Text("outcome", func(r *row) *decide.Outcome { return &r.Value.Outcome }),
			c.ID("command_id", func(r *row) *scalar.ID { return &r.Value.Command }),
			c.Text("command_type", func(r *row) *string { return &r.Value.Type }),
			c.NullText("sub", func(r *row) *string { return &r.Value.Actor.Sub }),
			c.NullText("broker", func(r *row) *string { return &r.Value.Actor.Broker }),
			c.NullText("customer_code", func(r *row) *string { return &r.Value.Actor.Customer }),
			c.NullText("system", func(r *row) *string { return &r.Value.Actor.System }),
		},
	}
}

// Project adds a row for each entry.
func (p Projection) Project(entries []record.Entry, batch *projections.Batch) {
	to := table(p.Journal).Copy(batch)
	for i := range entries {
		r := entries[i].Record
		to.Add(&row{Value: Record{Journal: p.Journal, Position: entries[i].Position, Time: r.Time, Outcome: r.Outcome,
			Command: r.Command.ID, Type: r.Command.Type, Actor: r.Command.Actor}})
	}
}

// ByCommand returns the record of a command in a journal. A broker sees its own users' commands only; broker "" stands
// for all. Not found means, as of the position, that the command has no record, or is another's.
func ByCommand(ctx context.Context, db projections.DB, name, broker string, command scalar.ID) (r Record, found bool, asOf int64, err error) {
	l := projections.List[Record]{Table: table(name), Order: "sequence"}
	l.Where.And("journal = ?", name)
	l.Where.And("command_id = ?", c.UUID(command))
	l.Where.AndText("broker", broker)
	return l.One(ctx, db)
}
