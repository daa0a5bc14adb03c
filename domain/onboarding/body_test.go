package onboarding_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

const (
	annsBody = `{"id":"01000000-0000-0000-0000-000000000009","owner_id":"01000000-0000-0000-0000-000000000001","owner_type":"person",`
	caseBody = `"entitlement_trigger_id":"01000000-0000-0000-0000-000000000014","entitlement_id":"01000000-0000-0000-0000-000000000015",`
	timeBody = `"timestamp":"2023-11-14T22:13:20.000000Z","type":`
)

// about returns a notice of a type about ann, with all that a notice may have: a body takes what its type has.
func about(t webhook.EventType) onboarding.Notice {
	return onboarding.Notice{ID: id(9), Form: 1, Type: t, Tenant: "alpha", Ref: ann, Sequence: 7, Time: start, TriggerID: id(20), EntitlementID: id(21),
		Pending: []scalar.ID{id(30), id(31)}, Code: "DOCUMENTS_MISSING", Reason: onboarding.Reason{Sealed: sealed()},
		Document: &onboarding.ExpiringDocument{ID: id(10), Category: "id_document", ValidUntil: start + onboarding.Reminder}}
}

// TestBodies: each type of notice has exactly these bytes, for ever, and after its owner's erasure exactly those.
func TestBodies(t *testing.T) {
	byRule := about(webhook.EntitlementCompleted)
	byRule.Code, byRule.Reason = onboarding.Approved, onboarding.Reason{Text: onboarding.Sentence(onboarding.Approved)}
	unasked := about(webhook.RequirementsQuestionnaire)
	unasked.Pending = nil
	test := onboarding.Notice{ID: id(9), Form: 1, Type: webhook.Test, Tenant: "alpha", Time: start}
	for _, c := range []struct {
		notice       onboarding.Notice
		body, erased string
	}{
		{about(webhook.RequirementsQuestionnaire), annsBody + timeBody + `"requirementsQuestionnaire","details":{"pending_questionnaire_ids":` +
			`["01000000-0000-0000-0000-00000000001e","01000000-0000-0000-0000-00000000001f"],"reason":"<We & you>","sequence":7}}`,
			annsBody + timeBody + `"requirementsQuestionnaire","details":{}}`},
		{unasked, annsBody + timeBody + `"requirementsQuestionnaire","details":{"pending_questionnaire_ids":[],"reason":"<We & you>","sequence":7}}`,
			annsBody + timeBody + `"requirementsQuestionnaire","details":{}}`},
		{about(webhook.RequirementsVid), annsBody + caseBody + timeBody + `"requirementsVid","details":{"sequence":7}}`,
			annsBody + caseBody + timeBody + `"requirementsVid","details":{}}`},
		{byRule, annsBody + caseBody + timeBody + `"entitlementCompleted","details":{"code":"APPROVED","reason":"All requirements are met.","sequence":7}}`,
			annsBody + caseBody + timeBody + `"entitlementCompleted","details":{}}`},
		{about(webhook.EntitlementFailed), annsBody + caseBody + timeBody +
			`"entitlementFailed","details":{"code":"DOCUMENTS_MISSING","reason":"<We & you>","sequence":7}}`,
			annsBody + caseBody + timeBody + `"entitlementFailed","details":{}}`},
		{about(webhook.DocumentExpiring), annsBody + timeBody + `"documentExpiring","details":{"document_id":"01000000-0000-0000-0000-00000000000a",` +
			`"category":"id_document","valid_until":"2023-12-14T22:13:20.000000Z","sequence":7}}`,
			annsBody + timeBody + `"documentExpiring","details":{}}`},
		{test, `{"id":"01000000-0000-0000-0000-000000000009",` + timeBody + `"test","details":{}}`,
			`{"id":"01000000-0000-0000-0000-000000000009",` + timeBody + `"test","details":{}}`},
	} {
		if got := bodyOf(t, &c.notice); got != c.body {
			t.Errorf("%s:\n%s, want\n%s", c.notice.Type, got, c.body)
		}
		if got, err := c.notice.ErasedBody().Encode(); err != nil || string(got) != c.erased {
			t.Errorf("%s of one who is erased:\n%s, want\n%s (%v)", c.notice.Type, got, c.erased, err)
		}
		if got := bodyOf(t, kept(t, &c.notice)); got != c.body {
			t.Errorf("%s, read back from the log:\n%s, want\n%s", c.notice.Type, got, c.body)
		}
	}
}

// TestTheLettersOfReasons: what people write is escaped in one way, for ever.
func TestTheLettersOfReasons(t *testing.T) {
	n := about(webhook.RequirementsQuestionnaire)
	b, err := n.Body("\"a\\b\"/\n\r\t é 深 😀 \u2028\u2029 <&>' \u007f")
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.Encode()
	want := `"reason":"\"a\\b\"/\n\r\t é 深 😀 ` + "\u2028\u2029" + ` <&>' ` + "\u007f" + `","sequence":7}}`
	if err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("%q, want %q at its end (%v)", text, want, err)
	}
}

func bodyOf(t *testing.T, n *onboarding.Notice) string {
	t.Helper()
	b, err := n.Body("<We & you>")
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// kept returns a notice as a record keeps it.
func kept(t *testing.T, n *onboarding.Notice) *onboarding.Notice {
	t.Helper()
	text, err := json.Marshal(&onboarding.NoticeGiven{Notice: *n})
	if err != nil {
		t.Fatal(err)
	}
	e, err := onboarding.Rules().Registry().Decode(onboarding.TypeNoticeGiven, 1, text)
	if err != nil {
		t.Fatal(err)
	}
	return &e.(*onboarding.NoticeGiven).Notice
}

// TestABodyOfALaterFormIsNotMadeUp: a build that does not know a form says so, and invents no body of another one.
func TestABodyOfALaterFormIsNotMadeUp(t *testing.T) {
	for _, form := range []int{0, 2} {
		n := about(webhook.EntitlementFailed)
		n.Form = form
		if b, err := n.Body(""); err == nil {
			t.Errorf("form %d: %+v", form, b)
		}
	}
}

// TestNoticesSayTheirForm: all that is decided names the form of its body, of a test as well.
func TestNoticesSayTheirForm(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	tested := l.last[0].(*onboarding.NoticeGiven)
	if tested.Form != 1 || tested.Ref != (owner.Ref{}) {
		t.Errorf("%+v", tested)
	}
	trigger := l.trigger(define("automatic"))
	finished := false
	for _, e := range l.last {
		if n, is := e.(*onboarding.NoticeGiven); is {
			finished = n.Form == 1 && n.TriggerID == trigger && n.Type == webhook.EntitlementCompleted
		}
	}
	if !finished {
		t.Errorf("%+v", l.last)
	}
}
