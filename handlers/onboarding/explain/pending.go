package explain

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Pending explains an open requirement.
type Pending struct {
	Reason         string      `json:"reason"`
	Questionnaires []scalar.ID `json:"pending_questionnaire_ids"`
	TriggerID      scalar.ID   `json:"entitlement_trigger_id"`
	EntitlementID  scalar.ID   `json:"entitlement_id"`
	// Entitlement is the name that the definition had when the trigger started.
	Entitlement string             `json:"entitlement_name"`
	Source      entitlement.Source `json:"source"`
	RequestID   *scalar.ID         `json:"request_id"` // of a request for information
	// Position is the record that required it: the start of the trigger, the request, or the request for a video identification.
	Position record.LogPosition `json:"position"`
	// Missing has one element for each questionnaire, or one for the video identification.
	Missing    []Requirement     `json:"missing"`
	Arithmetic []arithmetic.Line `json:"arithmetic"`
}

// NewPending explains an open requirement with the responses of the owner at the same position, and the requirement's reason.
func NewPending(p *view.PendingRequirement, reason string, e *view.Evidence) Pending {
	var n entitlement.Needs
	switch p.Source {
	case entitlement.FromDefinition:
		for _, pinned := range p.Pinned {
			if slices.Contains(p.Requirement.Questionnaires, pinned.QuestionnaireID) {
				n.Pinned = append(n.Pinned, pinned)
			}
		}
	case entitlement.FromRequest:
		n.Requests = []entitlement.Request{{ID: p.Request, Sequence: p.Sequence, Questionnaires: p.Requirement.Questionnaires}}
	case entitlement.FromVideo:
		n.Video, n.VideoSequence = entitlement.VideoAsked, p.Sequence
	}
	sheet := new(arithmetic.Sheet)
	n.Explain(sheet, "", e.Answered)
	return Pending{Reason: reason, Questionnaires: append([]scalar.ID{}, p.Requirement.Questionnaires...), TriggerID: p.TriggerID, EntitlementID: p.EntitlementID,
		Entitlement: p.Entitlement, Source: p.Source, RequestID: nonzero(p.Request), Position: position(p.Sequence),
		Missing: Required(&n, p.Sequence, e.Answered), Arithmetic: sheet.For("")}
}
