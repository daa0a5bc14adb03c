package admin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// desk is a venue with owners, as an operator meets it.
type desk struct {
	*testing.T
	*tradingtest.Venue
}

func newDesk(t *testing.T) *desk { return &desk{t, tradingtest.New(t)} }

// submit gives a command of a client of a tenant, or of the system.
func (d *desk) submit(actor decide.Actor, p decide.Payload) *desk {
	d.T.Helper()
	c := decide.Command{ID: operation.NewID(), Type: p.CommandType(), Actor: actor, Payload: p}
	if _, err := d.Submit(d.T.Context(), "onboarding", c); err != nil {
		d.T.Fatalf("%s: %v", c.Type, err)
	}
	d.Onboarding.Drain()
	return d
}

func client(tenant string) decide.Actor { return decide.Actor{Sub: "somebody", Broker: tenant} }

// owner registers an owner of a tenant's, with nothing but a name.
func (d *desk) owner(tenant string, t owner.Type, n byte) owner.Ref {
	d.T.Helper()
	ref := owner.Ref{Type: t, ID: scalar.ID{7, n, 15: 1}}
	if err := d.Owners.Create(d.T.Context(), ref.String()); err != nil {
		d.T.Fatal(err)
	}
	d.submit(client(tenant), &onboarding.RegisterOwner{Ref: ref, ExternalID: append(make([]byte, 31), n), Fields: d.sealed(`{"external_id":"x","first_name":"Ann","last_name":"Øst","legal_name":"Øst AG"}`, seal.OwnerFields(ref))})
	return ref
}

func (d *desk) sealed(text string, at seal.AssociatedData) onboarding.Sealed {
	d.T.Helper()
	b, err := d.Owners.Seal(d.T.Context(), []byte(text), at)
	if err != nil {
		d.T.Fatal(err)
	}
	return b
}

// make posts what an operator makes, and returns its id.
func (d *desk) make(path, body string) string {
	d.T.Helper()
	return d.Send("operator", "POST", base+path, body).Want(201).Text("id")
}

const draft = `{"questions":[{"label":"Name","value":"name","question_type":"text","position":1}]}`

// questionnaire makes one for persons, with a published version.
func (d *desk) questionnaire(name string) string {
	d.T.Helper()
	id := d.make("/questionnaires", `{"name":"`+name+`","owner_type":"person"}`)
	d.make("/questionnaires/"+id+"/versions", draft)
	d.Send("operator", "POST", base+"/questionnaires/"+id+"/publish", "").Want(200)
	return id
}

// trigger has an owner ask for an entitlement, and returns the trigger's id once it has begun.
func (d *desk) trigger(of owner.Ref, tenant, entitlement string) string {
	d.T.Helper()
	id, err := scalar.ParseID(entitlement)
	if err != nil {
		d.T.Fatal(err)
	}
	d.submit(client(tenant), &onboarding.CreateTrigger{Ref: of, EntitlementID: id})
	for _, e := range slices.Backward(d.Onboarding.Entries()) {
		if made, ok := operation.Find[*onboarding.TriggerCreated](e.Record); ok {
			return made.ID.String()
		}
	}
	d.T.Fatal("there is no trigger")
	return ""
}

// answer has an owner answer the only question of a questionnaire.
func (d *desk) answer(of owner.Ref, tenant, q string) {
	d.T.Helper()
	id, err := scalar.ParseID(q)
	if err != nil {
		d.T.Fatal(err)
	}
	var payload *onboarding.AddResponse
	d.Onboarding.View(func(s decide.State, _ position) {
		_, v, _ := s.(*onboarding.State).Questionnaire(id)
		payload = &onboarding.AddResponse{Ref: of, QuestionnaireID: id, VersionID: v.ID, Given: []onboarding.Given{{QuestionID: v.Questions[0].ID, Field: "answer_text"}}}
	})
	payload.Answers = d.sealed(`[]`, seal.Answers(of, payload.VersionID))
	d.submit(client(tenant), payload)
}

func TestQuestionnaires(t *testing.T) {
	d := newDesk(t)
	const entry = `{"name":"KYC","description":"two\nlines","owner_type":"person"}`
	made := d.Send("operator", "POST", base+"/questionnaires", entry, "Idempotency-Key", "k").Want(201)
	want(t, made, "name", "KYC", "description", "two\nlines", "owner_type", "person", "owner_type_id", "", "is_generic", "true", "is_published", "false")
	id := made.Text("id")
	one := base + "/questionnaires/" + id
	want(t, d.Send("operator", "PATCH", one, `{"name":"KYC 2"}`).Want(200), "name", "KYC 2", "description", "two\nlines")
	if again := d.Send("operator", "POST", base+"/questionnaires", entry, "Idempotency-Key", "k").Want(201); again.Body != made.Body {
		t.Errorf("again %s, first %s", again.Body, made.Body)
	}
	d.Send("operator", "POST", base+"/questionnaires", strings.Replace(entry, "KYC", "AML", 1), "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")

	d.Send("operator", "POST", one+"/publish", "").Code(404, "QUESTIONNAIRE_VERSION_NOT_FOUND")
	first := d.Send("operator", "POST", one+"/versions", `{"questions":[
		{"label":"Papers","value":"papers","question_type":"multiple_documents","is_optional":true,"position":2,"options":[]},
		{"label":"Colour","value":"colour","question_type":"single_choice","position":1,"options":[{"label":"Red","value":"red","position":2},{"label":"Blue","value":"blue","position":1}]}]}`).Want(201)
	want(t, first, "version_number", "1", "questionnaire_id", id, "is_published", "false")
	if !ordered(first.Body, `"value":"colour"`, `"is_optional":false`, `"value":"blue"`, `"value":"red"`, `"value":"papers"`, `"is_optional":true`, `"options":[]`) {
		t.Errorf("the questions of a version, by position: %s", first.Body)
	}
	want(t, d.Send("operator", "POST", one+"/versions", draft).Want(201), "version_number", "2")
	published := d.Send("operator", "POST", one+"/publish", `{"version_number":1}`, "Idempotency-Key", "p").Want(200)
	want(t, published, "name", "KYC 2", "is_published", "true")
	d.Send("operator", "POST", one+"/publish", `{"version_number":1}`).Code(409, "QUESTIONNAIRE_VERSION_PUBLISHED")
	d.Send("operator", "POST", one+"/publish", `{"version_number":3}`).Code(404, "QUESTIONNAIRE_VERSION_NOT_FOUND")
	d.Send("operator", "PATCH", one, `{"name":"KYC 3"}`).Want(200)
	if again := d.Send("operator", "POST", one+"/publish", `{"version_number":1}`, "Idempotency-Key", "p").Want(200); again.Body != published.Body {
		t.Errorf("after a rename the first answer is not given again: %s, first %s", again.Body, published.Body)
	}
	d.Send("operator", "POST", one+"/publish", "").Want(200) // the newest
	shown := d.Send("auditor", "GET", one, "").Want(200)
	if !ordered(shown.Body, `"version_number":1`, `"is_published":true`, `"version_number":2`, `"is_published":true`) || shown.Text("name") != "KYC 3" {
		t.Errorf("all versions: %s", shown.Body)
	}
	want(t, d.Send("operator", "POST", one+"/unpublish", "").Want(200), "is_published", "false", "name", "KYC 3")
	d.Send("operator", "POST", one+"/unpublish", "").Code(409, "QUESTIONNAIRE_NOT_PUBLISHED")

	corporate := d.owner("alpha", owner.CorporateType, 1)
	d.Send("operator", "POST", base+"/questionnaires", `{"name":"n","owner_type":"person","owner_type_id":"`+corporate.ID.String()+`"}`).Code(400, "INVALID_OWNER_TYPE_ID")
	want(t, d.Send("operator", "POST", base+"/questionnaires", `{"name":"for one","owner_type":"corporate","owner_type_id":"`+corporate.ID.String()+`"}`).Want(201),
		"is_generic", "false", "owner_type_id", corporate.ID.String())
	list := d.Send("auditor", "GET", base+"/questionnaires?size=1", "").Want(200)
	want(t, list, "total", "2", "pages", "2", "page", "1", "size", "1")
	if !strings.Contains(list.Body, "for one") || strings.Contains(list.Body, "versions") {
		t.Errorf("newest first: %s", list.Body)
	}
	want(t, d.Send("auditor", "GET", base+"/questionnaires?page=9", "").Want(200), "items", "[]", "total", "2")
	for _, unknown := range []string{"nonsense", scalar.ID{9}.String()} {
		path := base + "/questionnaires/" + unknown
		d.Send("operator", "GET", path, "").Code(404, "QUESTIONNAIRE_NOT_FOUND")
		d.Send("operator", "PATCH", path, `{"name":"n"}`).Code(404, "QUESTIONNAIRE_NOT_FOUND")
		d.Send("operator", "POST", path+"/versions", draft).Code(404, "QUESTIONNAIRE_NOT_FOUND")
		d.Send("operator", "POST", path+"/publish", "").Code(404, "QUESTIONNAIRE_NOT_FOUND")
		d.Send("operator", "POST", path+"/unpublish", "").Code(404, "QUESTIONNAIRE_NOT_FOUND")
	}
}

func TestEntitlements(t *testing.T) {
	d := newDesk(t)
	q := d.questionnaire("q")
	made := d.Send("operator", "POST", base+"/entitlements", `{"name":"retail","owner_type":"person","approval":"manual","questionnaires":[{"questionnaire_id":"`+q+`","position":1}]}`).Want(201)
	id := made.Text("id")
	want(t, made, "name", "retail", "description", "", "owner_type", "person", "approval", "manual", "video_identification", "false", "deadline_seconds", "",
		"opens_trading_account", "false", "questionnaires", `[{"entitlement_id":"`+id+`","position":1,"questionnaire_id":"`+q+`"}]`)
	one := base + "/entitlements/" + id
	want(t, d.Send("operator", "PATCH", one, `{"deadline_seconds":60,"approval":"automatic","opens_trading_account":true,"description":"d"}`).Want(200),
		"deadline_seconds", "60", "approval", "automatic", "opens_trading_account", "true", "name", "retail", "description", "d")
	want(t, d.Send("operator", "PATCH", one, `{"deadline_seconds":null,"questionnaires":[]}`).Want(200), "deadline_seconds", "", "questionnaires", "[]", "approval", "automatic")
	want(t, d.Send("auditor", "GET", one, "").Want(200), "name", "retail", "approval", "automatic")
	want(t, d.Send("auditor", "GET", base+"/entitlements", "").Want(200), "total", "1")
	other := scalar.ID{9}.String()
	d.Send("operator", "POST", base+"/entitlements", `{"name":"n","owner_type":"person","approval":"manual","questionnaires":[{"questionnaire_id":"`+other+`","position":1}]}`).Code(400, "INVALID_QUESTIONNAIRES")
	d.Send("operator", "POST", base+"/entitlements", `{"name":"n","owner_type":"corporate","approval":"manual","questionnaires":[{"questionnaire_id":"`+q+`","position":1}]}`).Code(400, "INVALID_QUESTIONNAIRES")
	for _, unknown := range []string{"nonsense", other} {
		d.Send("operator", "GET", base+"/entitlements/"+unknown, "").Code(404, "ENTITLEMENT_NOT_FOUND")
		d.Send("operator", "PATCH", base+"/entitlements/"+unknown, `{"name":"n"}`).Code(404, "ENTITLEMENT_NOT_FOUND")
	}
}

const because = `{"code":"C_1","reason":"why not","internal_reason":"they sing"}`

// TestActions walks a case through every action, in states that allow it and in one that does not.
func TestActions(t *testing.T) {
	d := newDesk(t)
	q := d.questionnaire("q")
	entitlement := d.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual","questionnaires":[{"questionnaire_id":"`+q+`","position":1}]}`)
	ann := d.owner("alpha", owner.PersonType, 1)
	id := d.trigger(ann, "alpha", entitlement)
	act := func(trigger, action, body string) *tradingtest.Reply {
		return d.Send("operator", "POST", base+"/entitlement_triggers/"+trigger+"/"+action, body)
	}
	act(id, "release", because).Code(409, "TRANSITION_NOT_ALLOWED")
	act(id, "approve", because).Code(409, "REQUIREMENTS_OPEN")
	d.Send("operator", "POST", base+"/questionnaires/"+q+"/unpublish", "").Code(409, "QUESTIONNAIRE_REQUIRED")
	blocked := act(id, "block", because).Want(200)
	want(t, blocked, "id", id, "entitlement_id", entitlement, "status", "blocked", "result", "", "owner_type", "person", "owner_id", ann.ID.String(),
		"created_at", "2026-03-31T08:00:00.000000Z")
	if strings.Contains(blocked.Body, "they sing") || strings.Contains(blocked.Body, `"result"`) {
		t.Errorf("the trigger: %s", blocked.Body)
	}
	act(id, "approve", because).Code(409, "TRANSITION_NOT_ALLOWED")
	want(t, act(id, "release", because).Want(200), "status", "ongoing")
	d.answer(ann, "alpha", q)
	want(t, act(id, "request_information", `{"code":"MORE","reason":"more","questionnaire_ids":["`+q+`"]}`).Want(200), "status", "ongoing")
	act(id, "approve", because).Code(409, "REQUIREMENTS_OPEN")
	d.answer(ann, "alpha", q)
	act(id, "complete_video_identification", `{"code":"V","reason":"seen","outcome":"passed"}`).Code(409, "TRANSITION_NOT_ALLOWED")
	want(t, act(id, "request_video_identification", because).Want(200), "status", "ongoing")
	want(t, act(id, "complete_video_identification", `{"code":"V","reason":"seen","outcome":"passed","external_reference":"V-1"}`).Want(200), "status", "ongoing")
	want(t, act(id, "approve", because).Want(200), "status", "finished", "result", "success")
	act(id, "cancel", because).Code(409, "TRANSITION_NOT_ALLOWED")

	for action, outcome := range map[string]string{"reject": "finished", "cancel": "canceled", "terminate": "terminated", "fail": "failed"} {
		next := d.trigger(ann, "alpha", entitlement)
		first := d.Send("operator", "POST", base+"/entitlement_triggers/"+next+"/"+action, because, "Idempotency-Key", action).Want(200)
		want(t, first, "status", outcome, "result", "fail")
		if again := d.Send("operator", "POST", base+"/entitlement_triggers/"+next+"/"+action, because, "Idempotency-Key", action).Want(200); again.Body != first.Body {
			t.Errorf("%s again %s, first %s", action, again.Body, first.Body)
		}
		d.Send("operator", "POST", base+"/entitlement_triggers/"+next+"/"+action, strings.Replace(because, "why", "how", 1), "Idempotency-Key", action).Code(409, "IDEMPOTENCY_KEY_REUSED")
	}
	failed := d.trigger(ann, "alpha", entitlement)
	act(failed, "request_video_identification", because).Want(200)
	want(t, act(failed, "complete_video_identification", `{"code":"V","reason":"not seen","outcome":"failed"}`).Want(200), "status", "finished", "result", "fail")

	act("nonsense", "block", because).Code(404, "ENTITLEMENT_TRIGGER_NOT_FOUND")
	act(scalar.ID{9}.String(), "block", because).Code(404, "ENTITLEMENT_TRIGGER_NOT_FOUND")
	act(id, "start", because).Want(404)
	d.sealedOnly("they sing", "why not", "V-1", "not seen")
}

// TestActionWithoutHint: a trigger that the node's fold has not come to is acted on all the same.
func TestActionWithoutHint(t *testing.T) {
	d := newDesk(t)
	entitlement := d.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual"}`)
	ann := d.owner("alpha", owner.PersonType, 1)
	release := d.Onboarding.HoldFold()
	id := d.trigger(ann, "alpha", entitlement)
	done := make(chan *tradingtest.Reply, 1)
	go func() { done <- d.Send("operator", "POST", base+"/entitlement_triggers/"+id+"/block", because) }()
	select {
	case early := <-done:
		t.Fatalf("before the fold had come to it: %s", early.Body)
	default:
	}
	release()
	want(t, (<-done).Want(200), "status", "blocked")
}

// sealedOnly wants texts to stand nowhere in the log.
func (d *desk) sealedOnly(texts ...string) {
	d.T.Helper()
	for _, e := range d.Onboarding.Entries() {
		for _, text := range texts {
			if strings.Contains(string(e.Value), text) {
				d.T.Errorf("the log holds %q in clear: %s", text, e.Value)
			}
		}
	}
}

// TestErasure: an owner is held, restricted, and erased once the hold is released; the certificate says how far it is.
func TestErasure(t *testing.T) {
	for _, tt := range []owner.Type{owner.PersonType, owner.CorporateType} {
		t.Run(string(tt), func(t *testing.T) {
			d := newDesk(t)
			ref := d.owner("alpha", tt, 1)
			one := base + "/" + string(tt) + "s/" + ref.ID.String()
			unknown := strings.ToUpper(string(tt)) + "_NOT_FOUND"
			d.Send("auditor", "GET", one+"/erasure", "").Code(404, "ERASURE_NOT_FOUND")
			d.Send("operator", "POST", one+"/release-hold", `{"reason":"r"}`).Code(409, "OWNER_NOT_HELD")
			want(t, d.Send("operator", "PUT", base+"/retention", `{"seconds":60}`).Want(200), "seconds", "60")
			want(t, d.Send("operator", "POST", one+"/hold", `{"reason":"a court"}`).Want(200), "held", "true", "reason", "a court", "owner_type", string(tt), "owner_id", ref.ID.String())
			d.Send("operator", "POST", one+"/hold", `{"reason":"a court"}`).Code(409, "OWNER_HELD")
			asked := d.Send("operator", "POST", one+"/erase", `{"reason":"they left"}`, "Idempotency-Key", "e").Want(200)
			want(t, asked, "requested_by", "operator", "reason", "they left", "erased_at", "", "key_id", "", "retain_until", "2026-03-31T08:01:00.000000Z",
				"positions", fmt.Sprintf(`["%s"]`, asked.Header.Get("X-Log-Position")))
			if again := d.Send("operator", "POST", one+"/erase", `{"reason":"they left"}`, "Idempotency-Key", "e").Want(200); again.Body != asked.Body {
				t.Errorf("again %s, first %s", again.Body, asked.Body)
			}
			d.Send("operator", "POST", one+"/erase", `{"reason":"they left"}`).Code(409, "OWNER_RESTRICTED")
			d.Advance(61 * scalar.Second)
			d.Onboarding.Drain()
			want(t, d.Send("auditor", "GET", one+"/erasure", "").Want(200), "erased_at", "")
			want(t, d.Send("operator", "POST", one+"/release-hold", `{"reason":"done"}`).Want(200), "held", "false", "reason", "done")
			d.Onboarding.Drain()
			want(t, d.Send("auditor", "GET", one+"/erasure", "").Want(200), "erased_at", "2026-03-31T08:01:01.000000Z", "reason", "they left", "key_id", "")
			d.submit(decide.Actor{System: "process"}, &onboarding.ConfirmKeyDestroyed{Ref: ref, KeyID: "abc"})
			end := d.Send("auditor", "GET", one+"/erasure", "").Want(200)
			want(t, end, "key_id", "abc", "key_destroyed_at", "2026-03-31T08:01:01.000000Z")
			if strings.Count(end.Text("positions"), "onboarding/0@") != 3 {
				t.Errorf("the records that say so: %s", end.Body)
			}
			d.Send("operator", "POST", one+"/erase", `{"reason":"r"}`).Code(404, unknown)
			for _, id := range []string{"nonsense", scalar.ID{}.String(), scalar.ID{9}.String()} {
				path := base + "/" + string(tt) + "s/" + id
				d.Send("auditor", "GET", path+"/erasure", "").Code(404, unknown)
				for _, action := range []string{"/erase", "/hold", "/release-hold"} {
					d.Send("operator", "POST", path+action, `{"reason":"r"}`).Code(404, unknown)
				}
			}
			d.sealedOnly("they left", "a court")
		})
	}
}

// TestRestrictedOwner: an operator changes nothing any more of an owner that is to be erased.
func TestRestrictedOwner(t *testing.T) {
	d := newDesk(t)
	entitlement := d.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual"}`)
	ann := d.owner("alpha", owner.PersonType, 1)
	id := d.trigger(ann, "alpha", entitlement)
	d.Send("operator", "POST", base+"/persons/"+ann.ID.String()+"/erase", `{"reason":"r"}`).Want(200)
	d.Send("operator", "POST", base+"/entitlement_triggers/"+id+"/block", because).Code(409, "OWNER_RESTRICTED")
	d.Send("operator", "POST", base+"/questionnaires", `{"name":"q","owner_type":"person","owner_type_id":"`+ann.ID.String()+`"}`).Code(409, "OWNER_RESTRICTED")
	want(t, d.Send("auditor", "GET", base+"/retention", "").Want(200), "seconds", "157852800")
}

// TestQuestionnaireOfAnErasedOwner: nothing of it changes. A request from before the erasure gets its answer again, and the
// questionnaire can be taken from those who would answer it.
func TestQuestionnaireOfAnErasedOwner(t *testing.T) {
	d := newDesk(t)
	ann := d.owner("alpha", owner.PersonType, 1)
	q := base + "/questionnaires/" + d.make("/questionnaires", `{"name":"q","owner_type":"person","owner_type_id":"`+ann.ID.String()+`"}`)
	const draft = `{"questions":[{"label":"Why","value":"why","question_type":"text","position":1}]}`
	first := d.Send("operator", "POST", q+"/versions", draft, "Idempotency-Key", "k").Want(201)
	d.Send("operator", "POST", q+"/publish", "").Want(200)
	d.Send("operator", "PUT", base+"/retention", `{"seconds":0}`).Want(200)
	d.Send("operator", "POST", base+"/persons/"+ann.ID.String()+"/erase", `{"reason":"r"}`).Want(200)
	d.Onboarding.Drain()
	tip := d.Onboarding.Tip()
	d.Send("operator", "PATCH", q, `{"name":"other"}`).Code(409, "OWNER_ERASED")
	d.Send("operator", "POST", q+"/versions", draft).Code(409, "OWNER_ERASED")
	d.Send("operator", "POST", q+"/publish", `{"version_number":1}`).Code(409, "OWNER_ERASED")
	d.Send("operator", "POST", q+"/versions", `{}`).Code(400, "VALIDATION_FAILED")
	if again := d.Send("operator", "POST", q+"/versions", draft, "Idempotency-Key", "k").Want(201); again.Body != first.Body || d.Onboarding.Tip() != tip {
		t.Errorf("again: %s, first %s", again.Body, first.Body)
	}
	want(t, d.Send("operator", "POST", q+"/unpublish", "").Want(200), "is_published", "false")
}
