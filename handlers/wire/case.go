package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// CaseEvent is an event in the timeline of an entitlement trigger. What a kind of event does not have is null.
type CaseEvent struct {
	Sequence int64       `json:"sequence"` // of the record
	Time     scalar.Time `json:"time"`
	// Type is that of the event: entitlement_trigger.created, entitlement_trigger.moved,
	// entitlement_trigger.requirements_changed or notice.given.
	Type      string               `json:"type"`
	ActorKind onboarding.ActorKind `json:"actor_kind"`
	// Action and Status are what moved the trigger, and where that left it.
	Action *entitlement.Action `json:"action"`
	Status *entitlement.Status `json:"status"`
	Result *entitlement.Result `json:"result"`
	Code   *string             `json:"code"`
	Reason *string             `json:"reason"`
	// QuestionnaireIDs are what a request for information asks for, or all that is open after a change of what is required.
	QuestionnaireIDs []scalar.ID         `json:"questionnaire_ids"`
	Outcome          *onboarding.Outcome `json:"outcome"` // of a video identification
	EventID          *scalar.ID          `json:"event_id"`
	EventType        *webhook.EventType  `json:"event_type"` // of what receivers were told
	// The rest is for operators; tenants are not shown it.
	*CaseOfOperator
}

// CaseOfOperator is what operators see of an event in a timeline besides.
type CaseOfOperator struct {
	Actor             string  `json:"actor"`
	InternalReason    *string `json:"internal_reason"`
	ExternalReference *string `json:"external_reference"`
}
