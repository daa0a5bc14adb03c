package onboarding

import (
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// TypeNoticeGiven is the type of the event that tells of a notice.
const TypeNoticeGiven = "notice.given"

const documentExpiring = webhook.DocumentExpiring

// Notice is what receivers are told. The body that they get is made of it, always the same: see Body.
type Notice struct {
	ID scalar.ID `json:"id"`
	// Form is the number of the body's form. A later form is for later notices: it changes no body that was sent.
	Form      int               `json:"form"`
	Type      webhook.EventType `json:"type"`
	Tenant    string            `json:"tenant"`
	owner.Ref                   // none, of test
	// Sequence counts the notices about the owner from 1; none, of test.
	Sequence int64       `json:"sequence,omitzero"`
	Time     scalar.Time `json:"timestamp"`
	// TriggerID and EntitlementID name the trigger that it is about, if it is about one. Of requirementsQuestionnaire, which is
	// about all of the owner's, TriggerID is the one whose requirements grew, which its reason is of and sealed for. Older notices
	// have it only where the reason is sealed.
	TriggerID     scalar.ID `json:"entitlement_trigger_id,omitzero"`
	EntitlementID scalar.ID `json:"entitlement_id,omitzero"`
	// Pending are all questionnaires that the owner has to answer, of requirementsQuestionnaire; Reason is the newest
	// reason, or why a trigger ended.
	Pending  []scalar.ID       `json:"pending_questionnaire_ids,omitempty"`
	Code     string            `json:"code,omitempty"` // of how a trigger ended
	Reason   Reason            `json:"reason,omitzero"`
	Document *ExpiringDocument `json:"document,omitempty"` // of documentExpiring
}

// Reason is a sentence for people: the venue's own in clear, or what an operator wrote, sealed.
type Reason struct {
	Text   string `json:"text,omitempty"`
	Sealed Sealed `json:"sealed,omitempty"`
}

// ExpiringDocument is a document that will end.
type ExpiringDocument struct {
	ID         scalar.ID         `json:"document_id"`
	Category   document.Category `json:"category"`
	ValidUntil scalar.Time       `json:"valid_until"`
}

// NoticeGiven says that receivers are to be told something.
type NoticeGiven struct{ Notice }

// EventType returns notice.given.
func (*NoticeGiven) EventType() string { return TypeNoticeGiven }

// notice decides a notice about the owner of the draft, and its deliveries. Its id, form, number and time are filled in.
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

// noteNotice takes the reminder of a document's end off the due list: it was given.
func (s *State) noteNotice(n *Notice) {
	if n.Document != nil {
		s.due.drop(dueKey{dueDocument, n.Document.ID})
	}
}
