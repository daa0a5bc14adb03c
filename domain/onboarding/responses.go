package onboarding

import (
	"fmt"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The command and the event about responses.
const (
	CommandAddResponse = "response.add"

	TypeResponseAdded = "response.added"
)

// MaxAnswersSealed is the greatest length of the sealed answers of a response in bytes: 1 MiB and the overhead of
// sealing.
const MaxAnswersSealed = 1<<20 + 1<<10

// AddResponse contains an owner's answers. The handler has validated them in the clear against the same version. The
// rules validate the parts that are in the clear again, since documents and versions may have changed.
//
// Events: response.added, and its consequences. Refusals: NotFound; Invalid INVALID_ANSWERS, INVALID_VERSION; Conflict
// QUESTIONNAIRE_NOT_PUBLISHED, QUESTIONNAIRE_NOT_APPLICABLE, QUESTIONNAIRE_VERSION_OUTDATED.
type AddResponse struct {
	owner.Ref
	QuestionnaireID scalar.ID
	VersionID       scalar.ID
	Given           []Given
	Answers         Sealed
}

// Given contains the parts of an answer that may be in the clear.
type Given struct {
	// QuestionID is zero for documents in answers to optional questions, if the command was reconstructed from a record.
	QuestionID scalar.ID
	Field      string // the given member, such as answer_text; "" if the command was reconstructed
	Empty      bool   // the member is empty
	Documents  []scalar.ID
}

// CommandType returns the type of the command.
func (*AddResponse) CommandType() string { return CommandAddResponse }

func (*AddResponse) givenBy() ActorKind { return ByClient }

func (p *AddResponse) decide(d *draft) error {
	f, err := d.client(p.Ref)
	if err != nil {
		return err
	}
	q, err := d.questionnaire(p.QuestionnaireID)
	if err != nil {
		return err
	}
	if len(p.Answers) == 0 || len(p.Answers) > MaxAnswersSealed {
		return decide.InvalidField("answers", "the sealed answers are missing or too long")
	}
	at := slices.IndexFunc(q.versions, func(v *questionnaire.Version) bool { return v.ID == p.VersionID })
	if at < 0 {
		return decide.InvalidField("version", "the questionnaire has no such version")
	}
	v := q.versions[at]
	if err := d.checkGiven(v, p.Given); err != nil {
		return err
	}
	switch {
	case !q.IsPublished || !q.published[at]:
		return decide.Refuse(decide.Conflict, "QUESTIONNAIRE_NOT_PUBLISHED", "the questionnaire is not published")
	case !q.AppliesTo(p.Ref):
		return decide.Refuse(decide.Conflict, "QUESTIONNAIRE_NOT_APPLICABLE", "the questionnaire is for another owner")
	case v.Number < q.newest().Number && !f.pins(q.ID, v.Number):
		return decide.Refuse(decide.Conflict, "QUESTIONNAIRE_VERSION_OUTDATED", "the questionnaire has a newer version")
	}
	d.explainAnswered(q.ID, v.Number)
	d.add(&ResponseAdded{ID: d.nextID(), QuestionnaireID: q.ID, VersionID: v.ID, Number: v.Number, Ref: p.Ref, Documents: documentsOf(p.Given),
		Answers: slices.Clone(p.Answers), Created: d.at.Time})
	d.settle(Reason{})
	return nil
}

func documentsOf(given []Given) []scalar.ID {
	out := []scalar.ID{}
	for i := range given {
		for _, id := range given[i].Documents {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// checkGiven validates the parts of the answers that are in the clear.
func (d *draft) checkGiven(v *questionnaire.Version, given []Given) error {
	wrong := func(format string, args ...any) error {
		return decide.InvalidField("answers", fmt.Sprintf(format, args...))
	}
	unnamed := 0
	for i := range given {
		if given[i].QuestionID.IsZero() {
			unnamed++
		}
	}
	if len(given)-unnamed > questionnaire.MaxAnswers {
		return wrong("a response has at most %d answers", questionnaire.MaxAnswers)
	}
	met := make(map[scalar.ID]bool, len(given))
	for i := range given {
		g := &given[i]
		if g.QuestionID.IsZero() {
			continue // see checkUnnamed
		}
		q := v.Question(g.QuestionID)
		switch {
		case q == nil:
			return wrong("answer %d is to no question of the version", i)
		case met[q.ID]:
			return wrong("answer %d is to a question that is answered before", i)
		case g.Field != "" && g.Field != q.Type.AnswerField():
			return wrong("answer %d is not %s", i, q.Type.AnswerField())
		case g.Empty && !q.IsOptional:
			return wrong("answer %d is empty", i)
		}
		met[q.ID] = true
		if err := d.checkNamedDocuments(q.Type, g); err != nil {
			return err
		}
	}
	for i := range v.Questions {
		if q := &v.Questions[i]; !q.IsOptional && !met[q.ID] {
			return wrong("the question %s is not answered", q.ID)
		}
	}
	if unnamed > 0 {
		return d.checkUnnamed(v, given)
	}
	return nil
}

// checkUnnamed checks that the answers without a question name no more documents than optional questions permit, all of which
// belong to the owner.
func (d *draft) checkUnnamed(v *questionnaire.Version, given []Given) error {
	var documents []scalar.ID
	for i := range given {
		if given[i].QuestionID.IsZero() {
			documents = append(documents, given[i].Documents...)
		}
	}
	most := 0
	for i := range v.Questions {
		if q := &v.Questions[i]; q.IsOptional {
			most += mostDocuments(q.Type)
		}
	}
	if len(documents) == 0 || len(documents) > most {
		return decide.InvalidField("answers", "the answers without a question name too many documents or too few")
	}
	return d.checkOwned(documents)
}

// checkNamedDocuments checks that an answer names as many documents as its question type requires, all of which belong
// to the owner.
func (d *draft) checkNamedDocuments(t questionnaire.QuestionType, g *Given) error {
	most := mostDocuments(t)
	if g.Empty {
		most = 0
	}
	least := min(most, 1)
	if len(g.Documents) < least || len(g.Documents) > most {
		return decide.InvalidField("answers", "an answer names too many documents or too few")
	}
	return d.checkOwned(g.Documents)
}

// mostDocuments returns how many documents an answer may name at most. It names at least one if it may.
func mostDocuments(t questionnaire.QuestionType) int {
	switch t {
	case questionnaire.Document:
		return 1
	case questionnaire.MultipleDocuments:
		return questionnaire.MaxIDs
	}
	return 0
}

func (d *draft) checkOwned(documents []scalar.ID) error {
	for _, id := range documents {
		if k, known := d.state.documents[id]; !known || k.Ref != d.file.owner.Ref {
			return decide.InvalidField("answers", "an answer names a document that is not the owner's")
		}
	}
	return nil
}

// ResponseAdded contains an owner's answers to a version of a questionnaire. The latest response of an owner counts.
type ResponseAdded struct {
	ID              scalar.ID `json:"id"`
	QuestionnaireID scalar.ID `json:"questionnaire_id"`
	VersionID       scalar.ID `json:"questionnaire_version_id"`
	Number          int       `json:"version_number"`
	owner.Ref
	Documents []scalar.ID `json:"document_ids"` // the documents that the answers name
	Answers   Sealed      `json:"answers"`
	Created   scalar.Time `json:"created_at"`
}

// EventType returns response.added.
func (*ResponseAdded) EventType() string { return TypeResponseAdded }
