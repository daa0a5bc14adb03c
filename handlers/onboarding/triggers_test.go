package onboarding_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/owner"
)

// act has an operator do something about a trigger, and what follows be done.
func (h *house) act(trigger, action, more string) {
	h.T.Helper()
	h.Send("operator", "POST", admin+"/entitlement_triggers/"+trigger+"/"+action, `{"code":"BECAUSE","reason":"You are told so","internal_reason":"We know more"`+more+`}`).Want(200)
	h.Onboarding.Drain()
}

// TestTriggers: a case of each type of owner from its beginning to its end.
func TestTriggers(t *testing.T) {
	h := newHouse(t)
	for _, of := range []struct {
		owner.Type
		path string
	}{{owner.PersonType, h.person("p-1")}, {owner.CorporateType, h.corporate("c-1")}} {
		q := h.questionnaire("KYC", of.Type, oneText, "")
		entitlement := h.entitlement(of.Type, `,"approval":"automatic"`, q)
		triggers, entry := of.path+"/entitlement_triggers", `{"entitlement_id":"`+entitlement+`"}`
		made := h.Send("broker-a", "POST", triggers, entry, "Idempotency-Key", string(of.Type)).Want(201)
		id, ref := made.Text("id"), h.refOf(of.path)
		shown := func(status string) string {
			return fmt.Sprintf(`{"id":%q,"entitlement_id":%q,"status":%s,"owner_type":%q,"owner_id":%q,"created_at":"2026-03-31T08:00:00.000000Z"}`, id, entitlement, status, ref.Type, ref.ID)
		}
		if made.Body != shown(`"pending"`) {
			t.Errorf("got  %s\nwant %s", made.Body, shown(`"pending"`))
		}
		h.Onboarding.Drain()
		if got := h.Send("broker-a", "GET", triggers+"/"+id, "").Want(200); got.Body != shown(`"ongoing"`) {
			t.Errorf("got  %s\nwant %s", got.Body, shown(`"ongoing"`))
		}
		h.Send("broker-a", "POST", triggers, entry).Detail(409, "ENTITLEMENT_TRIGGER_ACTIVE")
		if again := h.Send("broker-a", "POST", triggers, entry, "Idempotency-Key", string(of.Type)).Want(201); again.Body != made.Body {
			t.Errorf("again %s, first %s", again.Body, made.Body)
		}
		if got, want := h.Send("broker-a", "GET", of.path+"/pending_requirements", "").Want(200).Body, `[{"reason":"Trading","pending_questionnaire_ids":["`+q.id+`"]}]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		h.Send("broker-a", "POST", of.path+"/questionnaires/"+q.id+"/response", q.text("x")).Want(201)
		ended := shown(`"finished","result":"success"`)
		if got := h.Send("broker-a", "GET", triggers+"/"+id, "").Want(200); got.Body != ended {
			t.Errorf("got  %s\nwant %s", got.Body, ended)
		}
		if got := h.Send("broker-a", "GET", of.path+"/pending_requirements", "").Want(200).Body; got != `[]` {
			t.Errorf("got %s", got)
		}
		second := h.make("broker-a", triggers, entry)
		list := h.Send("broker-a", "GET", triggers, "").Want(200)
		same(t, "newest first", ids(list.Items()), []string{second, id})
		for query, want := range map[string]string{"": `"total":2}`, "?size=1": `"total":2}`, "?page=2": `"items":[],"total":2}`} {
			got := h.Send("broker-a", "GET", triggers+query, "").Want(200)
			if len(got.Fields()) != 2 || !strings.HasSuffix(got.Body, want) {
				t.Errorf("%s: %s", query, got.Body)
			}
		}
		same(t, "the second page", ids(h.Send("broker-a", "GET", triggers+"?page=2&size=1", "").Want(200).Items()), []string{id})
	}
}

// TestFaultsOfTriggers: what does not exist, is for others, or is no id.
func TestFaultsOfTriggers(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	of := h.entitlement(owner.CorporateType, `,"approval":"manual"`)
	triggers := path + "/entitlement_triggers"
	h.Send("broker-a", "POST", triggers, `{"entitlement_id":"`+nothing+`"}`).Detail(404, "ENTITLEMENT_NOT_FOUND")
	if got := h.Send("broker-a", "POST", triggers, `{"entitlement_id":"`+of+`"}`).Want(422).Body; got != `{"detail":[{"type":"value_error","loc":["body","entitlement_id"],`+
		`"msg":"Value error, the entitlement is for another type of owner","input":"`+of+`"}]}` {
		t.Errorf("got %s", got)
	}
	for body, want := range map[string]string{`{}`: "missing body.entitlement_id", `{"entitlement_id":null}`: "missing body.entitlement_id", `{"entitlement_id":"x"}`: "uuid_parsing body.entitlement_id",
		`{"entitlement_id":5}`: "uuid_type body.entitlement_id", `{"entitlement_id":"` + of + `","x":1}`: "extra_forbidden body.x"} {
		same(t, body, h.Send("broker-a", "POST", triggers, body).Details(), []string{want})
	}
	h.Send("broker-a", "GET", triggers+"/"+nothing, "").Detail(404, "ENTITLEMENT_TRIGGER_NOT_FOUND")
	h.Send("broker-a", "GET", triggers+"/"+nothing+"/timeline", "").Detail(404, "ENTITLEMENT_TRIGGER_NOT_FOUND")
	same(t, "ids that are none", h.Send("broker-a", "GET", api+"/persons/x/entitlement_triggers/y?z=1", "").Details(),
		[]string{"uuid_parsing path.person_id", "uuid_parsing path.trigger_id", "extra_forbidden query.z"})
}

// TestPendingRequirements: one element for each reason with something missing, oldest first, over all open triggers; what an
// operator wrote is opened for the tenant.
func TestPendingRequirements(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	kyc, more := h.questionnaire("KYC", owner.PersonType, oneText, ""), h.questionnaire("More", owner.PersonType, oneText, "")
	first := h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+h.entitlement(owner.PersonType, `,"approval":"manual"`, kyc, more)+`"}`)
	second := h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+h.entitlement(owner.PersonType, `,"approval":"manual"`, more)+`"}`)
	h.act(second, "request_information", `,"questionnaire_ids":["`+kyc.id+`"]`)
	h.act(first, "request_video_identification", "")
	list := func() string { return h.Send("broker-a", "GET", path+"/pending_requirements", "").Want(200).Body }
	element := func(reason string, of ...*asked) string {
		ids := make([]string, len(of))
		for i, q := range of {
			ids[i] = `"` + q.id + `"`
		}
		return `{"reason":"` + reason + `","pending_questionnaire_ids":[` + strings.Join(ids, ",") + `]}`
	}
	all := func(elements ...string) string { return "[" + strings.Join(elements, ",") + "]" }
	asked, video := element("You are told so", kyc), element("video_identification")
	if got, want := list(), all(element("Trading", kyc, more), element("Trading", more), asked, video); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h.Send("broker-a", "POST", path+"/questionnaires/"+more.id+"/response", more.text("x")).Want(201)
	if got, want := list(), all(element("Trading", kyc), asked, video); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h.Send("broker-a", "POST", path+"/questionnaires/"+kyc.id+"/response", kyc.text("x")).Want(201)
	h.act(first, "complete_video_identification", `,"outcome":"passed"`)
	if got := list(); got != "[]" {
		t.Errorf("got %s", got)
	}
}

// TestTimelineOfADefinition: what receivers are told at the start of a case is in its timeline, and in no other's; what is open
// for two reasons is named once.
func TestTimelineOfADefinition(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	q := h.questionnaire("KYC", owner.PersonType, oneText, "")
	var ids []string
	for range 2 {
		ids = append(ids, h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+h.entitlement(owner.PersonType, `,"approval":"manual"`, q)+`"}`))
	}
	for _, id := range ids {
		var told []string
		for _, e := range h.Send("broker-a", "GET", path+"/entitlement_triggers/"+id+"/timeline", "").Want(200).List() {
			if name, some := e.Fields()["event_type"].(string); some {
				told = append(told, name)
			}
		}
		same(t, "what receivers were told", told, []string{"requirementsQuestionnaire"})
	}
	h.act(ids[0], "request_information", `,"questionnaire_ids":["`+q.id+`"]`)
	events := h.Send("broker-a", "GET", path+"/entitlement_triggers/"+ids[0]+"/timeline", "").Want(200).List()
	want(t, events[len(events)-2], "type", "entitlement_trigger.requirements_changed", "questionnaire_ids", `["`+q.id+`"]`)
}

// TestTimeline: every event of a case in its order. Who was behind it, and what he wrote for his like, operators are shown alone.
func TestTimeline(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	q := h.questionnaire("KYC", owner.PersonType, oneText, "")
	id := h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+h.entitlement(owner.PersonType, `,"approval":"manual"`)+`"}`)
	h.act(id, "request_information", `,"questionnaire_ids":["`+q.id+`"]`)
	h.act(id, "block", "")
	h.act(id, "release", "")
	h.act(id, "request_video_identification", "")
	h.act(id, "complete_video_identification", `,"outcome":"failed","external_reference":"V-1"`)
	timeline := path + "/entitlement_triggers/" + id + "/timeline"
	var got []string
	last := int64(0)
	for _, e := range h.Send("broker-a", "GET", timeline, "").Want(200).List() {
		f := e.Fields()
		got = append(got, strings.TrimSpace(fmt.Sprint(f["type"], " ", f["actor_kind"], " ", f["action"], " ", f["status"], " ", f["code"], " ", f["reason"], " ", f["event_type"])))
		for _, secret := range []string{"actor", "internal_reason", "external_reference"} {
			if _, there := f[secret]; there || strings.Contains(e.Body, "We know more") {
				t.Errorf("the tenant is shown %s", e.Body)
			}
		}
		if at := int64(f["sequence"].(float64)); at < last {
			t.Errorf("sequence %d after %d", at, last)
		} else {
			last = at
		}
	}
	const created, moved, changed, notice = "entitlement_trigger.created", "entitlement_trigger.moved", "entitlement_trigger.requirements_changed", "notice.given"
	told := " BECAUSE You are told so <nil>"
	same(t, "the tenant's form", got, []string{
		created + " client <nil> pending <nil> <nil> <nil>",
		moved + " system start ongoing <nil> <nil> <nil>",
		moved + " operator request_information ongoing" + told,
		changed + " system <nil> <nil> <nil> <nil> <nil>",
		notice + " system <nil> <nil> <nil> <nil> requirementsQuestionnaire",
		moved + " operator block blocked" + told,
		moved + " operator release ongoing" + told,
		moved + " operator request_video_identification ongoing" + told,
		changed + " system <nil> <nil> <nil> <nil> <nil>",
		notice + " system <nil> <nil> <nil> <nil> requirementsVid",
		moved + " operator complete_video_identification ongoing" + told,
		moved + " system reject finished VIDEO_IDENTIFICATION_FAILED The video identification failed. <nil>",
		notice + " system <nil> <nil> <nil> <nil> entitlementFailed",
	})
	events := h.Send("operator", "GET", timeline, "").Want(200).List()
	want(t, events[0], "actor", "broker-a", "internal_reason", "")
	want(t, events[2], "actor", "operator", "internal_reason", "We know more", "questionnaire_ids", `["`+q.id+`"]`)
	want(t, events[10], "outcome", "failed", "external_reference", "V-1")
	if f := h.Send("auditor", "GET", timeline, "").Want(200).List()[2].Fields(); f["internal_reason"] != nil {
		t.Errorf("the auditor is shown %v", f)
	}
}
