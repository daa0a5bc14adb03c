package onboarding_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

func erase(ref owner.Ref) *onboarding.EraseOwner {
	return &onboarding.EraseOwner{Ref: ref, Reason: sealed()}
}

func holding(ref owner.Ref) *onboarding.HoldOwner {
	return &onboarding.HoldOwner{Ref: ref, Reason: sealed()}
}

func releasing(ref owner.Ref) *onboarding.ReleaseOwner {
	return &onboarding.ReleaseOwner{Ref: ref, Reason: sealed()}
}

// ownerState returns the state of an owner.
func (l *log) ownerState(ref owner.Ref) owner.State {
	o, _ := l.state.Owner(ref)
	return o.State
}

// TestKeeping: what an owner left is kept for the retention after its last trigger's end, and restricted meanwhile.
func TestKeeping(t *testing.T) {
	l := owners(t)
	q := l.questionnaire("a")
	doc := upload(ann, 10)
	doc.ValidUntil = start + 100*scalar.Day
	l.must(alpha, doc)
	l.must(alpha, hook(50))
	trigger := l.trigger(define(entitlement.Manual, q))
	l.now += scalar.Day
	l.run([]expect{
		{"kept for less than nothing", operator, &onboarding.SetRetention{Seconds: -1}, "INVALID_SECONDS"},
		{"kept for longer than anybody lives", operator, &onboarding.SetRetention{Seconds: 1 << 40}, "INVALID_SECONDS"},
		{"nobody", operator, erase(ghost), "PERSON_NOT_FOUND"},
		{"a person as a corporate", operator, erase(owner.Ref{Type: owner.CorporateType, ID: ann.ID}), "CORPORATE_NOT_FOUND"},
		{"without a reason", operator, &onboarding.EraseOwner{Ref: ann}, "INVALID_REASON"},
		{"restricted", operator, erase(ann), "entitlement_trigger.moved notice.given delivery.created owner.restricted"},
		{"twice", operator, erase(ann), "OWNER_RESTRICTED"},
		{"hidden from its tenant", alpha, change(ann, 1, "x"), "PERSON_NOT_FOUND"},
		{"nothing more is uploaded", alpha, upload(ann, 11), "PERSON_NOT_FOUND"},
		{"nor changed by operators", operator, &onboarding.ChangeDocument{Ref: ann, ID: id(10), ValidUntil: ptr(scalar.Time(0))}, "OWNER_RESTRICTED"},
		{"nor moved by them", operator, act(trigger, entitlement.Cancel), "OWNER_RESTRICTED"},
		{"its external id is not free yet", alpha, register(owner.Ref{Type: owner.PersonType, ID: id(5)}, "ann"), "EXTERNAL_ID_TAKEN"},
		{"its key is not destroyed yet", sender, &onboarding.ConfirmKeyDestroyed{Ref: ann, KeyID: "k"}, "OWNER_NOT_ERASED"},
	})
	requested := l.now
	x, _ := l.state.Erasure(ann)
	if l.stands(trigger) != "terminated fail, definition 1" || x.RetainUntil != requested+onboarding.DefaultRetention || x.RequestedBy != "operator" {
		t.Errorf("%s, %+v", l.stands(trigger), x)
	}
	l.now = x.RetainUntil - 1
	if got := l.steps(); len(got) != 0 {
		t.Errorf("before its time, or of a document that is hidden: %q", got)
	}
	l.now++
	if got := l.steps(); !slices.Equal(got, []string{"owner.erased"}) || l.ownerState(ann) != owner.Erased {
		t.Errorf("%q", got)
	}
	l.run([]expect{
		{"erased again", operator, erase(ann), "PERSON_NOT_FOUND"},
		{"held", operator, holding(ann), "PERSON_NOT_FOUND"},
		{"its external id is free", alpha, register(owner.Ref{Type: owner.PersonType, ID: id(5)}, "ann"), "owner.registered"},
		{"a key is destroyed by a client", alpha, &onboarding.ConfirmKeyDestroyed{Ref: ann, KeyID: "k"}, "FORBIDDEN"},
		{"of nobody", sender, &onboarding.ConfirmKeyDestroyed{Ref: ghost, KeyID: "k"}, "PERSON_NOT_FOUND"},
		{"without its name", sender, &onboarding.ConfirmKeyDestroyed{Ref: ann}, "INVALID_KEY_ID"},
		{"its key is destroyed", sender, &onboarding.ConfirmKeyDestroyed{Ref: ann, KeyID: "k"}, "owner.key_destroyed"},
		{"once", sender, &onboarding.ConfirmKeyDestroyed{Ref: ann, KeyID: "k"}, "KEY_DESTROYED"},
	})
	o, _ := l.state.Owner(ann)
	x, _ = l.state.Erasure(ann)
	if o.ExternalID != nil || x.RequestedAt != requested || x.ErasedAt != l.now || x.KeyID != "k" || x.KeyDestroyed != l.now || len(x.Positions) != 3 || !slices.IsSorted(x.Positions) {
		t.Errorf("%+v, %+v", o, x)
	}
	l.replayed()
}

// TestHowLongIsKept: from the end of the last trigger, and without one from the creation.
func TestHowLongIsKept(t *testing.T) {
	l := owners(t)
	trigger := l.trigger(define(entitlement.Manual))
	l.now = start + scalar.Day
	l.must(operator, act(trigger, entitlement.Approve))
	l.now = start + 10*scalar.Day
	l.must(operator, &onboarding.SetRetention{Seconds: 20 * 24 * 3600})
	for ref, until := range map[owner.Ref]scalar.Time{ann: 21, corp: 20} {
		l.must(operator, erase(ref))
		if x, _ := l.state.Erasure(ref); x.RetainUntil != start+until*scalar.Day {
			t.Errorf("%s is kept until %s", ref.Type, x.RetainUntil)
		}
	}
	l.must(operator, &onboarding.SetRetention{})
	l.must(operator, erase(bob))
	if got := l.steps(); len(got) != 1 || l.ownerState(bob) != owner.Erased || l.ownerState(ann) != owner.Restricted || l.state.Retention() != 0 {
		t.Errorf("with no retention it is erased at once, and nobody else: %q", got)
	}
	l.replayed()
}

// TestNothingOfARestrictedOwnerIsChanged gives every command that is about an owner. Those that follow from none are listed too:
// a new one is missing until somebody has thought of it.
func TestNothingOfARestrictedOwnerIsChanged(t *testing.T) {
	l := owners(t)
	l.must(alpha, upload(ann, 10))
	l.must(alpha, hook(50))
	trigger := l.trigger(define(entitlement.Manual, l.questionnaire("a")))
	delivery := l.delivery().ID
	l.must(sender, l.attempt(delivery, 200))
	l.must(operator, &onboarding.CreateQuestionnaire{Name: "of ann", OwnerType: owner.PersonType, OwnerTypeID: ann.ID})
	q := l.made()
	l.publish(q)
	answer := l.answer(ann, q, 1)
	l.must(operator, &onboarding.CreateQuestionnaire{Name: "unpublished", OwnerType: owner.PersonType, OwnerTypeID: ann.ID})
	unpublished := l.made()
	l.must(operator, &onboarding.AddVersion{QuestionnaireID: unpublished, Questions: draft()})
	l.must(operator, define(entitlement.Manual))
	another := l.made()
	l.must(operator, erase(ann))
	about := []expect{
		{"change", alpha, change(ann, 1, "x"), "PERSON_NOT_FOUND"},
		{"upload", alpha, upload(ann, 11), "PERSON_NOT_FOUND"},
		{"answer", alpha, answer, "PERSON_NOT_FOUND"},
		{"trigger", alpha, &onboarding.CreateTrigger{Ref: ann, EntitlementID: another}, "PERSON_NOT_FOUND"},
		{"replay", alpha, &onboarding.ReplayDelivery{ID: delivery}, "PERSON_NOT_FOUND"},
		{"replay by an operator", operator, &onboarding.ReplayDelivery{ID: delivery, Operator: true}, "OWNER_RESTRICTED"},
		{"change of a document", operator, &onboarding.ChangeDocument{Ref: ann, ID: id(10), ValidUntil: ptr(scalar.Time(0))}, "OWNER_RESTRICTED"},
		{"action", operator, act(trigger, entitlement.Cancel), "OWNER_RESTRICTED"},
		{"questionnaire", operator, &onboarding.CreateQuestionnaire{Name: "b", OwnerType: owner.PersonType, OwnerTypeID: ann.ID}, "OWNER_RESTRICTED"},
		{"another name", operator, &onboarding.ChangeQuestionnaire{ID: q, Name: ptr("c")}, "OWNER_RESTRICTED"},
		{"version", operator, &onboarding.AddVersion{QuestionnaireID: q, Questions: draft()}, "OWNER_RESTRICTED"},
		{"publishing", operator, &onboarding.PublishQuestionnaire{ID: unpublished}, "OWNER_RESTRICTED"},
		{"unpublishing", operator, &onboarding.UnpublishQuestionnaire{ID: q}, "OWNER_RESTRICTED"},
		{"erasure", operator, erase(ann), "OWNER_RESTRICTED"},
		{"confirmation", sender, &onboarding.ConfirmKeyDestroyed{Ref: ann, KeyID: "k"}, "OWNER_NOT_ERASED"},
	}
	l.run(about)
	// What stops its erasure and resumes it, what tells how an attempt went, and what is about no owner.
	met := []string{onboarding.CommandHoldOwner, onboarding.CommandReleaseOwner, onboarding.CommandRecordAttempt, onboarding.CommandRecordAttempts, onboarding.CommandRegisterOwner,
		onboarding.CommandCreateEntitlement, onboarding.CommandChangeEntitlement, onboarding.CommandCreateWebhook, onboarding.CommandDeleteWebhook,
		onboarding.CommandRotateWebhook, onboarding.CommandEnableWebhook, onboarding.CommandTestWebhook, onboarding.CommandSetRetention, decide.CommandActivateRules, decide.CommandPutBackDue,
		decide.CommandRotateCommitment, decide.CommandDiscloseCommitment, decide.CommandRotateCheckpointKey,
		decide.CommandSetPolicy, decide.CommandRejectProposal, decide.CommandWithdrawProposal,
		decide.CommandConfirmProposal} // see TestProposalsAboutARestrictedOwner
	for _, e := range about {
		met = append(met, e.payload.CommandType())
	}
	for _, kind := range onboarding.Payloads().Types() {
		if !slices.Contains(met, kind) {
			t.Errorf("whether %s changes something of a restricted owner is not tried", kind)
		}
	}
	l.now += onboarding.DefaultRetention
	l.steps()
	l.run([]expect{{"a questionnaire of who is erased", operator, &onboarding.CreateQuestionnaire{Name: "b", OwnerType: owner.PersonType, OwnerTypeID: ann.ID}, "INVALID_OWNER_TYPE_ID"}})
	l.replayed()
}

// TestHolds: who is held is not erased, whether the hold or the request came first.
func TestHolds(t *testing.T) {
	l := owners(t)
	l.must(operator, &onboarding.SetRetention{})
	l.run([]expect{
		{"nobody", operator, holding(ghost), "PERSON_NOT_FOUND"},
		{"without a reason", operator, &onboarding.HoldOwner{Ref: ann}, "INVALID_REASON"},
		{"what is not held", operator, releasing(ann), "OWNER_NOT_HELD"},
		{"before the request", operator, holding(ann), "owner.held"},
		{"twice", operator, holding(ann), "OWNER_HELD"},
		{"the request", operator, erase(ann), "owner.restricted"},
		{"another request", operator, erase(bob), "owner.restricted"},
		{"after the request", operator, holding(bob), "owner.held"},
		{"released without a reason", operator, &onboarding.ReleaseOwner{Ref: bob}, "INVALID_REASON"},
	})
	l.now += 1000 * scalar.Day
	if got := l.steps(); len(got) != 0 || !l.state.Held(ann) || l.ownerState(ann) != owner.Restricted {
		t.Errorf("%q", got)
	}
	l.must(operator, releasing(ann))
	if got := l.steps(); len(got) != 1 || l.ownerState(ann) != owner.Erased || l.ownerState(bob) != owner.Restricted {
		t.Errorf("%q", got)
	}
	l.replayed()
}

// TestWhatIsStillTold: of an erased owner only the end that the erasure caused is still delivered; nothing is replayed.
func TestWhatIsStillTold(t *testing.T) {
	l := owners(t)
	l.must(operator, &onboarding.SetRetention{})
	l.must(alpha, hook(50))
	q := l.questionnaire("a")
	l.trigger(define(entitlement.Manual, q))
	asked := l.delivery().ID
	second := l.trigger(define(entitlement.Manual, q))
	done := l.delivery().ID
	l.must(sender, l.attempt(done, 200))
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	other := l.delivery().ID
	l.must(operator, act(second, entitlement.Cancel))
	l.must(operator, erase(ann))
	if !strings.Contains(l.notices(), "entitlementFailed OWNER_ERASED The owner's data is to be erased.") {
		t.Errorf("%q", l.notices())
	}
	final := l.last[2].(*onboarding.DeliveryCreated).ID
	l.steps()
	for d, want := range map[scalar.ID]webhook.Status{asked: webhook.Canceled, done: webhook.Delivered, other: webhook.Pending, final: webhook.Pending} {
		if v, _ := l.state.Delivery(d); v.Status != want {
			t.Errorf("%+v, want %s", v, want)
		}
	}
	l.must(sender, l.attempt(final, 200))
	// Its key is being destroyed: whether what the receiver said was sealed before, is chance.
	if e := l.last[0].(*onboarding.DeliveryAttempted); e.Reply != nil {
		t.Errorf("of who is erased the receipt keeps a reply: %+v", e)
	}
	l.must(sender, l.attempt(other, 200))
	if e := l.last[0].(*onboarding.DeliveryAttempted); e.Reply == nil {
		t.Errorf("of nobody who is erased the receipt keeps no reply: %+v", e)
	}
	for _, d := range []scalar.ID{asked, done, final} {
		if got := l.do(alpha, &onboarding.ReplayDelivery{ID: d}); got != "OWNER_ERASED" {
			t.Errorf("replayed: %s", got)
		}
	}
	l.replayed()
}
