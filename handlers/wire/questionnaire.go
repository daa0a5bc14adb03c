package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Questionnaire is a questionnaire as clients and operators see it.
type Questionnaire struct {
	ID          scalar.ID   `json:"id"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	OwnerType   owner.Type  `json:"owner_type"`
	OwnerTypeID *scalar.ID  `json:"owner_type_id"`
	IsGeneric   bool        `json:"is_generic"`
	IsPublished bool        `json:"is_published"`
	Created     scalar.Time `json:"created_at"`
	// Data is the version to answer. Lists omit it.
	Data *QuestionnaireVersion `json:"data,omitzero"`
}

// NewQuestionnaire converts a questionnaire to its JSON form. v is nil in lists.
func NewQuestionnaire(q *questionnaire.Questionnaire, v *questionnaire.Version) Questionnaire {
	out := Questionnaire{ID: q.ID, Name: q.Name, Description: q.Description, OwnerType: q.OwnerType, IsGeneric: q.IsGeneric(),
		IsPublished: q.IsPublished, Created: q.Created}
	if !q.IsGeneric() {
		id := q.OwnerTypeID
		out.OwnerTypeID = &id
	}
	if v != nil {
		shown := NewQuestionnaireVersion(v)
		out.Data = &shown
	}
	return out
}

// QuestionnaireVersion is a version of a questionnaire with its questions.
type QuestionnaireVersion struct {
	ID              scalar.ID   `json:"id"`
	Number          int         `json:"version_number"`
	QuestionnaireID scalar.ID   `json:"questionnaire_id"`
	Created         scalar.Time `json:"created_at"`
	Questions       []Question  `json:"questions"`
}

// Question is one question of a version.
type Question struct {
	ID         scalar.ID                  `json:"id"`
	VersionID  scalar.ID                  `json:"questionnaire_version_id"`
	Label      string                     `json:"label"`
	Value      string                     `json:"value"`
	Type       questionnaire.QuestionType `json:"question_type"`
	IsOptional bool                       `json:"is_optional"`
	Position   int                        `json:"position"`
	Options    []QuestionOption           `json:"options"`
}

// QuestionOption is one of a question's choices.
type QuestionOption struct {
	ID         scalar.ID `json:"id"`
	QuestionID scalar.ID `json:"question_id"`
	Label      string    `json:"label"`
	Value      string    `json:"value"`
	Position   int       `json:"position"`
}

// NewQuestionnaireVersion converts a version to its JSON form.
func NewQuestionnaireVersion(v *questionnaire.Version) QuestionnaireVersion {
	out := QuestionnaireVersion{ID: v.ID, Number: v.Number, QuestionnaireID: v.QuestionnaireID, Created: v.Created,
		Questions: make([]Question, 0, len(v.Questions))}
	for i := range v.Questions {
		q := &v.Questions[i]
		shown := Question{ID: q.ID, VersionID: v.ID, Label: q.Label, Value: q.Value, Type: q.Type, IsOptional: q.IsOptional, Position: q.Position,
			Options: make([]QuestionOption, 0, len(q.Options))}
		for _, o := range q.Options {
			shown.Options = append(shown.Options, QuestionOption{o.ID, q.ID, o.Label, o.Value, o.Position})
		}
		out.Questions = append(out.Questions, shown)
	}
	return out
}
