// Package proposals is the read model of the actions that wait, or waited, for a second person: a row for each.
package proposals

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Trading maintains the table proposals, with the proposals of the trading journal.
var Trading = projectionOf(&projections.Table[Proposal]{Name: "proposals", Journal: "trading", Keys: keys, Columns: append(columns(),
	c.NullText("ended_reason", func(r *row) *string { return &r.Value.Reason }))})

// Onboarding maintains the table onboarding_proposals.
var Onboarding = projectionOf(&projections.Table[Proposal]{Name: "onboarding_proposals", Journal: "onboarding", Keys: keys, Columns: columns()})

// Proposal is a row. The content of a proposal is only in the log, because it may be personal data.
type Proposal struct {
	ID         scalar.ID
	Action     string
	Status     decide.ProposalStatus // without an expiry, of which there is no record
	Objects    []string
	ProposedBy string
	Broker     string
	Seen       int64
	Created    scalar.Time
	Expires    scalar.Time
	EndedBy    string
	Ended      scalar.Time
	// Changed is the sequence of the record that voided the proposal, or 0.
	Changed int64
	EndedAt int64 // sequence of the record that ended it, or 0
	// Reason is that of the user that ended it, or "". The table of the onboarding journal does not have it: there it is encrypted
	// and may be personal data.
	Reason string
}

type row = projections.Row[Proposal]

var keys = []string{"sequence"}

func columns() []c.Column[row] {
	return []c.Column[row]{
		c.ID("id", func(r *row) *scalar.ID { return &r.Value.ID }).Key(),
		c.Int("sequence", func(r *row) *int64 { return &r.Key.Sequence }).Fixed(),
		c.Text("action", func(r *row) *string { return &r.Value.Action }).Fixed(),
		c.Text("status", func(r *row) *decide.ProposalStatus { return &r.Value.Status }),
		c.Words("objects", func(r *row) *[]string { return &r.Value.Objects }).Fixed(),
		c.Text("proposed_by", func(r *row) *string { return &r.Value.ProposedBy }).Fixed(),
		c.Text("broker", func(r *row) *string { return &r.Value.Broker }).Fixed(),
		c.Int("seen", func(r *row) *int64 { return &r.Value.Seen }).Fixed(),
		c.Time("created", func(r *row) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Time("expires_at", func(r *row) *scalar.Time { return &r.Value.Expires }).Fixed(),
		c.NullText("ended_by", func(r *row) *string { return &r.Value.EndedBy }),
		c.Time("ended", func(r *row) *scalar.Time { return &r.Value.Ended }),
		c.NullInt("changed_sequence", func(r *row) *int64 { return &r.Value.Changed }),
		c.NullInt("ended_sequence", func(r *row) *int64 { return &r.Value.EndedAt }),
	}
}

// projectionOf returns the projection that maintains a table.
func projectionOf(table *projections.Table[Proposal]) projections.Projection {
	return projections.NewProjection("proposals", func(entries []record.Entry, batch *projections.Batch) {
		made := table.Copy(batch)
		var ended []row
		for i := range entries {
			r := entries[i].Record
			for _, event := range r.Events {
				if e, ok := event.(*decide.ProposalMade); ok {
					made.Add(&row{Key: projections.Key{Sequence: r.Sequence}, Value: Proposal{ID: e.ID, Action: e.Action, Status: decide.StatusOpen, Objects: e.Objects,
						ProposedBy: e.ProposedBy, Broker: r.Command.Actor.Broker, Seen: e.Seen, Created: e.Created, Expires: e.Expires}})
				}
				if end, status, ok := decide.EndOf(event); ok {
					x := Proposal{ID: end.ID, Status: status, EndedBy: end.By, Ended: end.Time, EndedAt: r.Sequence, Reason: decide.ReasonOf(event)}
					if voided, ok := event.(*decide.ProposalVoided); ok {
						x.Changed = voided.Changed
					}
					ended = append(ended, row{Value: x})
				}
			}
		}
		table.Update(batch, ended)
	}, table.Name)
}
