package onboarding

import (
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Totals counts the objects in the state.
type Totals struct {
	Owners, Documents, Triggers, Webhooks int
	// Deliveries counts all deliveries ever created. Retained counts those that are not forgotten.
	Deliveries, Retained int
	// Answered sums the numbers of questionnaires that each owner has answered.
	Answered int
}

// Totals returns the counts.
func (s *State) Totals() Totals {
	t := Totals{Owners: len(s.owners), Documents: len(s.documents), Triggers: len(s.triggers), Webhooks: len(s.webhooks), Deliveries: int(s.made), Retained: len(s.deliveries)}
	for _, f := range s.owners { // a sum, so the order does not matter
		t.Answered += len(f.answered)
	}
	return t
}

// Answered describes an owner's responses to a questionnaire. The zero value means that there are none.
func (s *State) Answered(ref owner.Ref, questionnaire scalar.ID) entitlement.Answered {
	if f, known := s.owners[ref.ID]; known && f.owner.Ref == ref {
		return f.answered[questionnaire]
	}
	return entitlement.Answered{}
}

// Notices returns the number of notices about an owner.
func (s *State) Notices(ref owner.Ref) int64 {
	if f, known := s.owners[ref.ID]; known && f.owner.Ref == ref {
		return f.notices
	}
	return 0
}
