package explain_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/explain"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/past"
)

// scenario is a registrar with one owner and two questionnaires.
type scenario struct {
	*testing.T
	*projectiontest.Registrar
	owner.Ref
}

var (
	operator = decide.Actor{Sub: "operator", Broker: "venue"}
	client   = decide.Actor{Sub: "clerk", Broker: "alpha"}
)

func newScenario(t *testing.T) *scenario {
	s := &scenario{T: t, Registrar: projectiontest.NewRegistrar(t, 1)}
	for n := 2; n <= onboarding.Rules().Newest(); n++ {
		s.must(operator, &decide.ActivateRules{Rules: n})
	}
	s.Ref = owner.Ref{Type: owner.PersonType, ID: s.Registrar.ID()}
	s.must(client, &onboarding.RegisterOwner{Ref: s.Ref, ExternalID: make([]byte, 32), Fields: s.Sealed()})
	return s
}

func (s *scenario) must(by decide.Actor, p decide.Payload) {
	s.T.Helper()
	if code := s.Do(by, p); code != "" {
		s.T.Fatalf("%s: %s", p.CommandType(), code)
	}
}

// ask creates a questionnaire with a published version.
func (s *scenario) ask(name string) (id scalar.ID) {
	s.T.Helper()
	s.must(operator, &onboarding.CreateQuestionnaire{Name: name, OwnerType: owner.PersonType})
	id = s.Questionnaires[len(s.Questionnaires)-1]
	s.publish(id)
	return id
}

// publish adds a version to a questionnaire.
func (s *scenario) publish(id scalar.ID) {
	s.T.Helper()
	s.must(operator, &onboarding.AddVersion{QuestionnaireID: id, Questions: []questionnaire.Question{{Label: "Why?", Value: "why", Type: questionnaire.Text, Position: 1}}})
	s.must(operator, &onboarding.PublishQuestionnaire{ID: id})
}

// answer responds to the newest version of a questionnaire.
func (s *scenario) answer(id scalar.ID) {
	s.T.Helper()
	_, v, _ := s.State.Questionnaire(id)
	s.must(client, &onboarding.AddResponse{Ref: s.Ref, QuestionnaireID: id, VersionID: v.ID, Answers: s.Sealed(),
		Given: []onboarding.Given{{QuestionID: v.Questions[0].ID, Field: v.Questions[0].Type.AnswerField()}}})
}

// trigger defines an entitlement, and asks for it.
func (s *scenario) trigger(p onboarding.CreateEntitlement, of ...scalar.ID) (id scalar.ID) {
	s.T.Helper()
	p.OwnerType = owner.PersonType
	for i, q := range of {
		p.Questionnaires = append(p.Questionnaires, entitlement.Item{QuestionnaireID: q, Position: i + 1})
	}
	s.must(operator, &p)
	s.must(client, &onboarding.CreateTrigger{Ref: s.Ref, EntitlementID: s.Entitlements[len(s.Entitlements)-1]})
	return s.Triggers[len(s.Triggers)-1]
}

func (s *scenario) act(id scalar.ID, a entitlement.Action, of ...scalar.ID) {
	s.T.Helper()
	p := &onboarding.ActOnTrigger{ID: id, Action: a, Code: "BECAUSE", Reason: s.Sealed(), Questionnaires: of}
	if a == entitlement.CompleteVideoIdentification {
		p.Outcome = onboarding.Passed
	}
	s.must(operator, p)
}

// printed returns calculations as the command in README.md prints them.
func printed(lines []arithmetic.Line) string {
	var b strings.Builder
	b.WriteString("```text\n")
	for _, l := range lines {
		b.WriteString(l.Name)
		if l.Subject != "" {
			b.WriteString(" (" + l.Subject + ")")
		}
		var values []string
		for _, v := range l.Values {
			values = append(values, v.Name+" "+v.Text)
		}
		fmt.Fprintf(&b, "\n    %s\n    %s\n    = %s\n", l.Formula, strings.Join(values, ", "), l.Result)
	}
	b.WriteString("```\n")
	return b.String()
}

// TestREADME explains the records of a case and what is open of it, and finds the answers in README.md as the command there prints
// them.
func TestREADME(t *testing.T) {
	s := newScenario(t)
	kyc, tax := s.ask("KYC"), s.ask("Tax")
	s.answer(kyc)
	s.publish(kyc)
	id := s.trigger(onboarding.CreateEntitlement{Name: "Trading", Approval: entitlement.Automatic, VideoIdentification: true, DeadlineSeconds: 86_400}, kyc, tax)
	s.Pass(scalar.Minute)
	open := len(s.Entries)
	s.answer(kyc)
	s.answer(tax)
	s.Pass(scalar.Minute)
	s.act(id, entitlement.RequestInformation, tax)
	s.answer(tax)
	s.Pass(scalar.Minute)
	s.act(id, entitlement.CompleteVideoIdentification)
	late := s.trigger(onboarding.CreateEntitlement{Name: "Lending", Approval: entitlement.Manual, DeadlineSeconds: 3600}, s.ask("Income"))
	s.Pass(2 * scalar.Hour)
	s.must(operator, &onboarding.CreateQuestionnaire{Name: "Not published", OwnerType: owner.PersonType})
	broken := s.trigger(onboarding.CreateEntitlement{Name: "Broken", Approval: entitlement.Manual}, s.Questionnaires[len(s.Questionnaires)-1])

	j := newJournal(t)
	seen := map[string]int{}
	var want []string
	deciding(t, s.Entries, func(met past.Met) {
		r := met.Entry.Record
		for _, about := range j.learn(r) {
			f := j.triggers[about]
			x, err := explain.New(met, explain.Request{Ref: f.Ref, TriggerID: about, Started: f.started, Defined: j.defined[f.entitlement], Evidence: j.evidence(f.Ref), Tenant: "alpha"})
			if err != nil {
				t.Fatal(err)
			}
			j.check(x, r, seen)
			shown := about == id && slices.ContainsFunc(x.Subjects, func(s explain.Subject) bool {
				return slices.Contains([]explain.Subject{"start", "request_information", "request_video_identification", "approve"}, s)
			})
			if shown || about == late && f.status == entitlement.Terminated || about == broken && f.status == entitlement.Failed {
				want = append(want, printed(x.Arithmetic))
			}
		}
		if r.Sequence == int64(open)-1 {
			evidence := j.evidence(s.Ref)
			f := j.triggers[id]
			p := &view.PendingRequirement{TriggerID: id, EntitlementID: s.Entitlements[0], Entitlement: "Trading", Requirement: f.open[0],
				Pinned: []entitlement.Pinned{{QuestionnaireID: kyc, Version: 2}, {QuestionnaireID: tax, Version: 1}}}
			p.Sequence = f.started
			text, err := json.Marshal(explain.NewPending(p, "Trading", &evidence), jsontext.WithIndent("  "))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, "```json\n"+string(text)+"\n```\n")
		}
	})
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(want) != 7 {
		t.Errorf("%d answers are to be shown", len(want))
	}
	for _, text := range want {
		if !strings.Contains(string(page), text) {
			t.Errorf("README.md does not have:\n%s", text)
		}
	}
}
