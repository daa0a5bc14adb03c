package onboarding

import (
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// TypeNoticeGiven is the type of the event that contains a notice.
const TypeNoticeGiven = "notice.given"

const documentExpiring = webhook.DocumentExpiring

// Notice is an event that webhooks and the feed publish. Its body depends on the notice alone: see Body.
type Notice struct {
	ID scalar.ID `json:"id"`
	// Form is the version of the body's format. A new version applies to later notices only, so published bodies never
	// change.
	Form      int               `json:"form"`
	Type      webhook.EventType `json:"type"`
	Tenant    string            `json:"tenant"`
	owner.Ref                   // zero for test notices
	// Sequence numbers the notices about the owner, from 1. Test notices lack it.
	Sequence int64       `json:"sequence,omitzero"`
	Time     scalar.Time `json:"timestamp"`
	// TriggerID and EntitlementID identify the trigger that the notice is about. A requirementsQuestionnaire notice
	// covers all triggers of the owner. Its TriggerID is the trigger with the new requirements, to which the reason
	// belongs and under which it is sealed. Older notices of this type have TriggerID only if the reason is sealed.
	TriggerID     scalar.ID `json:"entitlement_trigger_id,omitzero"`
	EntitlementID scalar.ID `json:"entitlement_id,omitzero"`
	// Pending lists all questionnaires that the owner must answer, for requirementsQuestionnaire. Reason is the newest
	// reason, or the reason why a trigger ended.
	Pending  []scalar.ID       `json:"pending_questionnaire_ids,omitempty"`
	Code     string            `json:"code,omitempty"` // how a trigger ended
	Reason   Reason            `json:"reason,omitzero"`
	Document *ExpiringDocument `json:"document,omitempty"` // for documentExpiring
}

// Reason is a sentence for people. The venue's own sentences are in Text. An operator's sentence is sealed.
type Reason struct {
	Text   string `json:"text,omitempty"`
	Sealed Sealed `json:"sealed,omitempty"`
}

// ExpiringDocument is a document with an approaching end of validity.
type ExpiringDocument struct {
	ID         scalar.ID         `json:"document_id"`
	Category   document.Category `json:"category"`
	ValidUntil scalar.Time       `json:"valid_until"`
}

// NoticeGiven says that a notice must be published.
type NoticeGiven struct{ Notice }

// EventType returns notice.given.
func (*NoticeGiven) EventType() string { return TypeNoticeGiven }

// notice decides a notice about the owner of the draft and its deliveries. It sets the id, owner, tenant, form, sequence
// and time.
func (d *draft) notice(n Notice) {
	n.ID, n.Form, n.Time = d.nextID(), bodyForm, d.at.Time
	n.Ref, n.Tenant, n.Sequence = d.file.owner.Ref, d.file.owner.Tenant, d.file.notices+1
	d.add(&NoticeGiven{n})
	for _, w := range d.state.Webhooks(n.Tenant) {
		if w.Wants(n.Type) {
			d.deliver(w, &n)
		}
	}
}

// noteNotice removes a document's reminder from the due list after it was given.
func (s *State) noteNotice(n *Notice) {
	if n.Document != nil {
		s.due.drop(dueKey{dueDocument, n.Document.ID})
	}
}
