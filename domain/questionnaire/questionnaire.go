// Package questionnaire defines questionnaires, their versions with questions and options, and the answers of a
// response. It validates answers in the clear, before they are sealed.
//
// A version never changes. A response answers the version that contains its question ids.
package questionnaire

import (
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// QuestionType determines the kind of answer to a question.
type QuestionType string

// The question types.
const (
	Text              QuestionType = "text"
	Integer           QuestionType = "integer"
	Bool              QuestionType = "bool"
	Country           QuestionType = "country"
	SingleChoice      QuestionType = "single_choice"
	MultipleChoice    QuestionType = "multiple_choice"
	Document          QuestionType = "document"
	MultipleDocuments QuestionType = "multiple_documents"
)

// QuestionTypes lists all question types.
func QuestionTypes() []QuestionType {
	return []QuestionType{Text, Integer, Bool, Country, SingleChoice, MultipleChoice, Document, MultipleDocuments}
}

// HasOptions reports whether a question of the type offers options to choose from.
func (t QuestionType) HasOptions() bool { return t == SingleChoice || t == MultipleChoice }

// AnswerField returns the name of the member that an answer to a question of the type must have, or "" for an unknown
// type.
func (t QuestionType) AnswerField() string { return answerFields[t] }

var answerFields = map[QuestionType]string{Text: FieldText, Integer: FieldInteger, Bool: FieldBoolean, Country: FieldCountry,
	SingleChoice: FieldOption, MultipleChoice: FieldOptions, Document: FieldDocument, MultipleDocuments: FieldDocuments}

// Questionnaire is addressed to all persons, to all corporates, or to one owner.
type Questionnaire struct {
	ID          scalar.ID  `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	OwnerType   owner.Type `json:"owner_type"`
	// OwnerTypeID is the only owner that the questionnaire is addressed to. If it is zero, the questionnaire is generic:
	// it is addressed to all owners of the type.
	OwnerTypeID scalar.ID   `json:"owner_type_id,omitzero"`
	IsPublished bool        `json:"is_published"`
	Created     scalar.Time `json:"created_at"`
}

// IsGeneric reports whether the questionnaire is addressed to all owners of the type.
func (q *Questionnaire) IsGeneric() bool { return q.OwnerTypeID.IsZero() }

// AppliesTo reports whether the owner may answer the questionnaire once it is published.
func (q *Questionnaire) AppliesTo(o owner.Ref) bool {
	return q.OwnerType == o.Type && (q.IsGeneric() || q.OwnerTypeID == o.ID)
}

// Version is an immutable list of questions with their options, types and order.
type Version struct {
	ID              scalar.ID   `json:"id"`
	Number          int         `json:"version_number"` // 1, 2, 3, …
	QuestionnaireID scalar.ID   `json:"questionnaire_id"`
	Created         scalar.Time `json:"created_at"`
	Questions       []Question  `json:"questions"` // by position
}

// Question is one question of a version.
type Question struct {
	ID         scalar.ID    `json:"id"`
	Label      string       `json:"label"` // shown to the respondent
	Value      string       `json:"value"` // for programs; stays the same if the label changes
	Type       QuestionType `json:"question_type"`
	IsOptional bool         `json:"is_optional"`
	Position   int          `json:"position"`
	Options    []Option     `json:"options"` // by position; empty unless the type has options
}

// Option is one choice of a question.
type Option struct {
	ID       scalar.ID `json:"id"`
	Label    string    `json:"label"`
	Value    string    `json:"value"`
	Position int       `json:"position"`
}

// Question returns the question with the id, or nil.
func (v *Version) Question(id scalar.ID) *Question {
	for i := range v.Questions {
		if v.Questions[i].ID == id {
			return &v.Questions[i]
		}
	}
	return nil
}

// offers reports whether the question has the option.
func (q *Question) offers(id scalar.ID) bool {
	for i := range q.Options {
		if q.Options[i].ID == id {
			return true
		}
	}
	return false
}
