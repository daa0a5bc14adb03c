package onboarding

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The commands and events about definitions of entitlements.
const (
	CommandCreateEntitlement = "entitlement.create"
	CommandChangeEntitlement = "entitlement.change"

	TypeEntitlementCreated = "entitlement.created"
	TypeEntitlementChanged = "entitlement.changed"
)

const (
	// MaxQuestionnaires is the greatest number of questionnaires in a definition or in a request for information.
	MaxQuestionnaires = 100

	maxDeadline = 100 * 365 * 24 * 3600 // seconds
	maxPosition = 1_000_000
)

// CreateEntitlement asks to create a definition.
//
// Event: entitlement.created. Refusals: Invalid.
type CreateEntitlement struct {
	Name                string
	Description         string
	OwnerType           owner.Type
	Questionnaires      []entitlement.Item
	Approval            entitlement.Approval
	VideoIdentification bool
	DeadlineSeconds     int64 // 0: none
	OpensTradingAccount bool
}

// CommandType returns the type of the command.
func (*CreateEntitlement) CommandType() string { return CommandCreateEntitlement }

func (*CreateEntitlement) givenBy() ActorKind { return ByOperator }

func (p *CreateEntitlement) decide(d *draft) error {
	e := entitlement.Definition{ID: d.nextID(), Name: p.Name, Description: p.Description, OwnerType: p.OwnerType,
		Questionnaires: sortedItems(p.Questionnaires), Approval: p.Approval, VideoIdentification: p.VideoIdentification,
		DeadlineSeconds: p.DeadlineSeconds, OpensTradingAccount: p.OpensTradingAccount, Created: d.at.Time, Updated: d.at.Time}
	if err := d.checkDefinition(&e); err != nil {
		return err
	}
	d.add(&EntitlementCreated{e})
	return nil
}

// ChangeEntitlement asks to change a definition. The change affects triggers that start later. Members that are nil stay
// unchanged.
//
// Event: entitlement.changed. Refusals: NotFound ENTITLEMENT_NOT_FOUND; Invalid.
type ChangeEntitlement struct {
	ID                  scalar.ID
	Name                *string
	Description         *string
	Questionnaires      []entitlement.Item // empty but not nil: remove all
	Approval            *entitlement.Approval
	VideoIdentification *bool
	DeadlineSeconds     *int64
	OpensTradingAccount *bool
}

// CommandType returns the type of the command.
func (*ChangeEntitlement) CommandType() string { return CommandChangeEntitlement }

func (*ChangeEntitlement) givenBy() ActorKind { return ByOperator }

func (p *ChangeEntitlement) decide(d *draft) error {
	old, known := d.state.entitlements[p.ID]
	if !known {
		return entitlementNotFound()
	}
	e := *old
	e.Updated, e.Questionnaires = d.at.Time, sortedItems(old.Questionnaires)
	if p.Questionnaires != nil {
		e.Questionnaires = sortedItems(p.Questionnaires)
	}
	replace(&e.Name, p.Name)
	replace(&e.Description, p.Description)
	replace(&e.Approval, p.Approval)
	replace(&e.VideoIdentification, p.VideoIdentification)
	replace(&e.DeadlineSeconds, p.DeadlineSeconds)
	replace(&e.OpensTradingAccount, p.OpensTradingAccount)
	if err := d.checkDefinition(&e); err != nil {
		return err
	}
	d.add(&EntitlementChanged{e})
	return nil
}

func replace[T any](old, by *T) {
	if by != nil {
		*old = *by
	}
}

func entitlementNotFound() error {
	return decide.Refuse(decide.NotFound, "ENTITLEMENT_NOT_FOUND", "there is no such entitlement")
}

func sortedItems(items []entitlement.Item) []entitlement.Item {
	out := append([]entitlement.Item{}, items...)
	slices.SortStableFunc(out, func(a, b entitlement.Item) int { return cmp.Compare(a.Position, b.Position) })
	return out
}

func (d *draft) checkDefinition(e *entitlement.Definition) error {
	if err := checkNamed(e.Name, e.Description, e.OwnerType); err != nil {
		return err
	}
	switch {
	case e.Approval != entitlement.Automatic && e.Approval != entitlement.Manual:
		return decide.InvalidField("approval", "must be automatic or manual")
	case e.DeadlineSeconds < 0 || e.DeadlineSeconds > maxDeadline:
		return decide.InvalidField("deadline_seconds", "must be from 0 to 100 years")
	case len(e.Questionnaires) > MaxQuestionnaires:
		return decide.InvalidField("questionnaires", "at most 100 questionnaires may be named")
	}
	for i, item := range e.Questionnaires {
		q, known := d.state.questionnaires[item.QuestionnaireID]
		switch {
		case !known:
			return decide.InvalidField("questionnaires", "there is no such questionnaire")
		case q.OwnerType != e.OwnerType:
			return decide.InvalidField("questionnaires", "the questionnaire is for another type of owner")
		case item.Position < 0 || item.Position > maxPosition:
			return decide.InvalidField("questionnaires", "a position is from 0 to 1000000")
		}
		for _, before := range e.Questionnaires[:i] {
			if before.QuestionnaireID == item.QuestionnaireID || before.Position == item.Position {
				return decide.InvalidField("questionnaires", "a questionnaire or a position is named twice")
			}
		}
	}
	return nil
}

// EntitlementCreated says that owners can request an entitlement.
type EntitlementCreated struct{ entitlement.Definition }

// EventType returns entitlement.created.
func (*EntitlementCreated) EventType() string { return TypeEntitlementCreated }

// EntitlementChanged contains the complete definition after the change.
type EntitlementChanged struct{ entitlement.Definition }

// EventType returns entitlement.changed.
func (*EntitlementChanged) EventType() string { return TypeEntitlementChanged }

func (s *State) setEntitlement(e entitlement.Definition) {
	if _, known := s.entitlements[e.ID]; !known {
		s.entitlementOrder = append(s.entitlementOrder, e.ID)
	}
	e.Questionnaires = sortedItems(e.Questionnaires)
	s.entitlements[e.ID] = &e
}

// Entitlement returns a definition.
func (s *State) Entitlement(id scalar.ID) (*entitlement.Definition, bool) {
	e, known := s.entitlements[id]
	return e, known
}
