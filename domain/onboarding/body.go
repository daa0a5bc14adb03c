package onboarding

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// bodyForm is the number of the form that the bodies of new notices have.
const bodyForm = 1

// Body is what receivers get of a notice, and what the feed shows of it. Its members stand in the order of the interface. Those
// about an owner are missing from test.
type Body struct {
	ID            scalar.ID         `json:"id"`
	OwnerID       scalar.ID         `json:"owner_id,omitzero"`
	OwnerType     owner.Type        `json:"owner_type,omitzero"`
	TriggerID     scalar.ID         `json:"entitlement_trigger_id,omitzero"`
	EntitlementID scalar.ID         `json:"entitlement_id,omitzero"`
	Time          scalar.Time       `json:"timestamp"`
	Type          webhook.EventType `json:"type"`
	Details       Details           `json:"details"`
}

// Details are the members of a body that depend on its type.
type Details struct {
	// Pending are the questionnaires that the owner has to answer, of requirementsQuestionnaire.
	Pending []scalar.ID `json:"pending_questionnaire_ids,omitzero"`
	// DocumentID, Category and ValidUntil are of documentExpiring.
	DocumentID scalar.ID         `json:"document_id,omitzero"`
	Category   document.Category `json:"category,omitzero"`
	ValidUntil scalar.Time       `json:"valid_until,omitzero"`
	// Code is how a trigger ended, of entitlementCompleted and entitlementFailed; Reason is of these two and of
	// requirementsQuestionnaire.
	Code   string  `json:"code,omitzero"`
	Reason *string `json:"reason,omitzero"`
	// Sequence counts what receivers are told about the owner from 1.
	Sequence int64 `json:"sequence,omitzero"`
}

// Body returns what receivers get of a notice, which depends on nothing else: a notice has the same body as long as its record
// lasts. The reason in clear is what the notice's sealed reason says; it is ignored where the venue's own reason is in the
// notice. A form of a later build fails.
func (n *Notice) Body(reason string) (Body, error) {
	b := n.ErasedBody()
	if n.Form != bodyForm {
		return Body{}, fmt.Errorf("notice %s has a body of form %d, of which this build knows nothing", n.ID, n.Form)
	}
	if n.Reason.Sealed == nil {
		reason = n.Reason.Text
	}
	b.Details.Sequence = n.Sequence
	switch n.Type {
	case webhook.RequirementsQuestionnaire:
		b.Details.Pending, b.Details.Reason = append([]scalar.ID{}, n.Pending...), &reason
	case webhook.EntitlementCompleted, webhook.EntitlementFailed:
		b.Details.Code, b.Details.Reason = n.Code, &reason
	case webhook.DocumentExpiring:
		if k := n.Document; k != nil {
			b.Details.DocumentID, b.Details.Category, b.Details.ValidUntil = k.ID, k.Category, k.ValidUntil
		}
	}
	return b, nil
}

// ErasedBody returns what the feed shows of a notice about an owner who is erased: ids, type and time.
func (n *Notice) ErasedBody() Body {
	b := Body{ID: n.ID, OwnerID: n.Ref.ID, OwnerType: n.Ref.Type, Time: n.Time, Type: n.Type}
	if n.Type.NamesTrigger() {
		b.TriggerID, b.EntitlementID = n.TriggerID, n.EntitlementID
	}
	return b
}

// Encode returns the body as the JSON that is signed and sent, byte for byte.
func (b Body) Encode() ([]byte, error) { return json.Marshal(b) }
