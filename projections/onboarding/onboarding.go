// Package onboarding is the read model of the onboarding journal: owners and their documents, questionnaires and
// responses, triggers with their timelines, notices, and deliveries.
//
// Sealed fields stay sealed. The rows of an erased owner hold no ciphertext: those columns are NULL and read as nil.
//
// Rows are listed in the order of the records that made them. Lists are read newest first, by numbered pages with the
// length of the whole list; the feed of notices is read by cursor. The lengths of long lists are counted when rows are
// written.
//
// A Viewer determines which rows a query returns. A tenant gets only its rows; of restricted and erased owners it gets
// only the feed and the deliveries: ids, types and times. An operator gets all rows.
package onboarding

import (
	"context"
	"iter"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// journalName is the name of the journal.
const journalName = "onboarding"

// Projection maintains all tables of the onboarding journal. They form one family, because an erasure changes most of
// them.
var Projection = projections.NewProjection("onboarding", project,
	"list_counts", ownerHistory.Name(), documentHistory.Name(), triggerHistory.Name(), owners.Name, erasures.Name, holds.Name, retentions.Name, documents.Name, questionnaires.Name,
	versions.Name, responses.Name, entitlements.Name, triggers.Name, timeline.Name, webhooks.Name, deliveries.Name, attempts.Name, notices.Name)

// part maintains some of the tables from a batch of entries.
type part interface {
	// add adds an event of a record. ordinal is its index in the record.
	add(at position, event decide.Event)
	// write adds the changed rows to the batch.
	write(b *projections.Batch)
}

// position is the position of an event in the journal.
type position struct {
	entry *record.Entry
	projections.Key
}

// Tenant returns the tenant of the client that sent the command of a record.
func Tenant(e *record.Entry) string { return e.Record.Command.Actor.Broker }

func (p position) tenant() string { return Tenant(p.entry) }

// actor names the user who sent the command.
func (p position) actor() string {
	if a := p.entry.Record.Command.Actor; a.System != "" {
		return a.System
	}
	return p.entry.Record.Command.Actor.Sub
}

// eventsOf returns the events of a record with their positions.
func eventsOf(e *record.Entry) iter.Seq2[position, decide.Event] {
	return func(yield func(position, decide.Event) bool) {
		for n, event := range e.Record.Events {
			if !yield(position{e, projections.Key{Sequence: e.Record.Sequence, Ordinal: int64(n)}}, event) {
				return
			}
		}
	}
}

// project applies the entries to all tables. Erasures, deletions and cancellations come last: no later record restores
// the data that they remove.
func project(entries []record.Entry, b *projections.Batch) {
	parts := []part{newOwners(b), newDocuments(b), newQuestionnaires(b), newResponses(b), newEntitlements(b), newTriggers(b),
		newTimeline(b), newWebhooks(b), newDeliveries(b), newNotices(b), &erasing{}}
	for i := range entries {
		for at, event := range eventsOf(&entries[i]) {
			for _, p := range parts {
				p.add(at, event)
			}
		}
	}
	for _, p := range parts {
		p.write(b)
	}
}

// changed is a row after a batch: either new, or existing and changed in some groups of columns.
type changed[T any] struct {
	projections.Row[T]
	made   bool
	groups uint8 // a bit for each group
}

// put writes rows. A group consists of columns that change together, and is named by them.
func put[T any](b *projections.Batch, table *projections.Table[T], rows []changed[T], groups ...[]string) {
	to := table.Copy(b)
	for i := range rows {
		if rows[i].made {
			to.Add(&rows[i].Row)
		}
	}
	for g, names := range groups {
		var batch []projections.Row[T]
		for i := range rows {
			if r := &rows[i]; !r.made && r.groups&(1<<g) != 0 {
				batch = append(batch, r.Row)
			}
		}
		table.Update(b, batch, names...)
	}
}

// Viewer determines the visible rows.
type Viewer struct {
	Tenant string // empty for an operator, who sees the rows of every tenant
}

// Operator sees all rows.
var Operator = Viewer{}

// confine restricts a query to the rows that the viewer may see: for a tenant, those of its active owners. ownerColumn
// is the column with the owner's id.
func (v Viewer) confine(w *projections.Where, ownerColumn string) {
	if v.Tenant != "" {
		w.And("tenant = ?", v.Tenant)
		w.And("EXISTS (SELECT 1 FROM owners o WHERE o.id = "+ownerColumn+" AND o.state = ?)", string(owner.Active))
	}
}

// of restricts a query to the rows of an owner.
func of(w *projections.Where, ref owner.Ref) {
	w.And("owner_id = ?", c.UUID(ref.ID))
	w.And("owner_type = ?", string(ref.Type))
}

// numberedOf returns a numbered page of the rows of an owner, newest first, and how many there are.
func numberedOf[T any](ctx context.Context, db projections.DB, table *projections.Table[T], v Viewer, ref owner.Ref, size, offset int) (rows []T, total int, asOf int64, err error) {
	l := projections.Placed[T]{Table: table}
	v.confine(&l.Where, "owner_id")
	of(&l.Where, ref)
	return l.Numbered(ctx, db, size, offset)
}

// oneOf returns a row of an owner.
func oneOf[T any](ctx context.Context, db projections.DB, table *projections.Table[T], v Viewer, ref owner.Ref, id scalar.ID) (row T, found bool, asOf int64, err error) {
	l := projections.List[T]{Table: table, Order: "id"}
	l.Where.And("id = ?", c.UUID(id))
	v.confine(&l.Where, "owner_id")
	of(&l.Where, ref)
	return l.One(ctx, db)
}

// newest is the order of numbered lists.
const newest = "created_sequence DESC, created_ordinal DESC"
