package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Response is what an owner answered to a version of a questionnaire.
type Response struct {
	ID              scalar.ID `json:"id"`
	QuestionnaireID scalar.ID `json:"questionnaire_id"`
	VersionID       scalar.ID `json:"questionnaire_version_id"`
	owner.Ref
	Answers []questionnaire.Answer `json:"answers"`
	Created scalar.Time            `json:"created_at"`
}
