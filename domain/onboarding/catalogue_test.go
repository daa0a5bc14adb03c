package onboarding_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestCatalogue: operators page through all that there is, newest first, and see each version with whether it is published.
func TestCatalogue(t *testing.T) {
	l := owners(t)
	var made, defined []scalar.ID
	for _, name := range []string{"a", "b", "c"} {
		l.must(operator, &onboarding.CreateQuestionnaire{Name: name, OwnerType: owner.PersonType})
		made = append(made, l.made())
		l.must(operator, &onboarding.CreateEntitlement{Name: name, OwnerType: owner.PersonType, Approval: "manual"})
		defined = append(defined, l.made())
	}
	for _, page := range []struct{ first, n, newest, count int }{{0, 50, 2, 3}, {1, 1, 1, 1}, {2, 5, 0, 1}, {3, 1, 0, 0}, {9, 1, 0, 0}} {
		questionnaires, total := l.state.Questionnaires(page.first, page.n)
		entitlements, count := l.state.Entitlements(page.first, page.n)
		if total != 3 || count != 3 || len(questionnaires) != page.count || len(entitlements) != page.count {
			t.Fatalf("%+v: %d of %d, %d of %d", page, len(questionnaires), total, len(entitlements), count)
		}
		if page.count > 0 && (questionnaires[0].ID != made[page.newest] || entitlements[0].ID != defined[page.newest]) {
			t.Errorf("%+v begins with %s and %s", page, questionnaires[0].Name, entitlements[0].Name)
		}
	}
	l.publish(made[0])
	published := l.last[0].(*onboarding.QuestionnairePublished)
	if published.Name != "a" || !published.IsPublished || published.Number != 1 {
		t.Errorf("what is published is told whole: %+v", published)
	}
	l.must(operator, &onboarding.AddVersion{QuestionnaireID: made[0], Questions: draft()})
	versions := l.state.QuestionnaireVersions(made[0])
	if len(versions) != 2 || !versions[0].Published || versions[1].Published || versions[1].Number != 2 {
		t.Errorf("versions %+v", versions)
	}
	l.must(operator, &onboarding.UnpublishQuestionnaire{ID: made[0]})
	if hidden := l.last[0].(*onboarding.QuestionnaireUnpublished); hidden.Name != "a" || hidden.IsPublished || l.state.QuestionnaireVersions(made[0])[0].Published {
		t.Errorf("what is not published any more is told whole: %+v", hidden)
	}
	if l.state.QuestionnaireVersions(id(9)) != nil {
		t.Error("an unknown questionnaire has versions")
	}
}
