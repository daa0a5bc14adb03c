package admin_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// TestDue checks that the operator sees what waits and what was set aside, in their order, and can put that back.
func TestDue(t *testing.T) {
	v := tradingtest.New(t)
	want(t, v.Send("operator", "GET", base+"/due", "").Want(200), "items", "[]", "total", "0")
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"D1"}`).Want(201)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"D2"}`).Want(201)
	v.Send("broker-a", "POST", "/v1/customers/D1/cancel-all-after", `{"timeout_seconds":10}`).Want(200)
	v.Send("broker-a", "POST", "/v1/customers/D2/cancel-all-after", `{"timeout_seconds":20}`).Want(200)
	shown := func(query string) string {
		t.Helper()
		return v.Send("auditor", "GET", base+"/due"+query, "").Want(200).Body
	}
	if list := shown(""); !ordered(list, `"entry":"cancel_all_after/D1"`, `"status":"waiting"`, `"urgency":"alternating"`, `"entry":"cancel_all_after/D2"`, `"total":2`) {
		t.Errorf("what waits: %s", list)
	}
	v.Advance(scalar.TimeOf(time.Unix(10, 0)))
	v.Trading.SetAside("it panicked")
	if list := shown(""); !ordered(list, `"entry":"cancel_all_after/D1"`, `"status":"set_aside"`, `"error":"it panicked"`, `"entry":"cancel_all_after/D2"`, `"total":2`) {
		t.Errorf("what was set aside: %s", list)
	}
	for page, entry := range map[string]string{"1": "D1", "2": "D2"} {
		if list := shown("?size=1&page=" + page); strings.Count(list, `"entry"`) != 1 || !strings.Contains(list, entry) {
			t.Errorf("page %s: %s", page, list)
		}
	}
	path := base + "/due/" + url.PathEscape("cancel_all_after/D1") + "/put-back"
	v.Send("broker-a", "POST", path, "").Code(403, "FORBIDDEN")
	v.Send("operator", "POST", base+"/due/nothing/put-back", "").Code(404, "UNKNOWN_DUE_ENTRY")
	v.Send("operator", "POST", path+"?journal=identity", "").Code(404, "UNKNOWN_DUE_ENTRY")
	v.Send("operator", "POST", path+"?journal=nothing", "").Code(404, "UNKNOWN_JOURNAL")
	want(t, v.Send("operator", "POST", path, "", "Idempotency-Key", "k").Want(200), "journal", "trading", "entry", "cancel_all_after/D1")
	want(t, v.Send("operator", "POST", path, "", "Idempotency-Key", "k").Want(200), "journal", "trading", "entry", "cancel_all_after/D1")
	v.Send("operator", "POST", path, "").Code(404, "UNKNOWN_DUE_ENTRY")
	if list := shown(""); strings.Contains(list, "set_aside") {
		t.Errorf("once it was put back: %s", list)
	}
}

// TestDueOnboarding: what is due about owners is shown and put back like what is due in the venue, and an entry's name says
// which journal it is of.
func TestDueOnboarding(t *testing.T) {
	d := newDesk(t)
	entitlement := d.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual","deadline_seconds":60}`)
	entry := "trigger_deadline/" + d.trigger(d.owner("alpha", owner.PersonType, 1), "alpha", entitlement)
	want(t, d.Send("auditor", "GET", base+"/due", "").Want(200), "total", "1",
		"items", `[{"due":"2026-03-31T08:01:00.000000Z","entry":"`+entry+`","error":null,"journal":"onboarding","status":"waiting","urgency":"alternating"}]`)
	d.Advance(61 * scalar.Second)
	d.Onboarding.SetAside("it panicked")
	path := base + "/due/" + url.PathEscape(entry) + "/put-back"
	for range 2 { // the second time it is not set aside any more
		want(t, d.Send("operator", "POST", path, "", "Idempotency-Key", "k").Want(200), "journal", "onboarding", "entry", entry)
	}
}

func ordered(text string, parts ...string) bool {
	for _, p := range parts {
		_, after, ok := strings.Cut(text, p)
		if !ok {
			return false
		}
		text = after
	}
	return true
}

// TestActivateRules checks that rules are activated once every node knows them, and one after the other.
func TestActivateRules(t *testing.T) {
	v := tradingtest.New(t)
	v.Nodes = []admin.Node{{Name: "http://a", Rules: map[string]int{"trading": 7}}, {Name: "http://b", Rules: map[string]int{"trading": 6}},
		{Name: "http://c", Err: errors.New("no answer")}}
	refused := v.Send("operator", "POST", base+"/rules/trading", `{"rules":7}`).Code(409, "RULES_NOT_KNOWN")
	if !strings.Contains(refused.Body, "http://b (knows 6), http://c (does not answer)") || strings.Contains(refused.Body, "http://a") {
		t.Errorf("who does not know them: %s", refused.Body)
	}
	v.Nodes = v.Nodes[:1]
	v.Send("operator", "POST", base+"/rules/trading", `{"rules":1}`).Code(409, "RULES_NOT_NEXT")
	v.Send("operator", "POST", base+"/rules/trading", `{"rules":7}`).Code(422, "RULES_NOT_SUPPORTED") // by the owner's build, whatever it said
	v.Send("operator", "POST", base+"/rules/nothing", `{"rules":2}`).Code(404, "UNKNOWN_JOURNAL")
	v.Send("operator", "POST", base+"/rules/onboarding", `{"rules":1}`).Code(409, "RULES_NOT_KNOWN")
	v.Nodes = []admin.Node{{Name: "http://a", Rules: map[string]int{"trading": 2, "identity": 2}}}
	v.Send("operator", "POST", base+"/rules/identity", `{"rules":3}`).Code(409, "RULES_NOT_KNOWN")
	v.Send("operator", "POST", base+"/rules/identity", `{"rules":1}`).Code(409, "RULES_NOT_NEXT")
	v.Nodes[0].Rules["identity"] = 6
	v.Send("operator", "POST", base+"/rules/identity", `{"rules":6}`).Code(422, "RULES_NOT_SUPPORTED")
	v.Send("operator", "POST", base+"/rules/trading", `{}`).Code(400, "VALIDATION_FAILED")
	v.Send("auditor", "POST", base+"/rules/trading", `{"rules":5}`).Code(403, "FORBIDDEN")
}
