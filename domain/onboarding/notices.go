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

// Notice is what receivers are told. The body that they get is made of it, always the same.
type Notice struct {
	ID     scalar.ID         `json:"id"`
	Type   webhook.EventType `json:"type"`
	Tenant string            `json:"tenant"`
	owner.Ref
	// Sequence counts the notices about the owner from 1.
	Sequence int64             `json:"sequence"`
	Time     scalar.Time       `json:"timestamp"`
	Document *ExpiringDocument `json:"document,omitempty"` // of documentExpiring
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

// EventVersion returns 1.
func (*NoticeGiven) EventVersion() int { return 1 }

// notice decides a notice about an owner. Its id, number and time are filled in.
func (d *draft) notice(about owner.Ref, n Notice) {
	f := d.state.owners[about.ID]
	d.notices++
	n.ID, n.Ref, n.Tenant, n.Time, n.Sequence = d.nextID(), about, f.owner.Tenant, d.at.Time, f.notices+d.notices
	d.add(&NoticeGiven{n})
}

// noteNotice applies a notice.
func (s *State) noteNotice(n *Notice) {
	if f, known := s.owners[n.Ref.ID]; known {
		f.notices = n.Sequence
	}
	if n.Document == nil {
		return
	}
	if k, known := s.documents[n.Document.ID]; known {
		k.reminded = true
		s.due.drop(dueKey{dueDocument, k.ID})
	}
}
