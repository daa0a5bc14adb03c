package onboarding_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// draft is one question of each kind that answers differ by; its order is not that of the positions.
func draft() []questionnaire.Question {
	return []questionnaire.Question{
		{Label: "Passport", Value: "passport", Type: questionnaire.Document, IsOptional: true, Position: 3},
		{Label: "Name", Value: "name", Type: questionnaire.Text, Position: 1},
		{Label: "Colour", Value: "colour", Type: questionnaire.SingleChoice, IsOptional: true, Position: 2, Options: []questionnaire.Option{
			{Label: "Red", Value: "red", Position: 2}, {Label: "Blue", Value: "blue", Position: 1}}},
		{Label: "Papers", Value: "papers", Type: questionnaire.MultipleDocuments, IsOptional: true, Position: 4},
	}
}

// made returns the id of what the latest record made first.
func (l *log) made() scalar.ID {
	l.t.Helper()
	switch e := l.last[0].(type) {
	case *onboarding.QuestionnaireCreated:
		return e.ID
	case *onboarding.VersionAdded:
		return e.ID
	case *onboarding.EntitlementCreated:
		return e.ID
	case *onboarding.TriggerCreated:
		return e.ID
	}
	l.t.Fatalf("%T makes nothing", l.last[0])
	return scalar.ID{}
}

// questionnaire makes one for persons, with one published version.
func (l *log) questionnaire(name string) scalar.ID {
	l.t.Helper()
	l.must(operator, &onboarding.CreateQuestionnaire{Name: name, OwnerType: owner.PersonType})
	q := l.made()
	l.publish(q)
	return q
}

// publish makes and publishes a further version.
func (l *log) publish(q scalar.ID) {
	l.t.Helper()
	l.must(operator, &onboarding.AddVersion{QuestionnaireID: q, Questions: draft()})
	l.must(operator, &onboarding.PublishQuestionnaire{ID: q})
}

func TestQuestionnaires(t *testing.T) {
	l := owners(t)
	l.run([]expect{
		{"without a name", operator, &onboarding.CreateQuestionnaire{Name: " ", OwnerType: owner.PersonType}, "INVALID_NAME"},
		{"of two lines", operator, &onboarding.CreateQuestionnaire{Name: "a\nb", OwnerType: owner.PersonType}, "INVALID_NAME"},
		{"told in controls", operator, &onboarding.CreateQuestionnaire{Name: "a", Description: "\a", OwnerType: owner.PersonType}, "INVALID_DESCRIPTION"},
		{"for dogs", operator, &onboarding.CreateQuestionnaire{Name: "a", OwnerType: "dog"}, "INVALID_OWNER_TYPE"},
		{"for nobody", operator, &onboarding.CreateQuestionnaire{Name: "a", OwnerType: owner.PersonType, OwnerTypeID: id(99)}, "INVALID_OWNER_TYPE_ID"},
		{"for another type", operator, &onboarding.CreateQuestionnaire{Name: "a", OwnerType: owner.PersonType, OwnerTypeID: corp.ID}, "INVALID_OWNER_TYPE_ID"},
		{"for one", operator, &onboarding.CreateQuestionnaire{Name: "a", OwnerType: owner.PersonType, OwnerTypeID: ann.ID}, "questionnaire.created"},
		{"for all", operator, &onboarding.CreateQuestionnaire{Name: "a", Description: "b\nc", OwnerType: owner.PersonType}, "questionnaire.created"},
	})
	q := l.made()
	l.run([]expect{
		{"unknown", operator, &onboarding.ChangeQuestionnaire{ID: id(9)}, "QUESTIONNAIRE_NOT_FOUND"},
		{"to no name", operator, &onboarding.ChangeQuestionnaire{ID: q, Name: ptr("")}, "INVALID_NAME"},
		{"its name", operator, &onboarding.ChangeQuestionnaire{ID: q, Name: ptr("new")}, "questionnaire.changed"},
		{"nothing to publish", operator, &onboarding.PublishQuestionnaire{ID: q}, "QUESTIONNAIRE_VERSION_NOT_FOUND"},
		{"nothing to unpublish", operator, &onboarding.UnpublishQuestionnaire{ID: q}, "QUESTIONNAIRE_NOT_PUBLISHED"},
		{"no questions", operator, &onboarding.AddVersion{QuestionnaireID: q}, "INVALID_QUESTIONS"},
		{"of nothing", operator, &onboarding.AddVersion{QuestionnaireID: id(9), Questions: draft()}, "QUESTIONNAIRE_NOT_FOUND"},
		{"a version", operator, &onboarding.AddVersion{QuestionnaireID: q, Questions: draft()}, "questionnaire.version_added"},
		{"another one", operator, &onboarding.AddVersion{QuestionnaireID: q, Questions: draft()}, "questionnaire.version_added"},
		{"a third", operator, &onboarding.PublishQuestionnaire{ID: q, Number: 3}, "QUESTIONNAIRE_VERSION_NOT_FOUND"},
		{"below the first", operator, &onboarding.PublishQuestionnaire{ID: q, Number: -1}, "QUESTIONNAIRE_VERSION_NOT_FOUND"},
		{"the newest", operator, &onboarding.PublishQuestionnaire{ID: q}, "questionnaire.published"},
		{"twice", operator, &onboarding.PublishQuestionnaire{ID: q, Number: 2}, "QUESTIONNAIRE_VERSION_PUBLISHED"},
		{"an older one", operator, &onboarding.PublishQuestionnaire{ID: q, Number: 1}, "questionnaire.published"},
	})
	if is, v, _ := l.state.Questionnaire(q); !is.IsPublished || is.Name != "new" || v.Number != 2 {
		t.Errorf("%+v, version %+v", is, v)
	}
	l.must(operator, &onboarding.UnpublishQuestionnaire{ID: q})
	l.must(operator, &onboarding.PublishQuestionnaire{ID: q, Number: 1})
	is, v, _ := l.state.Questionnaire(q)
	if !is.IsPublished || v.Number != 1 {
		t.Errorf("of what was published anew, the newest is %+v", v)
	}
	var order []string
	ids := make(map[scalar.ID]bool)
	for _, asked := range v.Questions {
		order, ids[asked.ID] = append(order, asked.Value), true
		for _, o := range asked.Options {
			order, ids[o.ID] = append(order, o.Value), true
		}
	}
	if strings.Join(order, " ") != "name colour blue red passport papers" || len(ids) != 6 || ids[v.ID] || ids[scalar.ID{}] {
		t.Errorf("%q, %d ids", order, len(ids))
	}
	l.replayed()
}

// answer answers a version of draft, with the documents.
func (l *log) answer(ref owner.Ref, q scalar.ID, number int, documents ...scalar.ID) *onboarding.AddResponse {
	l.t.Helper()
	v := l.version(q, number)
	p := &onboarding.AddResponse{Ref: ref, QuestionnaireID: q, VersionID: v.ID, Answers: sealed(),
		Given: []onboarding.Given{{QuestionID: v.Questions[0].ID, Field: questionnaire.FieldText}}}
	if len(documents) > 0 {
		p.Given = append(p.Given, onboarding.Given{QuestionID: v.Questions[3].ID, Field: questionnaire.FieldDocuments, Documents: documents})
	}
	return p
}

func (l *log) version(q scalar.ID, number int) *questionnaire.Version {
	l.t.Helper()
	n := 0
	for _, r := range l.records {
		e, err := onboarding.Rules().Registry().Decode(r.events[0].kind, r.events[0].version, r.events[0].data)
		if added, ok := e.(*onboarding.VersionAdded); ok && err == nil && added.QuestionnaireID == q {
			if n++; n == number {
				return &added.Version
			}
		}
	}
	l.t.Fatalf("there is no version %d", number)
	return nil
}

func TestResponses(t *testing.T) {
	l := owners(t)
	l.must(alpha, upload(ann, 10))
	l.must(beta, upload(bob, 11))
	l.must(alpha, upload(ann, 12))
	q, other := l.questionnaire("a"), l.questionnaire("b")
	v := l.version(q, 1)
	for _, c := range []struct {
		name  string
		spoil func(*onboarding.AddResponse)
		want  string
	}{
		{"nobody's", func(p *onboarding.AddResponse) { p.Ref = ghost }, "PERSON_NOT_FOUND"},
		{"another tenant's", func(p *onboarding.AddResponse) { p.Ref = bob }, "PERSON_NOT_FOUND"},
		{"to nothing", func(p *onboarding.AddResponse) { p.QuestionnaireID = id(9) }, "QUESTIONNAIRE_NOT_FOUND"},
		{"to another's version", func(p *onboarding.AddResponse) { p.QuestionnaireID = other }, "INVALID_VERSION"},
		{"without answers", func(p *onboarding.AddResponse) { p.Answers = nil }, "INVALID_ANSWERS"},
		{"with too many", func(p *onboarding.AddResponse) { p.Answers = make(onboarding.Sealed, onboarding.MaxAnswersSealed+1) }, "INVALID_ANSWERS"},
		{"by more than there may be", func(p *onboarding.AddResponse) { p.Given = make([]onboarding.Given, 501) }, "INVALID_ANSWERS"},
		{"to no question", func(p *onboarding.AddResponse) { p.Given[0].QuestionID = id(9) }, "INVALID_ANSWERS"},
		{"twice", func(p *onboarding.AddResponse) { p.Given = append(p.Given, p.Given[0]) }, "INVALID_ANSWERS"},
		{"by another field", func(p *onboarding.AddResponse) { p.Given[0].Field = questionnaire.FieldInteger }, "INVALID_ANSWERS"},
		{"with nothing", func(p *onboarding.AddResponse) { p.Given[0].Empty = true }, "INVALID_ANSWERS"},
		{"not at all", func(p *onboarding.AddResponse) { p.Given = p.Given[1:] }, "INVALID_ANSWERS"},
		{"with a document that is not there", func(p *onboarding.AddResponse) { p.Given[1].Documents[0] = id(13) }, "INVALID_ANSWERS"},
		{"with another's document", func(p *onboarding.AddResponse) { p.Given[1].Documents[0] = id(11) }, "INVALID_ANSWERS"},
		{"with no document", func(p *onboarding.AddResponse) { p.Given[1].Documents = nil }, "INVALID_ANSWERS"},
		{"with a document for a name", func(p *onboarding.AddResponse) { p.Given[0].Documents = []scalar.ID{id(10)} }, "INVALID_ANSWERS"},
		{"with two passports", func(p *onboarding.AddResponse) {
			p.Given[1].QuestionID, p.Given[1].Field = v.Questions[2].ID, questionnaire.FieldDocument
		}, "INVALID_ANSWERS"},
		{"with the empty list of an optional question", func(p *onboarding.AddResponse) { p.Given[1].Empty, p.Given[1].Documents = true, nil }, "response.added"},
		{"well", func(*onboarding.AddResponse) {}, "response.added"},
	} {
		p := l.answer(ann, q, 1, id(10), id(12))
		c.spoil(p)
		if got := l.do(alpha, p); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if e := l.last[0].(*onboarding.ResponseAdded); len(e.Documents) != 2 || e.Number != 1 || e.VersionID != v.ID || string(e.Answers) != "ciphertext" {
		t.Errorf("%+v", e)
	}
	l.replayed()
}

// TestWhatMayBeAnswered: the newest published version only, of a questionnaire that is for the owner.
func TestWhatMayBeAnswered(t *testing.T) {
	l := owners(t)
	q := l.questionnaire("a")
	first := l.answer(ann, q, 1)
	l.must(operator, &onboarding.AddVersion{QuestionnaireID: q, Questions: draft()})
	l.run([]expect{
		{"the newest published", alpha, first, "response.added"},
		{"one that is not published", alpha, l.answer(ann, q, 2), "QUESTIONNAIRE_NOT_PUBLISHED"},
		{"by a corporate", alpha, l.answer(corp, q, 1), "QUESTIONNAIRE_NOT_APPLICABLE"},
		{"the second is published", operator, &onboarding.PublishQuestionnaire{ID: q}, "questionnaire.published"},
		{"the first", alpha, first, "QUESTIONNAIRE_VERSION_OUTDATED"},
		{"the second", alpha, l.answer(ann, q, 2), "response.added"},
		{"nothing is published", operator, &onboarding.UnpublishQuestionnaire{ID: q}, "questionnaire.unpublished"},
		{"then", alpha, l.answer(ann, q, 2), "QUESTIONNAIRE_NOT_PUBLISHED"},
		{"one's own", operator, &onboarding.CreateQuestionnaire{Name: "own", OwnerType: owner.PersonType, OwnerTypeID: bob.ID}, "questionnaire.created"},
	})
	own := l.made()
	l.publish(own)
	l.run([]expect{
		{"by another", alpha, l.answer(ann, own, 1), "QUESTIONNAIRE_NOT_APPLICABLE"},
		{"by who it is for", beta, l.answer(bob, own, 1), "response.added"},
	})
	l.replayed()
}
