// Package records is the read model of the journals themselves: one row for each record, without its events.
package records

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

//go:embed copy.sql
var copyRecords string

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
	Position journal.Position
	Time     scalar.Time
	Outcome  decide.Outcome
	Command  scalar.ID
	Type     string // of the command
	Actor    decide.Actor
}

// Project adds a row for each entry.
func (p Projection) Project(entries []journal.Entry, batch *projections.Batch) {
	to := batch.Copy(copyRecords)
	for i := range entries {
		at, r := &entries[i].Position, entries[i].Record
		to.Begin(12)
		to.Text(p.Journal)
		to.Int(at.Sequence)
		to.Int(at.Offset)
		to.Bytes(at.Hash[:])
		to.Time(r.Time)
		to.Text(string(r.Outcome))
		to.ID(r.Command.ID)
		to.Text(r.Command.Type)
		to.NullText(r.Command.Actor.Sub)
		to.NullText(r.Command.Actor.Broker)
		to.NullText(r.Command.Actor.Customer)
		to.NullText(r.Command.Actor.System)
	}
}

// ByCommand returns the record of a command in a journal. A broker sees its own users' commands only; broker "" stands
// for all. Not found means, as of the position, that the command has no record, or is another's.
func ByCommand(ctx context.Context, db projections.DB, name, broker string, command scalar.ID) (r Record, found bool, asOf int64, err error) {
	l := list(name)
	l.Where.And("command_id = ?", c.UUID(command))
	l.Where.AndText("broker", broker)
	l.Order = "sequence"
	return l.One(ctx, db)
}

// Page returns a page of a journal's records.
func Page(ctx context.Context, db projections.DB, name string, s projections.Span, p projections.Page) (projections.Paged[Record], error) {
	l := list(name)
	s.In(&l.Where, name, "sequence")
	return l.Page(ctx, db, p)
}

// LastTaken returns the sequence of a journal's last journal.taken record, -1 if there is none: a command without a
// record as of a position past a later term never happened.
func LastTaken(ctx context.Context, db projections.DB, name string) (sequence, asOf int64, err error) {
	l := list(name)
	l.Where.And("command_type = '" + journal.TypeTaken + "'") // a literal, for the index that holds nothing else
	l.Order = "sequence DESC"
	r, found, asOf, err := l.One(ctx, db)
	if !found {
		return -1, asOf, err
	}
	return r.Position.Sequence, asOf, err
}

func list(name string) projections.List[Record] {
	l := projections.List[Record]{Journal: name, From: "records", Keys: []string{"sequence"}, Scan: scan,
		Columns: `journal, sequence, "offset", hash, time, outcome, command_id, command_type, sub, broker, customer_code, system`}
	l.Where.And("journal = ?", name)
	return l
}

func scan(row pgx.CollectableRow, r *Record, key ...any) error {
	var hash []byte
	err := row.Scan(append([]any{&r.Journal, &r.Position.Sequence, &r.Position.Offset, &hash, c.IntoTime(&r.Time),
		c.IntoText(&r.Outcome), c.IntoID(&r.Command), &r.Type, c.IntoText(&r.Actor.Sub), c.IntoText(&r.Actor.Broker),
		c.IntoText(&r.Actor.Customer), c.IntoText(&r.Actor.System)}, key...)...)
	copy(r.Position.Hash[:], hash)
	return err
}
