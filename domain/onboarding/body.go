package onboarding

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// bodyForm is the version of the body format of new notices.
const bodyForm = 1

// Body is the content of a notice that webhooks deliver and the feed shows. Its members are in the order of the
// interface. Test notices lack the members about an owner.
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
	// Pending lists the questionnaires that the owner must answer. Only requirementsQuestionnaire has it.
	Pending []scalar.ID `json:"pending_questionnaire_ids,omitzero"`
	// Only documentExpiring has DocumentID, Category and ValidUntil.
	DocumentID scalar.ID         `json:"document_id,omitzero"`
	Category   document.Category `json:"category,omitzero"`
	ValidUntil scalar.Time       `json:"valid_until,omitzero"`
	// Code says how a trigger ended. Only entitlementCompleted and entitlementFailed have it; these and
	// requirementsQuestionnaire have Reason.
	Code   string  `json:"code,omitzero"`
	Reason *string `json:"reason,omitzero"`
	// Sequence numbers the notices about the owner, from 1.
	Sequence int64 `json:"sequence,omitzero"`
}

// Body returns the body of a notice. It depends only on the notice and the reason, so a notice always has the same body.
// reason is the decrypted reason of the notice; it is ignored if the notice has a reason in the clear. Body fails for a
// body format of a later build.
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

// ErasedBody returns what the feed shows of a notice after its owner was erased: ids, type and time.
func (n *Notice) ErasedBody() Body {
	b := Body{ID: n.ID, OwnerID: n.Ref.ID, OwnerType: n.Ref.Type, Time: n.Time, Type: n.Type}
	if n.Type.NamesTrigger() {
		b.TriggerID, b.EntitlementID = n.TriggerID, n.EntitlementID
	}
	return b
}

// Encode returns the JSON bytes that are signed and sent.
func (b Body) Encode() ([]byte, error) { return json.Marshal(b) }
