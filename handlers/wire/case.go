package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// CaseEvent is an event in the timeline of an entitlement trigger. Members that do not apply to a type are null.
type CaseEvent struct {
	Sequence int64       `json:"sequence"` // of the event's record
	Time     scalar.Time `json:"time"`
	// Type is the event type: entitlement_trigger.created, entitlement_trigger.moved,
	// entitlement_trigger.requirements_changed or notice.given.
	Type      string               `json:"type"`
	ActorKind onboarding.ActorKind `json:"actor_kind"`
	// Action is the action that moved the trigger, and Status the status after it.
	Action *entitlement.Action `json:"action"`
	Status *entitlement.Status `json:"status"`
	Result *entitlement.Result `json:"result"`
	Code   *string             `json:"code"`
	Reason *string             `json:"reason"`
	// QuestionnaireIDs lists the questionnaires of a request for information or, after a change of requirements, all
	// open ones.
	QuestionnaireIDs []scalar.ID         `json:"questionnaire_ids"`
	Outcome          *onboarding.Outcome `json:"outcome"` // of a video identification
	EventID          *scalar.ID          `json:"event_id"`
	EventType        *webhook.EventType  `json:"event_type"`      // of the notification sent to webhooks
	Erased           bool                `json:"erased,omitzero"` // whether the reasons and the reference are erased, in answers as of past records
	// CaseOfOperator is set for operators only. Tenants do not see it.
	*CaseOfOperator
}

// CaseOfOperator is the part of a CaseEvent that only operators see.
type CaseOfOperator struct {
	Actor             string  `json:"actor"`
	InternalReason    *string `json:"internal_reason"`
	ExternalReference *string `json:"external_reference"`
}
