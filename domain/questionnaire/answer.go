package questionnaire

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// The members of an answer. An answer has exactly one of them, in addition to question_id.
const (
	FieldText      = "answer_text"
	FieldInteger   = "answer_integer"
	FieldBoolean   = "answer_boolean"
	FieldCountry   = "answer_country"
	FieldOption    = "answer_option_id"
	FieldOptions   = "answer_option_ids"
	FieldDocument  = "answer_document_id"
	FieldDocuments = "answer_document_ids"
)

// The limits of a response.
const (
	MaxAnswers = MaxQuestions
	MaxText    = 10_000 // characters of an answer_text
	MaxIDs     = 100    // elements of an array
)

// Answer is the answer to one question. Members that are nil were not given.
type Answer struct {
	QuestionID  scalar.ID    `json:"question_id"`
	Text        *string      `json:"answer_text,omitzero"`
	Integer     *int64       `json:"answer_integer,omitzero"`
	Boolean     *bool        `json:"answer_boolean,omitzero"`
	Country     *string      `json:"answer_country,omitzero"`
	OptionID    *scalar.ID   `json:"answer_option_id,omitzero"`
	OptionIDs   *[]scalar.ID `json:"answer_option_ids,omitzero"`
	DocumentID  *scalar.ID   `json:"answer_document_id,omitzero"`
	DocumentIDs *[]scalar.ID `json:"answer_document_ids,omitzero"`
}

// Fields returns the names of the given members, in the order of the interface.
func (a *Answer) Fields() []string {
	var given []string
	for _, m := range []struct {
		name  string
		given bool
	}{{FieldText, a.Text != nil}, {FieldInteger, a.Integer != nil}, {FieldBoolean, a.Boolean != nil}, {FieldCountry, a.Country != nil},
		{FieldOption, a.OptionID != nil}, {FieldOptions, a.OptionIDs != nil}, {FieldDocument, a.DocumentID != nil}, {FieldDocuments, a.DocumentIDs != nil}} {
		if m.given {
			given = append(given, m.name)
		}
	}
	return given
}

// Documents returns the ids of the documents in the answer.
func (a *Answer) Documents() []scalar.ID {
	var ids []scalar.ID
	if a.DocumentID != nil {
		ids = append(ids, *a.DocumentID)
	}
	if a.DocumentIDs != nil {
		ids = append(ids, *a.DocumentIDs...)
	}
	return ids
}

// IsEmpty reports whether the given member is an empty string or array.
func (a *Answer) IsEmpty() bool {
	return a.Text != nil && *a.Text == "" || a.Country != nil && *a.Country == "" ||
		a.OptionIDs != nil && len(*a.OptionIDs) == 0 || a.DocumentIDs != nil && len(*a.DocumentIDs) == 0
}

// VersionOf returns the version that the answers belong to: the version of the first known question. Without a known
// question it returns the newest version, and without versions nil. The versions must be in ascending order. Check
// reports questions of other versions.
func VersionOf(versions []*Version, answers []Answer) *Version {
	for i := range answers {
		for _, v := range versions {
			if v.Question(answers[i].QuestionID) != nil {
				return v
			}
		}
	}
	if len(versions) == 0 {
		return nil
	}
	return versions[len(versions)-1]
}

// Check returns all errors in the answers to a version. owns reports whether a document belongs to the respondent. Each
// path begins with "answers", followed by the index of an answer or, for a missing answer, by the id of the question.
func (v *Version) Check(answers []Answer, owns func(document scalar.ID) bool) []validation.FieldError {
	var f checks
	if len(answers) > MaxAnswers {
		f.addListTooLong(MaxAnswers, len(answers), "a response has at most %d answers", "answers")
		return f.List
	}
	met := make(map[scalar.ID]bool, len(answers))
	for i := range answers {
		a := &answers[i]
		q := v.Question(a.QuestionID)
		switch {
		case q == nil:
			f.AddKind(validation.ValueError, "there is no such question in this version of the questionnaire", "answers", i, "question_id")
		case met[q.ID]:
			f.AddKind(validation.ValueError, "the question is answered more than once", "answers", i, "question_id")
		default:
			f.answer(q, a, owns, i)
			met[q.ID] = true
		}
	}
	for i := range v.Questions {
		if q := &v.Questions[i]; !q.IsOptional && !met[q.ID] {
			f.AddKind(validation.Unanswered, fmt.Sprintf("the question %s (%s) is not answered", q.ID, q.Value), "answers", q.ID.String())
		}
	}
	return f.List
}

func (f *checks) answer(q *Question, a *Answer, owns func(scalar.ID) bool, i int) {
	given, want := a.Fields(), q.Type.AnswerField()
	switch {
	case len(given) == 0:
		f.AddKind(validation.Unanswered, "a question of type "+string(q.Type)+" is answered by "+want, "answers", i, want)
		return
	case len(given) > 1:
		f.AddKind(validation.ValueError, "an answer has one member of "+strings.Join(given, ", "), "answers", i)
		return
	case given[0] != want:
		f.AddKind(validation.ValueError, "a question of type "+string(q.Type)+" is answered by "+want, "answers", i, given[0])
		return
	case a.IsEmpty():
		if !q.IsOptional {
			f.AddKind(validation.Unanswered, "the question must be answered", "answers", i, want)
		}
		return
	}
	switch {
	case a.Text != nil:
		f.answerText(*a.Text, i)
	case a.Country != nil && !owner.IsCountry(*a.Country):
		f.AddKind(validation.ValueError, "must be an ISO 3166-1 alpha-3 country code", "answers", i, want)
	case a.OptionID != nil && !q.offers(*a.OptionID):
		f.AddKind(validation.ValueError, "must be an option of the question", "answers", i, want)
	case a.DocumentID != nil && !owns(*a.DocumentID):
		f.AddKind(validation.ValueError, "must be a document of the owner", "answers", i, want)
	case a.OptionIDs != nil:
		f.ids(*a.OptionIDs, q.offers, "must be an option of the question", i, want)
	case a.DocumentIDs != nil:
		f.ids(*a.DocumentIDs, owns, "must be a document of the owner", i, want)
	}
}

func (f *checks) answerText(text string, i int) {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, control):
		f.AddKind(validation.ValueError, "must be text without control characters but line breaks and tabs", "answers", i, FieldText)
	case utf8.RuneCountInString(text) > MaxText:
		f.AddTooLong(MaxText, "answers", i, FieldText)
	}
}

func (f *checks) ids(ids []scalar.ID, known func(scalar.ID) bool, message string, i int, field string) {
	if len(ids) > MaxIDs {
		f.addListTooLong(MaxIDs, len(ids), "must have at most %d ids", "answers", i, field)
		return
	}
	met := make(map[scalar.ID]bool, len(ids))
	for n, id := range ids {
		switch {
		case !known(id):
			f.AddKind(validation.ValueError, message, "answers", i, field, n)
		case met[id]:
			f.AddKind(validation.ValueError, "the id is given more than once", "answers", i, field, n)
		}
		met[id] = true
	}
}
