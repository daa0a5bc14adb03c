package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// responseInput is the input of AddResponse.
type responseInput struct {
	// Given has the answers to required questions, in the order of the command. Which optional questions an owner answered,
	// and with which documents, is known to the holders of the owner's key alone. The event names the documents.
	Given []givenInput `json:"given,omitempty"`
}

// givenInput is the part of an answer that is in the clear.
type givenInput struct {
	QuestionID scalar.ID   `json:"question_id"`
	Documents  []scalar.ID `json:"document_ids,omitempty"`
}

// NewInput implements decide.Partial.
func (*AddResponse) NewInput() any { return new(responseInput) }

// Lacks implements decide.Partial.
func (*AddResponse) Lacks(*decide.Evidence) bool { return true }

func (p *AddResponse) input(d *draft) any {
	var in responseInput
	q := d.state.questionnaires[p.QuestionnaireID]
	v := q.versions[slices.IndexFunc(q.versions, func(v *questionnaire.Version) bool { return v.ID == p.VersionID })]
	for _, g := range p.Given {
		if q := v.Question(g.QuestionID); q != nil && !q.IsOptional {
			in.Given = append(in.Given, givenInput{g.QuestionID, g.Documents})
		}
	}
	return in
}

// Reconstruct implements decide.Payload. Documents that no answer to a required question names belong to answers without a
// question.
func (p *AddResponse) Reconstruct(r *decide.Evidence) error {
	var in responseInput
	if err := r.ReadInput(&in); err != nil {
		return err
	}
	var documents []scalar.ID
	if e, ok := decide.EventOf[*ResponseAdded](r); ok {
		*p = AddResponse{Ref: e.Ref, QuestionnaireID: e.QuestionnaireID, VersionID: e.VersionID, Answers: e.Answers}
		documents = e.Documents
	}
	p.Given = in.interleave(documents)
	return nil
}

// interleave returns answers of which documentsOf is documents, if there are any: the answers to required questions in
// their order and, between them, answers without a question. An answer comes as soon as the next documents are those that
// it is the first to name. Its documents then all precede those of the next answer.
func (in *responseInput) interleave(documents []scalar.ID) (out []Given) {
	required := in.Given
	for n := 0; n < len(documents); {
		for len(required) > 0 {
			fresh := notIn(documents[:n], required[0].Documents)
			if !slices.Equal(fresh, documents[n:min(n+len(fresh), len(documents))]) {
				break
			}
			out, required, n = append(out, required[0].given()), required[1:], n+len(fresh)
		}
		if n < len(documents) {
			if last := len(out) - 1; last < 0 || !out[last].QuestionID.IsZero() {
				out = append(out, Given{})
			}
			last := &out[len(out)-1]
			last.Documents, n = append(last.Documents, documents[n]), n+1
		}
	}
	for _, g := range required {
		out = append(out, g.given())
	}
	return out
}

// notIn returns the ids that are not among the known ones, each once.
func notIn(known, ids []scalar.ID) (out []scalar.ID) {
	for _, id := range ids {
		if !slices.Contains(known, id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func (g givenInput) given() Given { return Given{QuestionID: g.QuestionID, Documents: g.Documents} }
