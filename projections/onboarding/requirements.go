package onboarding

import (
	"cmp"
	"context"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// PendingRequirement is an open requirement of one trigger for one reason.
type PendingRequirement struct {
	TriggerID     scalar.ID
	EntitlementID scalar.ID
	Entitlement   string // its name when the trigger started
	entitlement.Requirement
	Pinned []entitlement.Pinned // the versions that the trigger requires
	// Reason is the definition's name, or the operator's text of a request for information; a video identification has none.
	Reason domain.Reason
}

// PendingRequirements returns the open requirements of all open triggers of an owner, oldest first. The requirements of
// a definition have the age of the trigger's start.
func PendingRequirements(ctx context.Context, db projections.DB, v Viewer, ref owner.Ref) (pending []PendingRequirement, asOf int64, err error) {
	l := projections.List[Trigger]{Table: triggers, Order: "place"}
	v.confine(&l.Where, "owner_id")
	of(&l.Where, ref)
	l.Where.And(isOpen)
	requests := projections.List[TriggerEvent]{Table: timeline, Order: "sequence, ordinal"}
	requests.Where.And("trigger_id IN (SELECT id FROM triggers WHERE owner_id = ? AND "+isOpen+") AND request_id IS NOT NULL", c.UUID(ref.ID))
	var open []Trigger
	var requested []TriggerEvent
	asOf, err = projections.Read(ctx, db, journalName, l.Statement(&open), requests.Statement(&requested))
	return pendingOf(open, requested), asOf, err
}

// PendingOf returns the open requirements of one trigger, oldest first. events is the timeline of the trigger, which has the reasons
// of the requests for information.
func PendingOf(t Trigger, events []TriggerEvent) []PendingRequirement {
	if !slices.Contains(OpenCases(), t.Status) {
		return nil
	}
	return pendingOf([]Trigger{t}, events)
}

// isOpen is the condition of open triggers.
const isOpen = "status IN ('pending', 'ongoing', 'blocked')"

// pendingOf returns the open requirements of open triggers, oldest first. requested has the requests for information.
func pendingOf(open []Trigger, requested []TriggerEvent) (pending []PendingRequirement) {
	reasons := make(map[scalar.ID]domain.Reason, len(requested))
	for i := range requested {
		reasons[requested[i].RequestID] = requested[i].Reason
	}
	for i := range open {
		pending = append(pending, open[i].pending(reasons)...)
	}
	slices.SortStableFunc(pending, func(a, b PendingRequirement) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return pending
}

// pending returns what is open of a trigger; reasons are those of requests.
func (t *Trigger) pending(reasons map[scalar.ID]domain.Reason) []PendingRequirement {
	var out []PendingRequirement
	for _, r := range t.Open {
		p := PendingRequirement{TriggerID: t.ID, EntitlementID: t.EntitlementID, Entitlement: t.Terms.Name, Requirement: r, Pinned: t.Needs.Pinned}
		switch r.Source {
		case entitlement.FromDefinition:
			p.Sequence, p.Reason = t.Started, domain.Reason{Text: t.Terms.Name}
		case entitlement.FromRequest:
			p.Reason = reasons[r.Request]
		}
		out = append(out, p)
	}
	return out
}
