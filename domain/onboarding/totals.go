package onboarding

import (
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Totals is how many the state knows of what it finds by id.
type Totals struct {
	Owners, Documents, Triggers, Webhooks int
	// Deliveries counts all that were ever made, and Kept those that are not forgotten.
	Deliveries, Kept int
	// Answered counts the questionnaires that each owner has answered.
	Answered int
}

// Totals returns how many there are.
func (s *State) Totals() Totals {
	t := Totals{Owners: len(s.owners), Documents: len(s.documents), Triggers: len(s.triggers), Webhooks: len(s.webhooks), Deliveries: int(s.made), Kept: len(s.deliveries)}
	for _, f := range s.owners { // a sum, in whichever order
		t.Answered += len(f.answered)
	}
	return t
}

// Answered returns what an owner answered of a questionnaire; the zero value is nothing.
func (s *State) Answered(ref owner.Ref, questionnaire scalar.ID) entitlement.Answered {
	if f, known := s.owners[ref.ID]; known && f.owner.Ref == ref {
		return f.answered[questionnaire]
	}
	return entitlement.Answered{}
}

// Notices returns how many notices were given about an owner.
func (s *State) Notices(ref owner.Ref) int64 {
	if f, known := s.owners[ref.ID]; known && f.owner.Ref == ref {
		return f.notices
	}
	return 0
}
