package onboarding

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// CaseFilter narrows the list of triggers that operators work through.
type CaseFilter struct {
	TriggerFilter
	OwnerID scalar.ID // the zero ID: every owner's
}

// Cases returns a numbered page of the venue's triggers, newest first unless the filter says otherwise, and how many there are.
// It takes as long however many there are; of an owner's, with a status or an entitlement it counts that owner's own.
func Cases(ctx context.Context, db projections.DB, f CaseFilter, size, offset int) (rows []Trigger, total int, asOf int64, err error) {
	if f.OwnerID.IsZero() {
		return Triggers(ctx, db, f.TriggerFilter, size, offset)
	}
	var w projections.Where
	w.And("owner_id = ?", c.UUID(f.OwnerID))
	w.AndText("tenant", f.Tenant)
	if len(f.Statuses) == 0 && f.EntitlementID.IsZero() {
		return projections.Placed[Trigger]{Table: triggers, Where: w, OldestFirst: f.OldestFirst}.Numbered(ctx, db, size, offset)
	}
	projections.AndAnyOf(&w, "status", f.Statuses)
	if !f.EntitlementID.IsZero() {
		w.And("entitlement_id = ?", c.UUID(f.EntitlementID))
	}
	l := projections.List[Trigger]{Table: triggers, Where: w, Order: "place DESC"}
	if f.OldestFirst {
		l.Order = "place"
	}
	return l.Numbered(ctx, db, size, offset)
}
