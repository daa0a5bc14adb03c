package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// responseInput is the input of AddResponse.
type responseInput struct {
	// Given has the answers that the decision needs: those to required questions, and those that name documents. Which
	// optional questions an owner answered is known to the holders of the owner's key alone.
	Given []givenInput `json:"given,omitempty"`
}

// givenInput is the part of an answer that is in the clear.
type givenInput struct {
	QuestionID scalar.ID   `json:"question_id"`
	Field      string      `json:"field"`
	Documents  []scalar.ID `json:"document_ids,omitempty"`
}

// NewInput implements decide.Partial.
func (*AddResponse) NewInput() any { return new(responseInput) }

func (p *AddResponse) input(d *draft) any {
	var in responseInput
	q := d.state.questionnaires[p.QuestionnaireID]
	v := q.versions[slices.IndexFunc(q.versions, func(v *questionnaire.Version) bool { return v.ID == p.VersionID })]
	for _, g := range p.Given {
		if !v.Question(g.QuestionID).IsOptional || len(g.Documents) > 0 {
			in.Given = append(in.Given, givenInput{g.QuestionID, g.Field, g.Documents})
		}
	}
	return in
}

// Reconstruct implements decide.Payload.
func (p *AddResponse) Reconstruct(r *decide.Evidence) error {
	var in responseInput
	if err := r.ReadInput(&in); err != nil {
		return err
	}
	if e, ok := decide.EventOf[*ResponseAdded](r); ok {
		*p = AddResponse{Ref: e.Ref, QuestionnaireID: e.QuestionnaireID, VersionID: e.VersionID, Answers: e.Answers}
	}
	for _, g := range in.Given {
		p.Given = append(p.Given, Given{QuestionID: g.QuestionID, Field: g.Field, Documents: g.Documents})
	}
	return nil
}
