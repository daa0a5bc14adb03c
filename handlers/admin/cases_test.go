package admin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestCases: the desk's queue over all tenants, and one case with all that was said about it.
func TestCases(t *testing.T) {
	d := newDesk(t)
	q := d.questionnaire("q")
	first := d.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual","questionnaires":[{"questionnaire_id":"`+q+`","position":1}]}`)
	second := d.make("/entitlements", `{"name":"pro","owner_type":"person","approval":"manual","deadline_seconds":60}`)
	ann, bob := d.owner("alpha", owner.PersonType, 1), d.owner("beta", owner.PersonType, 2)
	oldest, middle, newest := d.trigger(ann, "alpha", first), d.trigger(bob, "beta", first), d.trigger(bob, "beta", second)
	d.Send("operator", "POST", base+"/entitlement_triggers/"+middle+"/cancel", because).Want(200)

	list := func(query string, ids ...string) {
		t.Helper()
		shown := d.Send("auditor", "GET", base+"/entitlement_triggers"+query, "").Want(200)
		var parts []string
		for _, id := range ids {
			parts = append(parts, `"id":"`+id+`"`)
		}
		if !ordered(shown.Body, parts...) || strings.Count(shown.Body, `"created_at"`) != len(ids) {
			t.Errorf("%s: %s", query, shown.Body)
		}
	}
	list("", newest, middle, oldest)
	list("?sort=asc", oldest, middle, newest)
	list("?status=pending|ongoing|blocked&sort=asc", oldest, newest)
	list("?status=canceled", middle)
	list("?tenant=alpha", oldest)
	list("?tenant=beta&status=ongoing", newest)
	list("?owner_id="+bob.ID.String(), newest, middle)
	list("?entitlement_id="+first+"&sort=asc", oldest, middle)
	list("?size=1&page=2", middle)
	list("?tenant=gamma")
	want(t, d.Send("auditor", "GET", base+"/entitlement_triggers?size=2", "").Want(200), "total", "3", "pages", "2", "size", "2", "page", "1")
	want(t, d.Send("auditor", "GET", base+"/entitlement_triggers?tenant=beta&status=ongoing", "").Want(200), "items",
		`[{"created_at":"2026-03-31T08:00:00.000000Z","deadline":"2026-03-31T08:01:00.000000Z","entitlement_id":"`+second+`","id":"`+newest+`","owner_id":"`+bob.ID.String()+
			`","owner_type":"person","status":"ongoing","tenant":"beta","updated_at":"2026-03-31T08:00:00.000000Z"}]`)

	d.Send("operator", "POST", base+"/entitlement_triggers/"+oldest+"/request_information", `{"code":"MORE","reason":"tell more","internal_reason":"they sing","questionnaire_ids":["`+q+`"]}`).Want(200)
	d.Send("operator", "POST", base+"/entitlement_triggers/"+oldest+"/request_video_identification", because).Want(200)
	d.Send("operator", "POST", base+"/entitlement_triggers/"+oldest+"/complete_video_identification", `{"code":"V","reason":"seen","outcome":"passed","external_reference":"V-1"}`).Want(200)
	one := d.Send("operator", "GET", base+"/entitlement_triggers/"+oldest, "").Want(200)
	want(t, one, "id", oldest, "tenant", "alpha", "status", "ongoing", "deadline", "",
		"pending_requirements", `[{"pending_questionnaire_ids":["`+q+`"],"reason":"retail"},{"pending_questionnaire_ids":["`+q+`"],"reason":"tell more"}]`)
	if !ordered(one.Text("timeline"), `"actor":"somebody"`, `"actor_kind":"client"`, `"action":"start"`, `"actor":"operator"`, `"internal_reason":"they sing"`, `"reason":"tell more"`,
		`"external_reference":"V-1"`, `"outcome":"passed"`) {
		t.Errorf("the timeline: %s", one.Text("timeline"))
	}
	audited := d.Send("auditor", "GET", base+"/entitlement_triggers/"+oldest, "").Want(200)
	if strings.Contains(audited.Body, "they sing") || strings.Contains(audited.Body, "V-1") || !strings.Contains(audited.Body, "tell more") {
		t.Errorf("an auditor sees: %s", audited.Body)
	}
	for _, unknown := range []string{"nonsense", scalar.ID{9}.String()} {
		d.Send("auditor", "GET", base+"/entitlement_triggers/"+unknown, "").Code(404, "ENTITLEMENT_TRIGGER_NOT_FOUND")
	}
	if got := d.Send("auditor", "GET", base+"/entitlement_triggers?status=open&sort=up&owner_id=x&colour=red", "").Want(400).Faults(); len(got) != 4 {
		t.Errorf("faults %v", got)
	}

	// Of an owner who is restricted nobody but operators is told, in the list as of the one case.
	d.Send("operator", "POST", base+"/persons/"+ann.ID.String()+"/erase", `{"reason":"r"}`).Want(200)
	d.Send("auditor", "GET", base+"/entitlement_triggers/"+oldest, "").Code(404, "ENTITLEMENT_TRIGGER_NOT_FOUND")
	list("", newest, middle)
	if all := d.Send("operator", "GET", base+"/entitlement_triggers", "").Want(200); !ordered(all.Body, newest, middle, oldest) {
		t.Errorf("an operator sees: %s", all.Body)
	}
}

// TestCasesOfErasedOwnersStay: what was decided about somebody who is erased, operators and auditors go on to see; what people wrote
// about it is gone, and the owner is not there.
func TestCasesOfErasedOwnersStay(t *testing.T) {
	d := newDesk(t)
	entitlement := d.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual"}`)
	ann := d.owner("alpha", owner.PersonType, 1)
	trigger := d.trigger(ann, "alpha", entitlement)
	one := base + "/entitlement_triggers/" + trigger
	d.Send("operator", "POST", one+"/reject", `{"code":"NO","reason":"we told them","internal_reason":"they sing"}`).Want(200)
	d.Send("operator", "PUT", base+"/retention", `{"seconds":0}`).Want(200)
	d.Send("operator", "POST", base+"/persons/"+ann.ID.String()+"/erase", `{"reason":"r"}`).Want(200)
	d.Onboarding.Drain()
	check := func() {
		t.Helper()
		for _, user := range []string{"operator", "auditor"} {
			want(t, d.Send(user, "GET", base+"/entitlement_triggers?owner_id="+ann.ID.String(), "").Want(200), "total", "1")
			shown := d.Send(user, "GET", one, "").Want(200)
			want(t, shown, "status", "finished", "result", "fail", "pending_requirements", "[]")
			if !ordered(shown.Body, `"action":"reject"`, `"code":"NO"`) || strings.Contains(shown.Body, "we told") || strings.Contains(shown.Body, "they sing") {
				t.Errorf("%s sees %s", user, shown.Body)
			}
			d.Send(user, "GET", base+"/persons/"+ann.ID.String(), "").Code(404, "PERSON_NOT_FOUND")
			want(t, d.Send(user, "GET", base+"/persons/"+ann.ID.String()+"/erasure", "").Want(200), "erased_at", "2026-03-31T08:00:00.000000Z")
		}
	}
	check()
	if err := d.Owners.Destroy(t.Context(), ann.String()); err != nil {
		t.Fatal(err)
	}
	check()
}

// TestOwnersOfAllTenants: operators read what clients read, of every tenant and of who is restricted too, and problems have this
// interface's shape.
func TestOwnersOfAllTenants(t *testing.T) {
	d := newDesk(t)
	q := d.questionnaire("q")
	entitlement := d.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual","questionnaires":[{"questionnaire_id":"`+q+`","position":1}]}`)
	ann, bob := d.owner("alpha", owner.PersonType, 1), d.owner("beta", owner.PersonType, 2)
	d.owner("beta", owner.CorporateType, 3)
	d.trigger(ann, "alpha", entitlement)
	d.answer(ann, "alpha", q)
	want(t, d.Send("auditor", "GET", base+"/persons?size=1", "").Want(200), "total", "2", "pages", "2")
	want(t, d.Send("auditor", "GET", base+"/corporates", "").Want(200), "total", "1")
	for query, wanted := range map[string][]string{"?tenant=alpha": {"alpha"}, "?tenant=beta&state=active": {"beta"}, "?state=restricted": {}, "?state=active|restricted": {"beta", "alpha"},
		"?tenant=nobody": {}} {
		var shown struct {
			Total int `json:"total"`
			Items []struct {
				Tenant string `json:"tenant"`
			} `json:"items"`
		}
		d.Send("auditor", "GET", base+"/persons"+query, "").Want(200).JSON(&shown)
		tenants := []string{}
		for _, item := range shown.Items {
			tenants = append(tenants, item.Tenant)
		}
		if !slices.Equal(tenants, wanted) || shown.Total != len(wanted) {
			t.Errorf("%s: %v of %d, want %v", query, tenants, shown.Total, wanted)
		}
	}
	if got := d.Send("auditor", "GET", base+"/corporates?state=erased&tenant=", "").Want(400).Faults(); len(got) == 0 {
		t.Errorf("faults %v", got)
	}
	for _, list := range []string{"/persons", "/corporates", "/entitlement_triggers"} {
		if got := d.Send("auditor", "GET", base+list+"?tenant=alpha|beta", "").Want(400).Faults(); !slices.Equal(got, []string{"tenant INVALID_VALUE"}) {
			t.Errorf("%s: faults %v", list, got)
		}
	}
	one := base + "/persons/" + ann.ID.String()
	want(t, d.Send("auditor", "GET", one, "").Want(200), "id", ann.ID.String(), "state", "active", "external_id", "x", "tenant", "alpha")
	if own := d.Send("auditor", "GET", "/api/v1/persons/"+ann.ID.String(), "").Want(200); strings.Contains(own.Body, "tenant") {
		t.Errorf("what clients are shown has grown: %s", own.Body)
	}
	want(t, d.Send("auditor", "GET", one+"/responses", "").Want(200), "total", "1")
	want(t, d.Send("auditor", "GET", one+"/entitlement_triggers", "").Want(200), "total", "1")
	if open := d.Send("auditor", "GET", one+"/pending_requirements", "").Want(200); open.Body != "[]" {
		t.Errorf("what is open: %s", open.Body)
	}
	d.Send("operator", "POST", one+"/erase", `{"reason":"r"}`).Want(200)
	d.Send("operator", "GET", one, "").Want(200)
	d.Send("auditor", "GET", one, "").Code(404, "PERSON_NOT_FOUND")
	want(t, d.Send("operator", "GET", base+"/persons?state=restricted&tenant=alpha", "").Want(200), "total", "1")
	want(t, d.Send("auditor", "GET", base+"/persons?state=restricted", "").Want(200), "total", "0", "items", "[]")
	want(t, d.Send("operator", "GET", base+"/persons/"+bob.ID.String(), "").Want(200), "state", "active")
	d.Send("operator", "GET", base+"/persons/"+scalar.ID{9}.String(), "").Code(404, "PERSON_NOT_FOUND")
	d.Send("operator", "GET", base+"/corporates/"+ann.ID.String(), "").Code(404, "CORPORATE_NOT_FOUND")
	d.Send("operator", "GET", base+"/persons/nonsense", "").Code(400, "VALIDATION_FAILED")
	d.Send("operator", "GET", base+"/persons?colour=red", "").Code(400, "VALIDATION_FAILED")
}
