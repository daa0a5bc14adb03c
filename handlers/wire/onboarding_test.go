package wire

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestOnboardingShapes: arrays are never null, an owner's id is null where a questionnaire is for all, items have no data, and
// an open trigger has no result.
func TestOnboardingShapes(t *testing.T) {
	q := &questionnaire.Questionnaire{ID: scalar.ID{1}, Name: "n", OwnerType: owner.PersonType}
	one := *q
	one.OwnerTypeID = scalar.ID{9}
	v := &questionnaire.Version{ID: scalar.ID{2}, Number: 1, QuestionnaireID: q.ID, Questions: []questionnaire.Question{{ID: scalar.ID{3}, Label: "l", Value: "v",
		Type: questionnaire.SingleChoice, Position: 1, Options: []questionnaire.Option{{ID: scalar.ID{4}, Label: "a", Value: "b", Position: 1}}}}}
	const start, middle = `{"id":"01000000-0000-0000-0000-000000000000","name":"n","description":"","owner_type":"person","owner_type_id":`,
		`,"is_published":false,"created_at":"1970-01-01T00:00:00.000000Z"`
	for _, x := range []struct {
		value any
		want  string
	}{
		{NewQuestionnaire(q, nil), start + `null,"is_generic":true` + middle + `}`},
		{NewQuestionnaire(&one, nil), start + `"09000000-0000-0000-0000-000000000000","is_generic":false` + middle + `}`},
		{NewQuestionnaire(q, v), start + `null,"is_generic":true` + middle + `,"data":{"id":"02000000-0000-0000-0000-000000000000","version_number":1,` +
			`"questionnaire_id":"01000000-0000-0000-0000-000000000000","created_at":"1970-01-01T00:00:00.000000Z","questions":[{` +
			`"id":"03000000-0000-0000-0000-000000000000","questionnaire_version_id":"02000000-0000-0000-0000-000000000000","label":"l","value":"v",` +
			`"question_type":"single_choice","is_optional":false,"position":1,"options":[{"id":"04000000-0000-0000-0000-000000000000",` +
			`"question_id":"03000000-0000-0000-0000-000000000000","label":"a","value":"b","position":1}]}]}}`},
		{NewQuestionnaireVersion(&questionnaire.Version{}).Questions, `[]`},
		{NewEntitlement(&entitlement.Definition{}).Questionnaires, `[]`},
		{NewEntitlement(&entitlement.Definition{ID: scalar.ID{1}, Questionnaires: []entitlement.Item{{QuestionnaireID: scalar.ID{2}, Position: 3}}}).Questionnaires,
			`[{"entitlement_id":"01000000-0000-0000-0000-000000000000","questionnaire_id":"02000000-0000-0000-0000-000000000000","position":3}]`},
		{EntitlementTrigger{Status: entitlement.Pending, Ref: owner.Ref{Type: owner.PersonType, ID: scalar.ID{5}}},
			`{"id":"00000000-0000-0000-0000-000000000000","entitlement_id":"00000000-0000-0000-0000-000000000000","status":"pending","owner_type":"person",` +
				`"owner_id":"05000000-0000-0000-0000-000000000000","created_at":"1970-01-01T00:00:00.000000Z"}`},
	} {
		if got, err := json.Marshal(x.value); err != nil || string(got) != x.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, x.want)
		}
	}
}
