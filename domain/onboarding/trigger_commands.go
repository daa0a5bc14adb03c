package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The commands and events about triggers.
const (
	CommandCreateTrigger = "entitlement_trigger.create"
	CommandActOnTrigger  = "entitlement_trigger.act"

	TypeTriggerCreated      = "entitlement_trigger.created"
	TypeTriggerMoved        = "entitlement_trigger.moved"
	TypeRequirementsChanged = "entitlement_trigger.requirements_changed"
)

// The codes of actions by a rule.
const (
	Approved                  = "APPROVED"
	DeadlinePassed            = "DEADLINE_PASSED"
	VideoIdentificationFailed = "VIDEO_IDENTIFICATION_FAILED"
	ConfigurationError        = "CONFIGURATION_ERROR"
	OwnerErasedCode           = "OWNER_ERASED"
)

// Sentence returns the sentence for people that belongs to the code of a rule.
func Sentence(code string) string {
	switch code {
	case Approved:
		return "All requirements are met."
	case DeadlinePassed:
		return "The requirements were not met in time."
	case VideoIdentificationFailed:
		return "The video identification failed."
	case ConfigurationError:
		return "The entitlement is not set up correctly."
	case OwnerErasedCode:
		return "The owner's data is to be erased."
	}
	return ""
}

// MaxReason is the greatest length of a sealed reason in bytes: 2000 characters in UTF-8 and the overhead of sealing.
const MaxReason = 9 << 10

const (
	maxCode = 64

	// MaxOpenTriggers is the greatest number of open triggers of an owner. With MaxRequested it bounds the consequences
	// of one response or one erasure, which must fit into one record.
	MaxOpenTriggers = 32
	// MaxRequested is the greatest number of questionnaires in the open requests of all triggers of an owner.
	MaxRequested = 1_000
)

// Outcome is the outcome of a video identification.
type Outcome string

// The outcomes.
const (
	Passed     Outcome = "passed"
	NotPassed  Outcome = "failed"
	NoOutcome  Outcome = ""
	maxOutside         = 2 << 10 // of a sealed external reference, in bytes
)

// CreateTrigger asks for an entitlement.
//
// Event: entitlement_trigger.created; the next record, a step, starts the trigger. Refusals: NotFound; Invalid
// INVALID_ENTITLEMENT_ID for the other owner type; Conflict ENTITLEMENT_TRIGGER_ACTIVE, TOO_MANY_TRIGGERS.
type CreateTrigger struct {
	owner.Ref
	EntitlementID scalar.ID
}

// CommandType returns the type of the command.
func (*CreateTrigger) CommandType() string { return CommandCreateTrigger }

func (*CreateTrigger) givenBy() ActorKind { return ByClient }

func (p *CreateTrigger) decide(d *draft) error {
	f, err := d.client(p.Ref)
	if err != nil {
		return err
	}
	e, known := d.state.entitlements[p.EntitlementID]
	if !known {
		return entitlementNotFound()
	}
	if e.OwnerType != p.Type {
		return decide.InvalidField("entitlement_id", "the entitlement is for another type of owner")
	}
	open := 0
	for _, t := range f.triggers {
		if !t.Status.IsOpen() {
			continue
		}
		if open++; t.EntitlementID == e.ID {
			return decide.Refuse(decide.Conflict, "ENTITLEMENT_TRIGGER_ACTIVE", "the entitlement is triggered already")
		}
	}
	if open >= MaxOpenTriggers {
		return decide.Refuse(decide.Conflict, "TOO_MANY_TRIGGERS", "as many triggers of the owner are open as there may be")
	}
	d.explainLimit(open)
	d.explainDeadline(d.nextID(), d.at.Time, e)
	d.add(&TriggerCreated{ID: d.nextID(), EntitlementID: e.ID, Ref: p.Ref, Status: entitlement.Pending, By: d.by, Created: d.at.Time,
		Deadline: deadline(d.at.Time, e)})
	return nil
}

// ActOnTrigger is an operator's action on a trigger.
//
// Events: entitlement_trigger.moved, and its consequences. Refusals: NotFound; Invalid; Conflict TRANSITION_NOT_ALLOWED,
// REQUIREMENTS_OPEN, TOO_MANY_REQUIREMENTS, OWNER_RESTRICTED.
type ActOnTrigger struct {
	ID             scalar.ID
	Action         entitlement.Action
	Code           string
	Reason         Sealed // shown to the tenant
	InternalReason Sealed // optional; shown to operators
	Questionnaires []scalar.ID
	Outcome        Outcome
	// ExternalReference is the identification provider's reference. It is optional.
	ExternalReference Sealed
}

// CommandType returns the type of the command.
func (*ActOnTrigger) CommandType() string { return CommandActOnTrigger }

func (*ActOnTrigger) givenBy() ActorKind { return ByOperator }

func (p *ActOnTrigger) decide(d *draft) error {
	f, known := d.state.owners[d.state.triggers[p.ID]]
	if !known {
		return triggerNotFound()
	}
	if _, err := d.operator(f.owner.Ref); err != nil {
		return err
	}
	t := d.file.trigger(p.ID)
	if err := p.check(d, t); err != nil {
		return err
	}
	if err := p.allowed(t); err != nil {
		return err
	}
	if d.file.requested()+len(p.Questionnaires) > MaxRequested {
		return decide.Refuse(decide.Conflict, "TOO_MANY_REQUIREMENTS", "requests of the owner's triggers name as many questionnaires as they may")
	}
	p.explain(d, t)
	p.act(d, t)
	return nil
}

// check validates the command independently of the trigger's state.
func (p *ActOnTrigger) check(d *draft, t *Trigger) error {
	switch {
	case p.Action == entitlement.Start || !slices.Contains(entitlement.Actions(), p.Action):
		return decide.InvalidField("action", "there is no such action")
	case !isWord(p.Code):
		return decide.InvalidField("code", "the code must be 1 to 64 characters out of A-Z, 0-9 and _")
	case len(p.Reason) == 0 || len(p.Reason) > MaxReason:
		return decide.InvalidField("reason", "the sealed reason is missing or too long")
	case len(p.InternalReason) > MaxReason:
		return decide.InvalidField("internal_reason", "the sealed reason is too long")
	case p.Action != entitlement.RequestInformation && len(p.Questionnaires) > 0:
		return decide.InvalidField("questionnaire_ids", "only a request for information names questionnaires")
	case p.Action != entitlement.CompleteVideoIdentification && (p.Outcome != NoOutcome || len(p.ExternalReference) > 0):
		return decide.InvalidField("outcome", "only a video identification has an outcome")
	case p.Action == entitlement.CompleteVideoIdentification && p.Outcome != Passed && p.Outcome != NotPassed:
		return decide.InvalidField("outcome", "must be passed or failed")
	case len(p.ExternalReference) > maxOutside:
		return decide.InvalidField("external_reference", "the sealed reference is too long")
	}
	if p.Action == entitlement.RequestInformation {
		return p.checkQuestionnaires(d, t)
	}
	return nil
}

func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= maxCode
}

func (p *ActOnTrigger) checkQuestionnaires(d *draft, t *Trigger) error {
	if len(p.Questionnaires) == 0 || len(p.Questionnaires) > MaxQuestionnaires {
		return decide.InvalidField("questionnaire_ids", "a request names 1 to 100 questionnaires")
	}
	for i, id := range p.Questionnaires {
		q, known := d.state.questionnaires[id]
		switch {
		case !known || !q.IsPublished:
			return decide.InvalidField("questionnaire_ids", "there is no such published questionnaire")
		case !q.AppliesTo(t.Ref):
			return decide.InvalidField("questionnaire_ids", "the questionnaire is for another owner")
		case slices.Contains(p.Questionnaires[:i], id):
			return decide.InvalidField("questionnaire_ids", "a questionnaire is named twice")
		}
	}
	return nil
}

// allowed refuses an action that the trigger's state does not allow.
func (p *ActOnTrigger) allowed(t *Trigger) error {
	_, _, ok := entitlement.Next(t.Status, p.Action)
	requested := t.Needs.Video == entitlement.VideoAsked
	switch {
	case !ok, p.Action == entitlement.RequestVideoIdentification && requested, p.Action == entitlement.CompleteVideoIdentification && !requested:
		return decide.Refuse(decide.Conflict, "TRANSITION_NOT_ALLOWED", "the trigger's state does not allow the action")
	case p.Action == entitlement.Approve && !t.Needs.Met(t.Open):
		return decide.Refuse(decide.Conflict, "REQUIREMENTS_OPEN", "not all requirements are met")
	}
	return nil
}

func (p *ActOnTrigger) act(d *draft, t *Trigger) {
	m := d.moved(t, p.Action)
	m.Code, m.Reason, m.InternalReason = p.Code, Reason{Sealed: slices.Clone(p.Reason)}, slices.Clone(p.InternalReason)
	switch p.Action {
	case entitlement.RequestInformation:
		m.Request = &entitlement.Request{ID: d.nextID(), Sequence: d.at.Sequence, Questionnaires: slices.Clone(p.Questionnaires)}
	case entitlement.CompleteVideoIdentification:
		m.Outcome, m.ExternalReference = p.Outcome, slices.Clone(p.ExternalReference)
		if p.Outcome == NotPassed {
			d.add(m)
			d.end(d.file.trigger(t.ID), entitlement.Reject, VideoIdentificationFailed)
			return
		}
	}
	if !m.Status.IsOpen() {
		d.finish(m)
		return
	}
	d.add(m)
	d.settle(m.Reason)
}

// TriggerCreated says that an owner requested an entitlement.
type TriggerCreated struct {
	ID            scalar.ID `json:"id"`
	EntitlementID scalar.ID `json:"entitlement_id"`
	owner.Ref
	Status   entitlement.Status `json:"status"`
	By       ActorKind          `json:"actor_kind"`
	Created  scalar.Time        `json:"created_at"`
	Deadline scalar.Time        `json:"deadline,omitzero"`
}

// EventType returns entitlement_trigger.created.
func (*TriggerCreated) EventType() string { return TypeTriggerCreated }

// TriggerMoved contains an action on a trigger and the state after it.
type TriggerMoved struct {
	ID            scalar.ID `json:"id"`
	EntitlementID scalar.ID `json:"entitlement_id"`
	owner.Ref
	Action         entitlement.Action `json:"action"`
	Status         entitlement.Status `json:"status"`
	Result         entitlement.Result `json:"result,omitempty"`
	By             ActorKind          `json:"actor_kind"`
	Code           string             `json:"code,omitempty"`
	Reason         Reason             `json:"reason,omitzero"`
	InternalReason Sealed             `json:"internal_reason,omitempty"`
	Created        scalar.Time        `json:"created_at"` // of the trigger
	Time           scalar.Time        `json:"time"`
	Deadline       scalar.Time        `json:"deadline,omitzero"` // of the trigger, after the action
	// Terms, Pinned and VideoPlanned are pinned by the action start.
	Terms        *Terms               `json:"terms,omitempty"`
	Pinned       []entitlement.Pinned `json:"questionnaires,omitempty"`
	VideoPlanned bool                 `json:"video_identification,omitzero"`
	// Request is set for request_information.
	Request *entitlement.Request `json:"request,omitempty"`
	// Outcome and ExternalReference are set for complete_video_identification.
	Outcome           Outcome `json:"outcome,omitempty"`
	ExternalReference Sealed  `json:"external_reference,omitempty"`
}

// EventType returns entitlement_trigger.moved.
func (*TriggerMoved) EventType() string { return TypeTriggerMoved }

// RequirementsChanged contains all open requirements of a trigger, oldest first.
type RequirementsChanged struct {
	ID scalar.ID `json:"id"`
	owner.Ref
	Open []entitlement.Requirement `json:"open"`
	Time scalar.Time               `json:"time"`
}

// EventType returns entitlement_trigger.requirements_changed.
func (*RequirementsChanged) EventType() string { return TypeRequirementsChanged }
