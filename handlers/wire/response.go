package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Response holds an owner's answers to a version of a questionnaire.
type Response struct {
	ID              scalar.ID `json:"id"`
	QuestionnaireID scalar.ID `json:"questionnaire_id"`
	VersionID       scalar.ID `json:"questionnaire_version_id"`
	owner.Ref
	Answers jsontext.Value `json:"answers"` // as they were encrypted: an array of questionnaire.Answer
	Created scalar.Time    `json:"created_at"`
	Erased  bool           `json:"erased,omitzero"` // whether the answers are erased, in answers as of past records
}
