package onboarding_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

// body is one that the write at a route takes, or would.
func body(r rest.Route, questionnaire *asked, entitlement string) string {
	switch {
	case r.Method == http.MethodGet:
		return ""
	case strings.HasSuffix(r.Path, "/response"):
		return questionnaire.text("x")
	case strings.HasSuffix(r.Path, "/entitlement_triggers"):
		return `{"entitlement_id":"` + entitlement + `"}`
	case strings.HasSuffix(r.Path, "/persons"):
		return `{"external_id":"new","first_name":"A","last_name":"B"}`
	case strings.HasSuffix(r.Path, "/corporates"):
		return `{"external_id":"new","legal_name":"A"}`
	}
	return `{"external_id":"other"}`
}

// mine reports whether a route is of this package, and about one owner.
func mine(r rest.Route) bool {
	if strings.Contains(r.Path, "/documents") || strings.Contains(r.Path, "/export") || strings.Contains(r.Path, "/webhooks") {
		return false
	}
	return strings.HasPrefix(r.Path, api+"/") && (strings.Contains(r.Path, ":person_id") || strings.Contains(r.Path, ":corporate_id"))
}

// TestTenantsAreApart: on every route about an owner, another tenant's does not exist; who reads every tenant's does not write.
// Tokens for one trading account have no business here at all.
func TestTenantsAreApart(t *testing.T) {
	h := newHouse(t)
	of := map[owner.Type]string{owner.PersonType: h.person("p-1"), owner.CorporateType: h.corporate("c-1")}
	type belongings struct {
		questionnaire                  *asked
		entitlement, response, trigger string
	}
	all := make(map[owner.Type]belongings)
	for kind, path := range of {
		b := belongings{questionnaire: h.questionnaire("KYC", kind, oneText, "")}
		b.entitlement = h.entitlement(kind, `,"approval":"manual"`, b.questionnaire)
		b.trigger = h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+b.entitlement+`"}`)
		b.response = h.make("broker-a", path+"/questionnaires/"+b.questionnaire.id+"/response", b.questionnaire.text("x"))
		all[kind] = b
	}
	routes := 0
	for _, r := range h.Routes() {
		if !mine(r) {
			continue
		}
		routes++
		kind := owner.PersonType
		if strings.Contains(r.Path, ":corporate_id") {
			kind = owner.CorporateType
		}
		b := all[kind]
		id := h.refOf(of[kind]).ID.String()
		path := strings.NewReplacer(":person_id", id, ":corporate_id", id, ":questionnaire_id", b.questionnaire.id, ":response_id", b.response, ":trigger_id", b.trigger).Replace(r.Path)
		sent, code, before := body(r, b.questionnaire, b.entitlement), strings.ToUpper(string(kind))+"_NOT_FOUND", h.Onboarding.Tip()
		h.Send("broker-b", r.Method, path, sent).Detail(404, code)
		h.Send("broker-a", r.Method, strings.Replace(path, id, nothing, 1), sent).Detail(404, code)
		h.Send("client-o", r.Method, path, sent).Detail(403, "Forbidden")
		h.Send("reader-a", r.Method, path, sent).Detail(403, "Forbidden")
		for _, user := range []string{"operator", "auditor"} {
			if r.Method == http.MethodGet {
				h.Send(user, r.Method, path, "").Want(200)
			} else {
				h.Send(user, r.Method, path, sent).Detail(403, "Forbidden")
			}
		}
		if tip := h.Onboarding.Tip(); tip != before {
			t.Errorf("%s %s changed something", r.Method, r.Path)
		}
	}
	if routes < 22 {
		t.Errorf("%d routes", routes)
	}
	other := api + "/persons/" + h.make("broker-a", api+"/persons", `{"external_id":"p-9","first_name":"A","last_name":"B"}`)
	person := all[owner.PersonType]
	h.Send("broker-a", "GET", other+"/responses/"+person.response, "").Detail(404, "RESPONSE_NOT_FOUND")
	h.Send("broker-a", "GET", other+"/entitlement_triggers/"+person.trigger, "").Detail(404, "ENTITLEMENT_TRIGGER_NOT_FOUND")
	h.Send("broker-a", "GET", other+"/entitlement_triggers/"+person.trigger+"/timeline", "").Detail(404, "ENTITLEMENT_TRIGGER_NOT_FOUND")
}

// TestRestrictedAndErased: a restricted owner is there for operators only, with all that hangs on it; an erased one for nobody,
// and what its tenant called it may be used again.
func TestRestrictedAndErased(t *testing.T) {
	h := newHouse(t)
	path := api + "/persons/" + h.make("broker-a", api+"/persons", anna)
	id := h.refOf(path).ID.String()
	q := h.questionnaire("KYC", owner.PersonType, oneText, "")
	own := h.questionnaire("Own", owner.PersonType, oneText, `,"owner_type_id":"`+id+`"`)
	trigger := h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+h.entitlement(owner.PersonType, `,"approval":"manual"`, q)+`"}`)
	response := h.make("broker-a", path+"/questionnaires/"+q.id+"/response", q.text("x"))
	reads := []string{path, path + "/responses", path + "/responses/" + response, path + "/entitlement_triggers", path + "/entitlement_triggers/" + trigger,
		path + "/entitlement_triggers/" + trigger + "/timeline", path + "/entitlement_triggers/" + trigger + "/explain", path + "/pending_requirements",
		path + "/pending_requirements/explain", api + "/questionnaires/persons/" + id}
	hidden := func(users ...string) {
		t.Helper()
		for _, user := range users {
			for _, read := range reads {
				h.Send(user, "GET", read, "").Detail(404, "PERSON_NOT_FOUND")
			}
			h.Send(user, "GET", api+"/questionnaires/"+own.id, "").Detail(404, "QUESTIONNAIRE_NOT_FOUND")
			want(t, h.Send(user, "GET", api+"/persons", "").Want(200), "total", "0", "items", "[]")
		}
		h.Send("broker-a", "PATCH", path, `{"first_name":"B"}`).Detail(404, "PERSON_NOT_FOUND")
		h.Send("broker-a", "POST", path+"/questionnaires/"+q.id+"/response", q.text("x")).Detail(404, "PERSON_NOT_FOUND")
	}
	h.Send("operator", "PUT", admin+"/retention", `{"seconds":3600}`).Want(200)
	h.Send("operator", "POST", admin+"/persons/"+id+"/erase", `{"reason":"They asked for it"}`).Want(200)
	hidden("broker-a", "auditor")
	for _, read := range reads {
		h.Send("operator", "GET", read, "").Want(200)
	}
	want(t, h.Send("operator", "GET", path, "").Want(200), "state", "restricted", "first_name", "Anna")
	same(t, "operators", ids(h.Send("operator", "GET", api+"/persons", "").Want(200).Items()), []string{id})
	h.Send("broker-a", "POST", api+"/persons", anna).Detail(409, "EXTERNAL_ID_TAKEN")

	h.Advance(2 * scalar.Hour)
	h.Onboarding.Drain()
	hidden("operator")
	if err := h.Owners.Destroy(t.Context(), h.refOf(path).String()); err != nil {
		t.Fatal(err)
	}
	hidden("operator")
}

// TestARepeatedRegistration: a tenant that repeats a registration no longer sees an owner who was restricted or erased since.
func TestARepeatedRegistration(t *testing.T) {
	h := newHouse(t)
	again := func() *tradingtest.Reply {
		return h.Send("broker-a", "POST", api+"/persons", anna, "Idempotency-Key", "k")
	}
	id := again().Want(201).Text("id")
	want(t, again().Want(201), "id", id, "first_name", "Anna")
	h.Send("operator", "PUT", admin+"/retention", `{"seconds":3600}`).Want(200)
	h.Send("operator", "POST", admin+"/persons/"+id+"/erase", `{"reason":"They asked for it"}`).Want(200)
	again().Detail(404, "PERSON_NOT_FOUND")
	h.Advance(2 * scalar.Hour)
	h.Onboarding.Drain()
	again().Detail(404, "PERSON_NOT_FOUND")
}

// TestPositionsOfARepeatedRegistration: like the first one it waits for no position, and a 404 names what it is as of.
func TestPositionsOfARepeatedRegistration(t *testing.T) {
	h := newHouse(t)
	again := func() *tradingtest.Reply {
		return h.Send("broker-a", "POST", api+"/persons", anna, "Idempotency-Key", "k", operation.HeaderMinLogPosition, "none/0@1")
	}
	id := again().Want(201).Text("id")
	again().Want(201)
	h.Send("operator", "PUT", admin+"/retention", `{"seconds":3600}`).Want(200)
	h.Send("operator", "POST", admin+"/persons/"+id+"/erase", `{"reason":"They asked for it"}`).Want(200)
	hidden := again()
	hidden.Detail(404, "PERSON_NOT_FOUND")
	same(t, "position", hidden.Header[operation.HeaderLogPosition], []string{h.Onboarding.Tip().String()})
}

// TestAKeyThatIsGone: what can't be opened any more is as if it was not there, though the record that says so is still to come.
func TestAKeyThatIsGone(t *testing.T) {
	h := newHouse(t)
	path, other := h.person("p-1"), h.person("p-2")
	if err := h.Owners.Destroy(t.Context(), h.refOf(path).String()); err != nil {
		t.Fatal(err)
	}
	h.Send("broker-a", "GET", path, "").Detail(404, "PERSON_NOT_FOUND")
	h.Send("broker-a", "PATCH", path, `{"first_name":"B"}`).Detail(404, "PERSON_NOT_FOUND")
	q := h.questionnaire("KYC", owner.PersonType, oneText, "")
	h.Send("broker-a", "POST", path+"/questionnaires/"+q.id+"/response", q.text("x")).Detail(404, "PERSON_NOT_FOUND")
	same(t, "the others", ids(h.Send("broker-a", "GET", api+"/persons", "").Want(200).Items()), []string{h.refOf(other).ID.String()})
}

// TestOwnWritesAreRead: what a client was answered, its next read holds, without a word about positions.
func TestOwnWritesAreRead(t *testing.T) {
	h := newHouse(t)
	for i := range 20 {
		path := h.person(fmt.Sprint("p-", i))
		h.Send("broker-a", "GET", path, "", operation.HeaderMinLogPosition, "").Want(200)
		h.Send("broker-a", "PATCH", path, `{"first_name":"B"}`).Want(200)
		want(t, h.Send("broker-a", "GET", path, "", operation.HeaderMinLogPosition, "").Want(200), "first_name", "B")
		want(t, h.Send("broker-a", "GET", api+"/persons?size=1", "", operation.HeaderMinLogPosition, "").Want(200), "total", fmt.Sprint(i+1))
	}
	h.Send("broker-a", "GET", api+"/persons", "", operation.HeaderMinLogPosition, "onboarding/0@99999").Detail(412, "LOG_POSITION_NOT_REACHED")
	h.Send("broker-a", "GET", api+"/persons", "", operation.HeaderMinLogPosition, "trading/0@1").Detail(412, "LOG_POSITION_NOT_REACHED")
	same(t, "no position", h.Send("broker-a", "GET", api+"/persons", "", operation.HeaderMinLogPosition, "x").Details(), []string{"value_error header.X-Min-Log-Position"})
}

// TestPositionsOfWrites: a write that waits for X-Min-Log-Position is described with 412, and no other is.
func TestPositionsOfWrites(t *testing.T) {
	h := newHouse(t)
	bodies := map[string]string{
		"PUT " + admin + "/four-eyes/onboarding": `{"rules":[]}`,
		"PATCH " + admin + "/instruments/none":   `{"taker_fee":"5"}`,
	}
	for _, r := range h.OpenAPI().Routes() {
		described, _ := h.OpenAPI().At("/paths/" + conform.Escape(r.Path) + "/" + strings.ToLower(r.Method) + "/responses/412")
		if r.Method == http.MethodGet || r.Path == "/auth/jwt/login" {
			continue
		}
		path := strings.NewReplacer("{journal}", "onboarding", "{symbol}", "none", "{id}", nothing, "_id}", "}").Replace(r.Path)
		for _, name := range []string{"{person}", "{corporate}", "{document}", "{questionnaire}", "{webhook}", "{delivery}"} {
			path = strings.ReplaceAll(path, name, nothing)
		}
		sent, user := bodies[r.Method+" "+path], "operator"
		if sent == "" {
			sent = "{}"
		}
		if !strings.HasPrefix(path, admin) {
			user = "broker-a"
		}
		got := h.Send(user, r.Method, path, sent, operation.HeaderMinLogPosition, "none/0@1")
		if waits := got.Status == http.StatusPreconditionFailed; waits != (described != nil) {
			t.Errorf("%s waits: %t, described: %t: %d %s", r, waits, described != nil, got.Status, got.Body)
		}
	}
}

// TestUnknownAddresses are answered as FastAPI does, with methods that an address does not take.
func TestUnknownAddresses(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	for _, unknown := range []string{api, api + "/", api + "/people", path + "/", path + "/nothing", api + "/questionnaires/persons/x/y", api + "/entitlements"} {
		h.Send("broker-a", "GET", unknown, "").Detail(404, "Not Found")
	}
	h.Send("broker-a", "DELETE", path, "").Detail(405, "Method Not Allowed")
	h.Send("broker-a", "PUT", api+"/persons", "{}").Detail(405, "Method Not Allowed")
}

// TestWhatIsCheckedFirst: 401, 403, 404, then 413 and 415, then 422, then 409.
func TestWhatIsCheckedFirst(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	h.person("p-2")
	huge := `{"external_id":"` + strings.Repeat("x", 1<<20) + `"}`
	unknown := api + "/persons/" + nothing
	for _, tt := range []struct {
		user, path, body, media string
		status                  int
	}{
		{"", unknown, huge, "text/plain", 401},
		{"reader-a", unknown, huge, "text/plain", 403},
		{"broker-a", unknown, huge, "text/plain", 404},
		{"broker-a", unknown, `{"external_id":5}`, "application/json", 404},
		{"broker-a", path, huge, "application/json", 413},
		{"broker-a", path, `{"external_id":5}`, "text/plain", 415},
		{"broker-a", api + "/persons/x", `{}`, "text/plain", 415},
		{"broker-a", path + "?x=1", `{"external_id":"p-2","first_name":5}`, "application/json", 422},
		{"broker-a", path, `{"external_id":"p-2"}`, "application/json", 409},
	} {
		if got := h.Send(tt.user, "PATCH", tt.path, tt.body, "Content-Type", tt.media); got.Status != tt.status {
			t.Errorf("%s %.60s %.60s as %s: %d, want %d: %s", tt.user, tt.path, tt.body, tt.media, got.Status, tt.status, got.Body)
		}
	}
}
