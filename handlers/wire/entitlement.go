package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Entitlement is an entitlement definition as clients see it.
type Entitlement struct {
	ID             scalar.ID                  `json:"id"`
	Name           string                     `json:"name"`
	Description    string                     `json:"description"`
	Questionnaires []EntitlementQuestionnaire `json:"questionnaires"`
	Created        scalar.Time                `json:"created_at"`
	Updated        scalar.Time                `json:"updated_at"`
}

// EntitlementQuestionnaire is a questionnaire that a definition requires.
type EntitlementQuestionnaire struct {
	EntitlementID   scalar.ID `json:"entitlement_id"`
	QuestionnaireID scalar.ID `json:"questionnaire_id"`
	Position        int       `json:"position"`
}

// NewEntitlement converts a definition to its JSON form.
func NewEntitlement(d *entitlement.Definition) Entitlement {
	out := Entitlement{ID: d.ID, Name: d.Name, Description: d.Description, Created: d.Created, Updated: d.Updated,
		Questionnaires: make([]EntitlementQuestionnaire, 0, len(d.Questionnaires))}
	for _, q := range d.Questionnaires {
		out.Questionnaires = append(out.Questionnaires, EntitlementQuestionnaire{d.ID, q.QuestionnaireID, q.Position})
	}
	return out
}

// EntitlementTrigger is an owner's application for an entitlement.
type EntitlementTrigger struct {
	ID            scalar.ID          `json:"id"`
	EntitlementID scalar.ID          `json:"entitlement_id"`
	Status        entitlement.Status `json:"status"`
	Result        entitlement.Result `json:"result,omitempty"` // in terminal states only
	owner.Ref
	Created scalar.Time `json:"created_at"`
}
