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
	OwnerID       scalar.ID // the zero ID: every owner's
	EntitlementID scalar.ID // the zero ID: all
	OldestFirst   bool
}

// Cases returns a numbered page of the venue's triggers, newest first unless the filter says otherwise, and how many there are.
// Without an owner and an entitlement, and newest first, it takes as long however many there are; else it counts.
func Cases(ctx context.Context, db projections.DB, f CaseFilter, size, offset int) (rows []Trigger, total int, asOf int64, err error) {
	if f.OwnerID.IsZero() && f.EntitlementID.IsZero() && !f.OldestFirst {
		return Triggers(ctx, db, f.TriggerFilter, size, offset)
	}
	l := projections.List[Trigger]{Table: triggers, Order: newest}
	if f.OldestFirst {
		l.Order = "created_sequence, created_ordinal"
	}
	l.Where.AndText("tenant", f.Tenant)
	if len(f.Statuses) > 0 {
		statuses := make([]string, len(f.Statuses))
		for i, s := range f.Statuses {
			statuses[i] = string(s)
		}
		l.Where.And("status = ANY(?)", statuses)
	}
	if !f.OwnerID.IsZero() {
		l.Where.And("owner_id = ?", c.UUID(f.OwnerID))
	}
	if !f.EntitlementID.IsZero() {
		l.Where.And("entitlement_id = ?", c.UUID(f.EntitlementID))
	}
	return l.Numbered(ctx, db, size, offset)
}
