package onboarding

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// TestTheStateSharesNothingWithEvents changes events after they were applied, which nobody does: others read them.
func TestTheStateSharesNothingWithEvents(t *testing.T) {
	ref := owner.Ref{Type: owner.PersonType, ID: scalar.ID{1}}
	o := &OwnerRegistered{Owner: Owner{Ref: ref, Tenant: "t", ExternalID: []byte("hmac")}}
	d := &DocumentAdded{Document: Document{ID: scalar.ID{2}, Ref: ref, SHA256: []byte("hash")}}
	v := &VersionAdded{questionnaire.Version{QuestionnaireID: scalar.ID{3}, Questions: []questionnaire.Question{{Label: "l", Options: []questionnaire.Option{{Label: "o"}}}}}}
	e := &EntitlementCreated{entitlement.Definition{ID: scalar.ID{4}, Questionnaires: []entitlement.Item{{Position: 1}}}}
	w := &WebhookCreated{Webhook{ID: scalar.ID{5}, Types: []webhook.EventType{"t"}, Key: SigningKey{Public: []byte("public"), Private: Sealed("private")}}}
	created := &TriggerCreated{ID: scalar.ID{6}, Ref: ref}
	started := &TriggerMoved{ID: scalar.ID{6}, Ref: ref, Action: entitlement.Start, Status: entitlement.Ongoing, Terms: &Terms{Name: "n"},
		Pinned: []entitlement.Pinned{{Version: 1}}}
	requested := &TriggerMoved{ID: scalar.ID{6}, Ref: ref, Action: entitlement.RequestInformation, Status: entitlement.Ongoing,
		Request: &entitlement.Request{Questionnaires: []scalar.ID{{3}}}}
	open := &RequirementsChanged{ID: scalar.ID{6}, Ref: ref, Open: []entitlement.Requirement{{Questionnaires: []scalar.ID{{3}}}}}
	s := NewState()
	s.Evolve(decide.Stamp{}, decide.Recorded{}, decide.Accepted, []decide.Event{o, d,
		&QuestionnaireCreated{questionnaire.Questionnaire{ID: scalar.ID{3}}}, v, &QuestionnairePublished{Questionnaire: questionnaire.Questionnaire{ID: scalar.ID{3}, IsPublished: true}, Number: 1},
		e, w, created, started, requested, open})
	v.Questions[0].Label, v.Questions[0].Options[0].Label, e.Questionnaires[0].Position = "x", "x", 9
	w.Types[0], w.Key.Public[0], w.Key.Private[0] = "x", 'x', 'x'
	started.Terms.Name, started.Pinned[0].Version, requested.Request.Questionnaires[0], open.Open[0].Questionnaires[0] = "x", 9, scalar.ID{9}, scalar.ID{9}
	if _, got, _ := s.Questionnaire(scalar.ID{3}); got.Questions[0].Label != "l" || got.Questions[0].Options[0].Label != "o" {
		t.Errorf("%+v", got)
	}
	if got, _ := s.Entitlement(scalar.ID{4}); got.Questionnaires[0].Position != 1 {
		t.Errorf("%+v", got)
	}
	if got, _ := s.Webhook(scalar.ID{5}); got.Types[0] != "t" || string(got.Key.Public) != "public" || string(got.Key.Private) != "private" {
		t.Errorf("%+v", got)
	}
	if got, _ := s.Trigger(scalar.ID{6}); got.Terms.Name != "n" || got.Needs.Pinned[0].Version != 1 || got.Needs.Requests[0].Questionnaires[0] != (scalar.ID{3}) ||
		got.Open[0].Questionnaires[0] != (scalar.ID{3}) {
		t.Errorf("%+v", got)
	}
	o.Tenant, o.ExternalID[0], d.SHA256[0], d.Category = "x", 'x', 'x', "x"
	if got, _ := s.Owner(ref); got.Tenant != "t" || string(got.ExternalID) != "hmac" {
		t.Errorf("%+v", got)
	}
	if got, _ := s.Document(scalar.ID{2}); string(got.SHA256) != "hash" || got.Category != "" {
		t.Errorf("%+v", got)
	}
}
