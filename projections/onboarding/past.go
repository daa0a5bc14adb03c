package onboarding

import (
	"cmp"
	"context"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// The functions of this file read rows as of a sequence, for a caller who may see the owner. born is the sequence of the record that
// made the object in question, or -1 if no record did; a list has that of the owner. Errors are those of projections.ReadAsOf.
// Sealed values are nil once the owner is erased, also as of a sequence before that.

// OwnerAsOf is OneOwner as of a sequence.
func OwnerAsOf(ctx context.Context, db projections.DB, ref owner.Ref, sequence int64) (o Owner, born int64, err error) {
	var found []Owner
	l := projections.List[Owner]{Table: owners}
	ownerHistory.AsOf(&l, sequence, nil)
	l.Where.And("id = ?", c.UUID(ref.ID))
	err = projections.ReadAsOf(ctx, db, journalName, sequence, madeOwner(&born, ref), l.Statement(&found))
	return first(found), born, err
}

// OwnersAsOf is Owners as of a sequence, for the owners who have one of the states may today.
func OwnersAsOf(ctx context.Context, db projections.DB, f OwnerFilter, may []owner.State, size, offset int, sequence int64) (rows []Owner, total int, err error) {
	l := projections.List[Owner]{Table: owners, Order: newest}
	ownerHistory.AsOf(&l, sequence, nil, "state")
	l.Where.And("created_sequence <= ?", sequence) // no version of a later one is looked for
	l.Where.And("type = ?", string(f.Type))
	l.Where.AndText("tenant", cmp.Or(f.Tenant, f.Of))
	then := f.Then
	if len(then) == 0 {
		then = []owner.State{owner.Active, owner.Restricted}
	}
	projections.AndAnyOf(&l.Where, "state", then)
	projections.AndAnyOf(&l.Where, "today_state", may)
	err = projections.ReadAsOf(ctx, db, journalName, sequence, l.Numbers(size, offset, &rows, &total)...)
	return rows, total, err
}

// CasesAsOf is Cases as of a sequence.
func CasesAsOf(ctx context.Context, db projections.DB, f CaseFilter, size, offset int, sequence int64) (rows []Trigger, total int, err error) {
	l := projections.List[Trigger]{Table: triggers, Order: newest}
	if f.OldestFirst {
		l.Order = triggers.OldestFirst()
	}
	triggerHistory.AsOf(&l, sequence, nil, "status")
	projections.AndAnyOf(&l.Where, "today_status", allStatuses()) // all of them: the indexes begin with it
	l.Where.And("created_sequence <= ?", sequence)
	if !f.OwnerID.IsZero() {
		l.Where.And("owner_id = ?", c.UUID(f.OwnerID))
	}
	if !f.EntitlementID.IsZero() {
		l.Where.And("entitlement_id = ?", c.UUID(f.EntitlementID))
	}
	l.Where.AndText("tenant", f.Tenant)
	projections.AndAnyOf(&l.Where, "status", f.Statuses)
	err = projections.ReadAsOf(ctx, db, journalName, sequence, l.Numbers(size, offset, &rows, &total)...)
	return rows, total, err
}

// madeOwner returns a statement that reads the sequence of the record that registered an owner.
func madeOwner(into *int64, ref owner.Ref) projections.Statement {
	return projections.Number(into, "SELECT created_sequence FROM owners WHERE id = $1 AND type = $2", c.UUID(ref.ID), string(ref.Type))
}

// first returns the first row, or a zero row if there is none.
func first[T any](rows []T) (row T) {
	if len(rows) > 0 {
		row = rows[0]
	}
	return row
}

// TriggersAsOf is TriggersOf as of a sequence.
func TriggersAsOf(ctx context.Context, db projections.DB, ref owner.Ref, size, offset int, sequence int64) (rows []Trigger, total int, born int64, err error) {
	return numberedAsOf(ctx, db, triggerHistory, ref, size, offset, sequence)
}

// DocumentsAsOf is Documents as of a sequence.
func DocumentsAsOf(ctx context.Context, db projections.DB, ref owner.Ref, size, offset int, sequence int64) (rows []Document, total int, born int64, err error) {
	return numberedAsOf(ctx, db, documentHistory, ref, size, offset, sequence)
}

// numberedAsOf is numberedOf as of a sequence.
func numberedAsOf[T any](ctx context.Context, db projections.DB, h *projections.History[T], ref owner.Ref, size, offset int, sequence int64) (rows []T, total int, born int64, err error) {
	l := projections.List[T]{Table: h.Table(), Order: newest}
	h.AsOf(&l, sequence, nil)
	of(&l.Where, ref)
	err = projections.ReadAsOf(ctx, db, journalName, sequence, append(l.Numbers(size, offset, &rows, &total), madeOwner(&born, ref))...)
	return rows, total, born, err
}

// TriggerAsOf is OneTrigger as of a sequence.
func TriggerAsOf(ctx context.Context, db projections.DB, ref owner.Ref, id scalar.ID, sequence int64) (t Trigger, born int64, err error) {
	return oneAsOf(ctx, db, triggerHistory, ref, id, sequence)
}

// DocumentAsOf is OneDocument as of a sequence.
func DocumentAsOf(ctx context.Context, db projections.DB, ref owner.Ref, id scalar.ID, sequence int64) (d Document, born int64, err error) {
	return oneAsOf(ctx, db, documentHistory, ref, id, sequence)
}

// oneAsOf reads a row as of a sequence. Unless the reference is zero, the row must belong to that owner.
func oneAsOf[T any](ctx context.Context, db projections.DB, h *projections.History[T], ref owner.Ref, id scalar.ID, sequence int64) (row T, born int64, err error) {
	var found []T
	l := projections.List[T]{Table: h.Table()}
	h.AsOf(&l, sequence, nil)
	l.Where.And("id = ?", c.UUID(id))
	made := "SELECT created_sequence FROM " + h.Table().Name + " WHERE id = $1"
	args := []any{c.UUID(id)}
	if ref != (owner.Ref{}) {
		of(&l.Where, ref)
		made += " AND owner_id = $2 AND owner_type = $3"
		args = append(args, c.UUID(ref.ID), string(ref.Type))
	}
	err = projections.ReadAsOf(ctx, db, journalName, sequence, l.Statement(&found), projections.Number(&born, made, args...))
	return first(found), born, err
}

// ResponsesAsOf is Responses as of a sequence. A response never changes.
func ResponsesAsOf(ctx context.Context, db projections.DB, ref owner.Ref, size, offset int, sequence int64) (rows []Response, total int, born int64, err error) {
	l := projections.List[Response]{Table: responses, Order: responses.NewestFirst()}
	of(&l.Where, ref)
	l.Where.And("sequence <= ?", sequence)
	err = projections.ReadAsOf(ctx, db, journalName, sequence, append(l.Numbers(size, offset, &rows, &total), madeOwner(&born, ref))...)
	return rows, total, born, err
}

// ResponseAsOf is OneResponse as of a sequence.
func ResponseAsOf(ctx context.Context, db projections.DB, ref owner.Ref, id scalar.ID, sequence int64) (r Response, born int64, err error) {
	var found []Response
	l := projections.List[Response]{Table: responses}
	l.Where.And("id = ?", c.UUID(id))
	of(&l.Where, ref)
	err = projections.ReadAsOf(ctx, db, journalName, sequence, l.Statement(&found))
	if len(found) == 0 {
		return r, -1, err
	}
	return found[0], found[0].Sequence, err
}

// TimelineAsOf is Timeline as of a sequence.
func TimelineAsOf(ctx context.Context, db projections.DB, trigger scalar.ID, sequence int64) (events []TriggerEvent, err error) {
	l := projections.List[TriggerEvent]{Table: timeline, Order: "sequence, ordinal"}
	l.Where.And("trigger_id = ?", c.UUID(trigger))
	l.Where.And("sequence <= ?", sequence)
	err = projections.ReadAsOf(ctx, db, journalName, sequence, l.Statement(&events))
	return events, err
}

// PendingAsOf is PendingRequirements as of a sequence.
func PendingAsOf(ctx context.Context, db projections.DB, ref owner.Ref, sequence int64) (pending []PendingRequirement, born int64, err error) {
	l := projections.List[Trigger]{Table: triggers, Order: triggers.OldestFirst()}
	triggerHistory.AsOf(&l, sequence, nil)
	of(&l.Where, ref)
	l.Where.And(isOpen)
	requests := projections.List[TriggerEvent]{Table: timeline, Order: "sequence, ordinal"}
	requests.Where.And("owner_id = ? AND sequence <= ? AND request_id IS NOT NULL", c.UUID(ref.ID), sequence)
	var open []Trigger
	var requested []TriggerEvent
	err = projections.ReadAsOf(ctx, db, journalName, sequence, l.Statement(&open), requests.Statement(&requested), madeOwner(&born, ref))
	return pendingOf(open, requested), born, err
}
