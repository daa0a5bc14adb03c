package onboarding_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

func define(approval entitlement.Approval, questionnaires ...scalar.ID) *onboarding.CreateEntitlement {
	p := &onboarding.CreateEntitlement{Name: "onboarding", OwnerType: owner.PersonType, Approval: approval}
	for n, q := range questionnaires {
		p.Questionnaires = append(p.Questionnaires, entitlement.Item{QuestionnaireID: q, Position: n})
	}
	return p
}

func act(trigger scalar.ID, a entitlement.Action, questionnaires ...scalar.ID) *onboarding.ActOnTrigger {
	return &onboarding.ActOnTrigger{ID: trigger, Action: a, Code: "BY_HAND", Reason: sealed(), InternalReason: sealed(), Questionnaires: questionnaires}
}

func video(trigger scalar.ID, o onboarding.Outcome) *onboarding.ActOnTrigger {
	p := act(trigger, entitlement.CompleteVideoIdentification)
	p.Outcome, p.ExternalReference = o, sealed()
	return p
}

// trigger defines an entitlement, has ann ask for it and starts it.
func (l *log) trigger(p *onboarding.CreateEntitlement) scalar.ID {
	l.t.Helper()
	l.must(operator, p)
	l.must(alpha, &onboarding.CreateTrigger{Ref: ann, EntitlementID: l.made()})
	id := l.made()
	l.steps()
	return id
}

// stands describes a trigger: its state, result, and open requirements.
func (l *log) stands(id scalar.ID) string {
	l.t.Helper()
	t, known := l.state.Trigger(id)
	if !known {
		return "unknown"
	}
	s := strings.TrimSpace(string(t.Status) + " " + string(t.Result))
	for _, r := range t.Open {
		s += fmt.Sprintf(", %s %d", r.Source, len(r.Questionnaires))
	}
	return s
}

// notices describes the notices of the latest record.
func (l *log) notices() string {
	var out []string
	for _, e := range l.last {
		if n, ok := e.(*onboarding.NoticeGiven); ok {
			s := string(n.Type)
			if len(n.Pending) > 0 {
				s += fmt.Sprint(" ", len(n.Pending))
			}
			out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s %s%s", n.Sequence, s, n.Code, n.Reason.Text, n.Reason.Sealed)))
		}
	}
	return strings.Join(out, "; ")
}

func TestDefinitions(t *testing.T) {
	l := owners(t)
	q := l.questionnaire("a")
	l.must(operator, &onboarding.CreateQuestionnaire{Name: "c", OwnerType: owner.CorporateType})
	forCorporates := l.made()
	spoilt := func(spoil func(*onboarding.CreateEntitlement)) *onboarding.CreateEntitlement {
		p := define(entitlement.Manual, q)
		spoil(p)
		return p
	}
	l.run([]expect{
		{"without a name", operator, spoilt(func(p *onboarding.CreateEntitlement) { p.Name = "" }), "INVALID_NAME"},
		{"for dogs", operator, spoilt(func(p *onboarding.CreateEntitlement) { p.OwnerType = "dog" }), "INVALID_OWNER_TYPE"},
		{"approved by nobody", operator, define("", q), "INVALID_APPROVAL"},
		{"ended before it begins", operator, spoilt(func(p *onboarding.CreateEntitlement) { p.DeadlineSeconds = -1 }), "INVALID_DEADLINE_SECONDS"},
		{"ended beyond all years", operator, spoilt(func(p *onboarding.CreateEntitlement) { p.DeadlineSeconds = 1 << 40 }), "INVALID_DEADLINE_SECONDS"},
		{"asking nothing known", operator, define(entitlement.Manual, id(9)), "INVALID_QUESTIONNAIRES"},
		{"asking twice", operator, define(entitlement.Manual, q, q), "INVALID_QUESTIONNAIRES"},
		{"asking others", operator, define(entitlement.Manual, forCorporates), "INVALID_QUESTIONNAIRES"},
		{"asking too much", operator, define(entitlement.Manual, make([]scalar.ID, 101)...), "INVALID_QUESTIONNAIRES"},
		{"one", operator, define(entitlement.Manual, q), "entitlement.created"},
	})
	e := l.made()
	l.now++
	l.run([]expect{
		{"unknown", operator, &onboarding.ChangeEntitlement{ID: id(9)}, "ENTITLEMENT_NOT_FOUND"},
		{"to another approval", operator, &onboarding.ChangeEntitlement{ID: e, Approval: ptr(entitlement.Approval("x"))}, "INVALID_APPROVAL"},
		{"all of it", operator, &onboarding.ChangeEntitlement{ID: e, Name: ptr("n"), Description: ptr("d"), Questionnaires: []entitlement.Item{},
			Approval: ptr(entitlement.Automatic), VideoIdentification: ptr(true), DeadlineSeconds: ptr(int64(5)), OpensTradingAccount: ptr(true)}, "entitlement.changed"},
	})
	want := entitlement.Definition{ID: e, Name: "n", Description: "d", OwnerType: owner.PersonType, Approval: entitlement.Automatic, VideoIdentification: true,
		DeadlineSeconds: 5, OpensTradingAccount: true, Created: start, Updated: start + 1}
	if got, _ := l.state.Entitlement(e); fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", want) {
		t.Errorf("%+v", got)
	}
	l.replayed()
}

func TestCreatingTriggers(t *testing.T) {
	l := owners(t)
	l.must(operator, define(entitlement.Manual, l.questionnaire("a")))
	e := l.made()
	ask := func(ref owner.Ref, e scalar.ID) *onboarding.CreateTrigger {
		return &onboarding.CreateTrigger{Ref: ref, EntitlementID: e}
	}
	l.run([]expect{
		{"nobody", alpha, ask(ghost, e), "PERSON_NOT_FOUND"},
		{"another tenant's", alpha, ask(bob, e), "PERSON_NOT_FOUND"},
		{"nothing", alpha, ask(ann, id(9)), "ENTITLEMENT_NOT_FOUND"},
		{"another type", alpha, ask(corp, e), "INVALID_ENTITLEMENT_ID"},
		{"one", alpha, ask(ann, e), "entitlement_trigger.created"},
		{"while it is open", alpha, ask(ann, e), "ENTITLEMENT_TRIGGER_ACTIVE"},
		{"another owner's", beta, ask(bob, e), "entitlement_trigger.created"},
	})
	if got := l.steps(); len(got) != 2 {
		t.Errorf("%q", got)
	}
	trigger := l.trigger(define(entitlement.Manual))
	l.must(operator, act(trigger, entitlement.Cancel))
	if tr, _ := l.state.Trigger(trigger); l.do(alpha, ask(ann, tr.EntitlementID)) != "entitlement_trigger.created" {
		t.Error("what has ended cannot be asked for again")
	}
	l.replayed()
}

// TestAFullCase is the workflow of the document: questionnaires, more information, an identification, an approval.
func TestAFullCase(t *testing.T) {
	l := owners(t)
	q1, q2, more := l.questionnaire("a"), l.questionnaire("b"), l.questionnaire("more")
	p := define(entitlement.Automatic, q1, q2)
	p.VideoIdentification = true
	trigger := l.trigger(p)
	step := func(name, stands, notices string) {
		t.Helper()
		if got := l.stands(trigger); got != stands {
			t.Errorf("%s: it stands at %q, want %q", name, got, stands)
		}
		if got := l.notices(); got != notices {
			t.Errorf("%s: the notices are %q, want %q", name, got, notices)
		}
	}
	step("started", "ongoing, definition 2", "1 requirementsQuestionnaire 2  onboarding")
	l.publish(q1)
	l.must(alpha, l.answer(ann, q1, 1))
	step("the pinned version is answered, though it is outdated", "ongoing, definition 1", "")
	if got := l.do(alpha, l.answer(ann, q1, 1)); got != "QUESTIONNAIRE_VERSION_OUTDATED" {
		t.Errorf("when it is answered it is not pinned any more: %s", got)
	}
	if got := l.do(operator, &onboarding.UnpublishQuestionnaire{ID: q2}); got != "QUESTIONNAIRE_REQUIRED" {
		t.Errorf("what is required is unpublished: %s", got)
	}
	l.must(operator, &onboarding.UnpublishQuestionnaire{ID: q1})
	l.must(operator, act(trigger, entitlement.RequestInformation, q2, more))
	step("more is asked for", "ongoing, definition 1, request 2", "2 requirementsQuestionnaire 2  ciphertext")
	for _, e := range l.last {
		if n, is := e.(*onboarding.NoticeGiven); is && n.TriggerID != trigger { // nobody could open the reason otherwise
			t.Errorf("the notice names %v as the trigger whose sealed reason it tells", n.TriggerID)
		}
	}
	l.must(alpha, l.answer(ann, more, 1))
	step("more is given", "ongoing, definition 1, request 1", "")
	l.must(alpha, l.answer(ann, q2, 1))
	step("all is answered", "ongoing, video_identification 0", "3 requirementsVid")
	if got := l.do(operator, act(trigger, entitlement.Approve)); got != "REQUIREMENTS_OPEN" {
		t.Errorf("approved without the identification: %s", got)
	}
	l.must(operator, video(trigger, onboarding.Passed))
	step("identified", "finished success", "4 entitlementCompleted APPROVED All requirements are met.")
	if _, some := l.state.NextDue(); some {
		t.Error("something is due of what has ended")
	}
	l.must(operator, &onboarding.UnpublishQuestionnaire{ID: q2})
	l.replayed()
}

// TestWhatIsAnsweredBefore: a response from before the trigger counts, and what nobody has to decide is approved at once.
func TestWhatIsAnsweredBefore(t *testing.T) {
	l := owners(t)
	q := l.questionnaire("a")
	l.must(alpha, l.answer(ann, q, 1))
	trigger := l.trigger(define(entitlement.Automatic, q))
	if l.stands(trigger) != "finished success" || l.notices() != "1 entitlementCompleted APPROVED All requirements are met." {
		t.Errorf("%s, %s", l.stands(trigger), l.notices())
	}
	for _, e := range l.last {
		if m, ok := e.(*onboarding.TriggerMoved); ok && m.By != onboarding.BySystem {
			t.Errorf("%s by %s", m.Action, m.By)
		}
	}
	l.publish(q)
	again := l.trigger(define(entitlement.Manual, q))
	if l.stands(again) != "ongoing, definition 1" {
		t.Errorf("the answer to an older version than the pinned one counts: %s", l.stands(again))
	}
	l.replayed()
}

// TestWhatIsPinned: a change of the definition touches later triggers only.
func TestWhatIsPinned(t *testing.T) {
	l := owners(t)
	q, other := l.questionnaire("a"), l.questionnaire("b")
	trigger := l.trigger(define(entitlement.Automatic, q))
	tr, _ := l.state.Trigger(trigger)
	l.must(operator, &onboarding.ChangeEntitlement{ID: tr.EntitlementID, Approval: ptr(entitlement.Manual), VideoIdentification: ptr(true),
		Questionnaires: []entitlement.Item{{QuestionnaireID: other}}})
	l.must(alpha, l.answer(ann, q, 1))
	if got := l.stands(trigger); got != "finished success" {
		t.Error(got)
	}
	l.replayed()
}

// TestWhatNobodyCouldMeet: a definition with a questionnaire that is not published, or for somebody else, fails.
func TestWhatNobodyCouldMeet(t *testing.T) {
	l := owners(t)
	q := l.questionnaire("a")
	l.must(operator, &onboarding.UnpublishQuestionnaire{ID: q})
	l.must(operator, &onboarding.CreateQuestionnaire{Name: "own", OwnerType: owner.PersonType, OwnerTypeID: bob.ID})
	own := l.made()
	l.publish(own)
	for _, q := range []scalar.ID{q, own} {
		trigger := l.trigger(define(entitlement.Manual, q))
		if l.stands(trigger) != "failed fail" || !strings.HasSuffix(l.notices(), "entitlementFailed CONFIGURATION_ERROR The entitlement is not set up correctly.") {
			t.Errorf("%s, %s", l.stands(trigger), l.notices())
		}
	}
	l.replayed()
}

// TestDeadlines count from the creation, blocked time included.
func TestDeadlines(t *testing.T) {
	l := owners(t)
	p := define(entitlement.Manual, l.questionnaire("a"))
	p.DeadlineSeconds = 60
	trigger := l.trigger(p)
	l.must(operator, act(trigger, entitlement.Block))
	l.now = start + 60*scalar.Second - 1
	if got := l.steps(); len(got) != 0 {
		t.Errorf("too early: %q", got)
	}
	l.now++
	l.steps()
	if l.stands(trigger) != "terminated fail, definition 1" || l.notices() != "2 entitlementFailed DEADLINE_PASSED The requirements were not met in time." {
		t.Errorf("%s, %s", l.stands(trigger), l.notices())
	}
	l.replayed()
}

// TestActions has every action tried from every state: what the table does not have is refused and changes nothing, and
// every end has one final notice.
func TestActions(t *testing.T) {
	reach := map[entitlement.Status][]entitlement.Action{
		entitlement.Pending: nil, entitlement.Ongoing: {}, entitlement.Blocked: {entitlement.Block}, entitlement.Finished: {entitlement.Reject},
		entitlement.Failed: {entitlement.FailTrigger}, entitlement.Canceled: {entitlement.Cancel}, entitlement.Terminated: {entitlement.Terminate},
	}
	for from, way := range reach {
		for _, a := range entitlement.Actions()[1:] {
			l := owners(t)
			q := l.questionnaire("a")
			l.must(operator, define(entitlement.Manual, q))
			l.must(alpha, &onboarding.CreateTrigger{Ref: ann, EntitlementID: l.made()})
			trigger := l.made()
			if from != entitlement.Pending {
				l.steps()
			}
			for _, a := range way {
				l.must(operator, act(trigger, a))
			}
			p := act(trigger, a)
			switch a {
			case entitlement.RequestInformation:
				p = act(trigger, a, q)
			case entitlement.CompleteVideoIdentification:
				p = video(trigger, onboarding.Passed)
			}
			to, result, allowed := entitlement.Next(from, a)
			want := ""
			switch {
			case !allowed || a == entitlement.CompleteVideoIdentification: // nobody asked for the identification
				want = "TRANSITION_NOT_ALLOWED"
			case a == entitlement.Approve:
				want = "REQUIREMENTS_OPEN"
			}
			got := l.do(operator, p)
			if want != "" {
				if got != want {
					t.Errorf("%s from %s: %s, want %s", a, from, got, want)
				}
				continue
			}
			tr, _ := l.state.Trigger(trigger)
			if tr.Status != to || tr.Result != result || (result != "") != strings.Contains(l.notices(), "entitlementFailed BY_HAND ciphertext") {
				t.Errorf("%s from %s: %s, now %s, %q", a, from, got, l.stands(trigger), l.notices())
			}
			l.replayed()
		}
	}
}

func TestWhatAnActionSays(t *testing.T) {
	l := owners(t)
	q := l.questionnaire("a")
	l.must(operator, &onboarding.CreateQuestionnaire{Name: "unpublished", OwnerType: owner.PersonType})
	unpublished := l.made()
	l.must(operator, &onboarding.CreateQuestionnaire{Name: "own", OwnerType: owner.PersonType, OwnerTypeID: bob.ID})
	own := l.made()
	l.publish(own)
	trigger := l.trigger(define(entitlement.Manual, q))
	spoilt := func(spoil func(*onboarding.ActOnTrigger)) *onboarding.ActOnTrigger {
		p := act(trigger, entitlement.Block)
		spoil(p)
		return p
	}
	request := func(qs ...scalar.ID) *onboarding.ActOnTrigger {
		return act(trigger, entitlement.RequestInformation, qs...)
	}
	l.run([]expect{
		{"about nothing", operator, act(id(9), entitlement.Block), "ENTITLEMENT_TRIGGER_NOT_FOUND"},
		{"start", operator, act(trigger, entitlement.Start), "INVALID_ACTION"},
		{"dance", operator, act(trigger, "dance"), "INVALID_ACTION"},
		{"without a code", operator, spoilt(func(p *onboarding.ActOnTrigger) { p.Code = "" }), "INVALID_CODE"},
		{"with a sentence for a code", operator, spoilt(func(p *onboarding.ActOnTrigger) { p.Code = "a b" }), "INVALID_CODE"},
		{"without a reason", operator, spoilt(func(p *onboarding.ActOnTrigger) { p.Reason = nil }), "INVALID_REASON"},
		{"with a novel", operator, spoilt(func(p *onboarding.ActOnTrigger) { p.InternalReason = make([]byte, onboarding.MaxReason+1) }), "INVALID_INTERNAL_REASON"},
		{"with questionnaires", operator, act(trigger, entitlement.Block, q), "INVALID_QUESTIONNAIRE_IDS"},
		{"with an outcome", operator, spoilt(func(p *onboarding.ActOnTrigger) { p.Outcome = onboarding.Passed }), "INVALID_OUTCOME"},
		{"without one", operator, video(trigger, ""), "INVALID_OUTCOME"},
		{"nothing", operator, request(), "INVALID_QUESTIONNAIRE_IDS"},
		{"what is unknown", operator, request(id(9)), "INVALID_QUESTIONNAIRE_IDS"},
		{"what is not published", operator, request(unpublished), "INVALID_QUESTIONNAIRE_IDS"},
		{"what is for another", operator, request(own), "INVALID_QUESTIONNAIRE_IDS"},
		{"twice", operator, request(q, q), "INVALID_QUESTIONNAIRE_IDS"},
	})
	l.replayed()
}

// TestVideoIdentifications: an operator asks for one at any time; a failed one ends the case.
func TestVideoIdentifications(t *testing.T) {
	l := owners(t)
	q := l.questionnaire("a")
	trigger := l.trigger(define(entitlement.Manual, q))
	ask := act(trigger, entitlement.RequestVideoIdentification)
	l.must(operator, ask)
	if l.stands(trigger) != "ongoing, definition 1, video_identification 0" || l.notices() != "2 requirementsVid" {
		t.Errorf("%s, %s", l.stands(trigger), l.notices())
	}
	if got := l.do(operator, ask); got != "TRANSITION_NOT_ALLOWED" {
		t.Errorf("asked twice: %s", got)
	}
	l.must(operator, video(trigger, onboarding.Passed))
	l.must(operator, ask)
	l.must(operator, video(trigger, onboarding.NotPassed))
	if l.stands(trigger) != "finished fail, definition 1, video_identification 0" || l.notices() != "4 entitlementFailed VIDEO_IDENTIFICATION_FAILED The video identification failed." {
		t.Errorf("%s, %s", l.stands(trigger), l.notices())
	}
	l.replayed()
}

// TestBlockedCases: a blocked case follows its requirements in silence; what that leads to comes with the release.
func TestBlockedCases(t *testing.T) {
	l := owners(t)
	q := l.questionnaire("a")
	p := define(entitlement.Automatic, q)
	p.VideoIdentification = true
	trigger := l.trigger(p)
	l.must(operator, act(trigger, entitlement.Block))
	l.must(alpha, l.answer(ann, q, 1))
	if l.stands(trigger) != "blocked" || l.notices() != "" {
		t.Errorf("%s, %s", l.stands(trigger), l.notices())
	}
	l.must(operator, act(trigger, entitlement.Release))
	if l.stands(trigger) != "ongoing, video_identification 0" || l.notices() != "2 requirementsVid" {
		t.Errorf("%s, %s", l.stands(trigger), l.notices())
	}
	l.must(operator, act(trigger, entitlement.Block))
	l.must(operator, act(trigger, entitlement.Release))
	if l.notices() != "" {
		t.Errorf("nothing grew: %s", l.notices())
	}
	l.replayed()
}

// TestOneSetForAllTriggers: a notice carries all that the owner has to answer, with the newest reason, and names the trigger that it
// is of; receivers are not told which that is (TestBodies).
func TestOneSetForAllTriggers(t *testing.T) {
	l := owners(t)
	q1, q2 := l.questionnaire("a"), l.questionnaire("b")
	first := l.trigger(define(entitlement.Automatic, q1))
	second := define(entitlement.Automatic, q1, q2)
	second.Name = "second"
	other := l.trigger(second)
	last := l.last[len(l.last)-1].(*onboarding.NoticeGiven)
	if !slices.Equal(last.Pending, []scalar.ID{q1, q2}) || last.Reason.Text != "second" || last.TriggerID != other || !last.EntitlementID.IsZero() {
		t.Errorf("%+v", last)
	}
	l.must(alpha, l.answer(ann, q1, 1))
	if l.stands(first) != "finished success" || l.stands(other) != "ongoing, definition 1" || !strings.HasPrefix(l.notices(), "3 entitlementCompleted") {
		t.Errorf("%s; %s; %s", l.stands(first), l.stands(other), l.notices())
	}
	l.must(operator, act(other, entitlement.Cancel))
	l.must(operator, &onboarding.UnpublishQuestionnaire{ID: q2})
	l.replayed()
}
