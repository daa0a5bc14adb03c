package onboarding

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// rulesOfFourEyes is the first number of rules with policies and proposals (decide.Core.Govern).
const rulesOfFourEyes = 5

// rulesOfReasons is the first number of rules with reasons for the end of proposals.
const rulesOfReasons = 6

// governed is the state as decide.Core.Govern needs it.
type governed struct{ *State }

// Governed returns the state's rules, as far as four eyes need them.
func (s *State) Governed() decide.Governed { return governed{s} }

// Act implements decide.Governed.
func (g governed) Act(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	return g.act(at, c)
}

// Payloads implements decide.Governed.
func (governed) Payloads() *decide.Payloads { return Payloads() }

// triggerAction returns the name of an action on a trigger, as policies know it.
func triggerAction(a entitlement.Action) string { return "entitlement_trigger." + string(a) }

// Actions implements decide.Governed.
func (governed) Actions() []decide.Action {
	out := []decide.Action{{Name: CommandEraseOwner}, {Name: CommandReleaseOwner}, {Name: CommandSetRetention}, {Name: CommandCreateEntitlement},
		{Name: CommandChangeEntitlement}}
	for _, a := range entitlement.Actions() {
		if a != entitlement.Start {
			out = append(out, decide.Action{Name: triggerAction(a)})
		}
	}
	return append(out, decide.Action{Name: decide.CommandActivateRules}, decide.Action{Name: decide.CommandPutBackDue})
}

// Subject implements decide.Governed. The owner's record, documents, and responses are the evidence for an action on its
// trigger. An erasure ends all triggers of the owner, and its time follows from the retention.
func (g governed) Subject(c decide.Command) (decide.Subject, bool) {
	switch p := c.Payload.(type) {
	case *ActOnTrigger:
		return decide.Subject{Action: triggerAction(p.Action), Objects: []string{triggerObject(p.ID), ownerObject(g.triggers[p.ID])}}, true
	case *EraseOwner:
		return decide.Subject{Action: c.Type, Objects: []string{ownerObject(p.Ref.ID), triggersOf(p.Ref.ID), TypeRetentionSet}}, true
	case *ReleaseOwner:
		return decide.Subject{Action: c.Type, Objects: []string{ownerObject(p.Ref.ID)}}, true
	case *SetRetention:
		return decide.Subject{Action: c.Type, Objects: []string{TypeRetentionSet}}, true
	case *CreateEntitlement:
		return decide.Subject{Action: c.Type, Objects: []string{newEntitlements}}, true
	case *ChangeEntitlement:
		return decide.Subject{Action: c.Type, Objects: []string{entitlementObject(p.ID)}}, true
	}
	return decide.Subject{}, false
}

// newEntitlements is the object of proposals to create an entitlement.
const newEntitlements = "entitlements"

func triggerObject(id scalar.ID) string     { return "trigger/" + id.String() }
func triggersOf(owner scalar.ID) string     { return "triggers/" + owner.String() }
func ownerObject(id scalar.ID) string       { return "owner/" + id.String() }
func entitlementObject(id scalar.ID) string { return "entitlement/" + id.String() }

// touched returns the objects of proposals that an event changes. Notices and deliveries change none.
func touched(e decide.Event) []string {
	switch e := e.(type) {
	case *OwnerChanged:
		return []string{ownerObject(e.Ref.ID)}
	case *DocumentAdded:
		return []string{ownerObject(e.Ref.ID)}
	case *DocumentChanged:
		return []string{ownerObject(e.Ref.ID)}
	case *ResponseAdded:
		return []string{ownerObject(e.Ref.ID)}
	case *OwnerRestricted:
		return []string{ownerObject(e.Ref.ID)}
	case *OwnerHeld:
		return []string{ownerObject(e.Ref.ID)}
	case *OwnerReleased:
		return []string{ownerObject(e.Ref.ID)}
	case *OwnerErased:
		return []string{ownerObject(e.Ref.ID)}
	case *TriggerCreated:
		return []string{triggersOf(e.Ref.ID)}
	case *TriggerMoved:
		return []string{triggerObject(e.ID), triggersOf(e.Ref.ID)}
	case *RequirementsChanged:
		return []string{triggerObject(e.ID)}
	case *EntitlementCreated:
		return []string{newEntitlements}
	case *EntitlementChanged:
		return []string{entitlementObject(e.ID)}
	case *RetentionSet:
		return []string{TypeRetentionSet}
	}
	return nil
}

// The forms of proposed commands in the log. Each has the fields of a payload, so that the compiler compares the two.
type (
	actContent struct {
		ID                scalar.ID          `json:"id"`
		Action            entitlement.Action `json:"action"`
		Code              string             `json:"code"`
		Reason            Sealed             `json:"reason"`
		InternalReason    Sealed             `json:"internal_reason,omitzero"`
		Questionnaires    []scalar.ID        `json:"questionnaire_ids,omitzero"`
		Outcome           Outcome            `json:"outcome,omitzero"`
		ExternalReference Sealed             `json:"external_reference,omitzero"`
	}
	ownerContent struct {
		owner.Ref
		Reason Sealed `json:"reason"`
	}
	retentionContent struct {
		Seconds int64 `json:"seconds"`
	}
	newEntitlementContent struct {
		Name                string               `json:"name"`
		Description         string               `json:"description"`
		OwnerType           owner.Type           `json:"owner_type"`
		Questionnaires      []entitlement.Item   `json:"questionnaires"`
		Approval            entitlement.Approval `json:"approval"`
		VideoIdentification bool                 `json:"video_identification"`
		DeadlineSeconds     int64                `json:"deadline_seconds"`
		OpensTradingAccount bool                 `json:"opens_trading_account"`
	}
	entitlementContent struct {
		ID                  scalar.ID             `json:"id"`
		Name                *string               `json:"name,omitzero"`
		Description         *string               `json:"description,omitzero"`
		Questionnaires      []entitlement.Item    `json:"questionnaires,omitzero"`
		Approval            *entitlement.Approval `json:"approval,omitzero"`
		VideoIdentification *bool                 `json:"video_identification,omitzero"`
		DeadlineSeconds     *int64                `json:"deadline_seconds,omitzero"`
		OpensTradingAccount *bool                 `json:"opens_trading_account,omitzero"`
	}
)

// Content implements decide.Proposable.
func (p *ActOnTrigger) Content() any { return (*actContent)(p) }

// Content implements decide.Proposable.
func (p *EraseOwner) Content() any { return (*ownerContent)(p) }

// Content implements decide.Proposable.
func (p *ReleaseOwner) Content() any { return (*ownerContent)(p) }

// Content implements decide.Proposable.
func (p *SetRetention) Content() any { return (*retentionContent)(p) }

// Content implements decide.Proposable.
func (p *CreateEntitlement) Content() any { return (*newEntitlementContent)(p) }

// Content implements decide.Proposable.
func (p *ChangeEntitlement) Content() any { return (*entitlementContent)(p) }
