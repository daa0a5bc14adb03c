package onboarding_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// past asks as of something.
func (h *house) past(user, path, asOf string) *tradingtest.Reply {
	h.T.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return h.Send(user, "GET", path+separator+"as_of="+url.QueryEscape(asOf), "")
}

// life is an owner with a document, a response, and a trigger.
type life struct {
	*house
	path, id                     string
	trigger, document, responses string // paths; the last one of the list
	questionnaire, another       *asked // that the entitlement needs; that changes
	definition                   string // id of the entitlement
}

// anybody registers a person whose case waits for an answer and for a decision.
func (h *house) anybody(externalID string) *life {
	h.T.Helper()
	l := &life{house: h, path: h.person(externalID), questionnaire: h.questionnaire("KYC", owner.PersonType, oneText, "")}
	l.id, l.responses = h.refOf(l.path).ID.String(), l.path+"/responses"
	l.document = l.path + "/documents/" + h.send("broker-a", l.path, "a.pdf", formattest.PDF()).Want(201).Text("id")
	l.another = h.questionnaire("More", owner.PersonType, oneText, "")
	l.definition = h.entitlement(owner.PersonType, `,"approval":"manual"`, l.questionnaire)
	l.trigger = l.path + "/entitlement_triggers/" + h.make("broker-a", l.path+"/entitlement_triggers", `{"entitlement_id":"`+l.definition+`"}`)
	return l
}

// reads returns the reads that take as_of, under /api/v1, and those of operators.
func (l *life) reads() (all []string) {
	mine := []string{l.path, l.path + "/documents", l.document, l.responses, l.path + "/entitlement_triggers", l.trigger, l.trigger + "/timeline", l.path + "/pending_requirements"}
	for _, path := range mine {
		all = append(all, path, strings.Replace(path, api, admin, 1))
	}
	return append(all, l.operated())
}

// lists returns the lists that take as_of and that do not name the owner.
func (l *life) lists() []string {
	return []string{api + "/persons", api + "/persons?size=1&page=2", api + "/corporates", api + "/questionnaires/persons", api + "/questionnaires/persons?size=1", api + "/entitlements/persons", api + "/entitlements/corporates",
		admin + "/persons", admin + "/persons?tenant=alpha&state=active", admin + "/corporates", admin + "/questionnaires", admin + "/questionnaires?size=2&page=2", admin + "/entitlements",
		admin + "/entitlement_triggers", admin + "/entitlement_triggers?sort=asc&size=1", admin + "/entitlement_triggers?status=pending|blocked&tenant=alpha",
		admin + "/entitlement_triggers?owner_id=" + l.id + "&entitlement_id=" + l.definition}
}

// catalog returns the reads of definitions that take as_of.
func (l *life) catalog() []string {
	return []string{api + "/questionnaires/" + l.questionnaire.id, api + "/questionnaires/" + l.questionnaire.id + "?version=1", api + "/questionnaires/persons/" + l.id,
		admin + "/questionnaires/" + l.another.id, admin + "/entitlements/" + l.definition}
}

// operated is the path of the case for operators.
func (l *life) operated() string {
	return admin + "/entitlement_triggers" + l.trigger[strings.LastIndex(l.trigger, "/"):]
}

// live changes everything about the owner at random.
func (l *life) live(random *rand.Rand) {
	l.T.Helper()
	operated := strings.Replace(l.path, api, admin, 1)
	switch random.IntN(12) {
	case 0:
		l.Send("broker-a", "PATCH", l.path, fmt.Sprintf(`{"first_name":"Name %d"}`, random.IntN(1000))).Want(200)
	case 1:
		l.Send("operator", "PATCH", strings.Replace(l.document, api, admin, 1), fmt.Sprintf(`{"category":"%s"}`, []string{"poa", "selfie", "cv"}[random.IntN(3)]))
	case 2:
		l.make("broker-a", l.path+"/questionnaires/"+l.questionnaire.id+"/response", l.questionnaire.text(fmt.Sprint(random.IntN(1000))))
	case 3:
		l.Send("operator", "POST", l.operated()+"/request_information",
			`{"code":"C","reason":"Please say more","internal_reason":"Odd","questionnaire_ids":["`+l.questionnaire.id+`"]}`)
	case 4:
		l.Send("operator", "POST", operated+"/"+[]string{"hold", "release-hold"}[random.IntN(2)], `{"reason":"r"}`)
	case 5:
		l.Send("operator", "POST", l.operated()+"/"+[]string{"block", "release"}[random.IntN(2)], `{"code":"C","reason":"r"}`)
	case 6:
		l.make("operator", admin+"/questionnaires", `{"name":"another","owner_type":"person"}`)
	case 7:
		l.Send("operator", "PATCH", admin+"/entitlements/"+l.definition, fmt.Sprintf(`{"description":"As of %d","video_identification":%t}`, random.IntN(1000), random.IntN(2) == 0)).Want(200)
	case 8:
		l.Send("operator", "POST", admin+"/questionnaires/"+l.another.id+"/"+[]string{"publish", "unpublish"}[random.IntN(2)], "")
	case 9:
		l.Send("operator", "POST", admin+"/questionnaires/"+l.another.id+"/versions", oneText).Want(201)
	case 10:
		l.Send([]string{"broker-a", "broker-b"}[random.IntN(2)], "POST", api+"/persons", fmt.Sprintf(`{"external_id":"%d","first_name":"B","last_name":"C"}`, random.Int64()))
	case 11:
		l.Send("broker-a", "POST", api+"/corporates", fmt.Sprintf(`{"external_id":"%d","legal_name":"B"}`, random.Int64()))
	}
	l.Onboarding.Drain()
	l.Advance(scalar.Time(random.IntN(3)) * scalar.Millisecond)
}

// userOf returns a user who may ask for a path.
func userOf(path string) string {
	if strings.HasPrefix(path, admin) {
		return "operator"
	}
	return "broker-a"
}

// TestAsOfAnswersWhatWasAnswered keeps the answers about an owner after each record, and asks for them again as of their positions:
// the same bytes come back.
func TestAsOfAnswersWhatWasAnswered(t *testing.T) {
	h, seed := newHouse(t), rand.Uint64()
	t.Logf("seed %d", seed)
	h.activate()
	l, random := h.anybody("p-1"), rand.New(rand.NewPCG(seed, 1))
	type answer struct{ path, at, body string }
	var kept []answer
	for range 40 {
		l.live(random)
		for _, path := range slices.Concat(l.reads(), l.lists(), l.catalog()) {
			r := h.Send(userOf(path), "GET", path, "").Want(200)
			kept = append(kept, answer{path, r.Header.Get(operation.HeaderLogPosition), r.Body})
		}
	}
	for _, a := range append(kept, kept[:len(l.reads())+len(l.lists())+len(l.catalog())]...) { // the first ones a second time
		r := h.past(userOf(a.path), a.path, a.at).Want(200)
		if r.Body != a.body || r.Header.Get(operation.HeaderLogPosition) != a.at || r.Header.Get(operation.HeaderLogPositionFinal) != "" {
			t.Fatalf("%s as of %s:\n%s\nwas\n%s", a.path, a.at, r.Body, a.body)
		}
	}
}

// TestAsOfBeforeAndAfter asks before an owner and the objects of the owner exist, and after the end of the log.
func TestAsOfBeforeAndAfter(t *testing.T) {
	h := newHouse(t)
	before := h.Onboarding.Tip().String()
	l := h.anybody("p-1")
	tip := h.Onboarding.Tip()
	registered := fmt.Sprintf("onboarding/0@%d", tip.Sequence)
	missing := map[string]string{l.document[:strings.LastIndex(l.document, "/")+1] + nothing: "DOCUMENT_NOT_FOUND", l.responses + "/" + nothing: "RESPONSE_NOT_FOUND",
		l.path + "/entitlement_triggers/" + nothing: "ENTITLEMENT_TRIGGER_NOT_FOUND", l.path + "/entitlement_triggers/" + nothing + "/timeline": "ENTITLEMENT_TRIGGER_NOT_FOUND"}
	for path, code := range missing {
		h.past("broker-a", path, registered).Detail(404, code)
	}
	for _, path := range l.reads() {
		if strings.HasPrefix(path, admin) {
			h.past("operator", path, before).Code(404, "NOT_YET")
			h.past("operator", path, "onboarding/0@100000").Code(409, "NOT_YET_DECIDED")
			h.past("operator", path, "yesterday").Code(400, "VALIDATION_FAILED")
			continue
		}
		h.past("broker-a", path, before).Detail(404, "NOT_YET")
		h.past("broker-a", path, "onboarding/0@-1").Detail(404, "NOT_YET")
		h.past("broker-a", path, "2001-01-01T00:00:00Z").Detail(404, "NOT_YET")
		h.past("broker-a", path, "onboarding/0@100000").Detail(409, "NOT_YET_DECIDED")
		h.past("broker-a", path, "onboarding/0@3,onboarding/0@4").Want(422)
		h.past("broker-b", path, registered).Detail(404, "PERSON_NOT_FOUND") // rights are those of today
		h.past("auditor", path, registered).Want(200)
	}
	for _, path := range slices.Concat(l.lists(), l.catalog()) {
		code, says := (*tradingtest.Reply).Detail, 422
		if strings.HasPrefix(path, admin) {
			code, says = (*tradingtest.Reply).Code, 400
		}
		code(h.past(userOf(path), path, "onboarding/0@-1"), 404, "NOT_YET")
		code(h.past(userOf(path), path, "onboarding/0@100000"), 409, "NOT_YET_DECIDED")
		h.past(userOf(path), path, "yesterday").Want(says)
		if r := h.past(userOf(path), path, before); slices.Contains(l.catalog(), path) {
			code(r, 404, "NOT_YET")
		} else if strings.Contains(r.Want(200).Body, `"id"`) { // there were none, and that is known
			t.Errorf("%s as of %s: %s", path, before, r.Body)
		}
	}
	h.past("broker-a", api+"/questionnaires/"+nothing, registered).Detail(404, "QUESTIONNAIRE_NOT_FOUND")
	h.past("operator", admin+"/entitlements/"+nothing, registered).Code(404, "ENTITLEMENT_NOT_FOUND")
	h.past("broker-b", api+"/questionnaires/persons/"+l.id, registered).Detail(404, "PERSON_NOT_FOUND")
	if r := h.past("broker-b", api+"/persons", registered).Want(200); len(r.Items()) != 0 {
		t.Errorf("another tenant sees %s", r.Body)
	}
	// Another journal's record stands for its time.
	h.Advance(10 * scalar.Second)
	h.Send("operator", "POST", admin+"/brokers", `{"broker":"gamma","name":"Gamma"}`).Want(201)
	h.Send("operator", "GET", admin+"/brokers", "").Want(200)
	h.Advance(3 * scalar.Second)
	if got := h.past("broker-a", l.path, h.Identity.Tip().String()).Want(200).Header.Values(operation.HeaderLogPosition); len(got) != 2 || got[1] != tip.String() {
		t.Errorf("as of %v", got)
	}
}

// TestAsOfOfAnErasedOwner: operators and auditors see what is left of an erased owner, marked as erased. For the tenant, the
// owner does not exist. No answer and no row has a word of what was erased.
func TestAsOfOfAnErasedOwner(t *testing.T) {
	h := newHouse(t)
	h.activate()
	l := h.anybody("p-1")
	h.Send("broker-a", "PATCH", l.path, `{"first_name":"Berta"}`).Want(200)
	h.Send("operator", "POST", l.operated()+"/request_information",
		`{"code":"C","reason":"Please say more","internal_reason":"Odd","questionnaire_ids":["`+l.questionnaire.id+`"]}`).Want(200)
	response := l.responses + "/" + h.make("broker-a", l.path+"/questionnaires/"+l.questionnaire.id+"/response", l.questionnaire.text("a secret"))
	h.Send("operator", "POST", l.operated()+"/request_information",
		`{"code":"C","reason":"Please say more","internal_reason":"Odd","questionnaire_ids":["`+l.questionnaire.id+`"]}`).Want(200)
	at := h.Onboarding.Tip().String()
	wanted := make(map[string]string)
	for _, path := range l.reads() {
		wanted[path] = h.past(userOf(path), path, at).Want(200).Body
	}
	h.Send("operator", "PUT", admin+"/retention", `{"seconds":0}`).Want(200)
	h.Send("operator", "POST", strings.Replace(l.path, api, admin, 1)+"/erase", `{"reason":"They asked for it"}`).Want(200)
	h.Onboarding.Drain()
	if err := h.Owners.Destroy(t.Context(), h.refOf(l.path).String()); err != nil {
		t.Fatal(err)
	}
	if r := h.past("broker-a", api+"/persons", at).Want(200); len(r.Items()) != 0 || r.Text("total") != "0" {
		t.Errorf("the tenant sees %s", r.Body)
	}
	for _, path := range append(l.reads(), response) {
		h.past("broker-a", strings.Replace(path, admin, api, 1), at).Want(404)
		for _, user := range []string{"operator", "auditor"} {
			r := h.past(user, path, at).Want(200)
			for _, secret := range []string{"Anna", "Berta", "p-1", "a secret", "Please say more", "Odd", "a.pdf"} {
				if strings.Contains(r.Body, secret) {
					t.Errorf("%s shows %s", path, r.Body)
				}
			}
		}
	}
	for _, path := range []string{l.path, l.document, response} {
		want(t, h.past("operator", path, at).Want(200), "erased", "true")
	}
	want(t, h.past("operator", l.path, at).Want(200), "state", "active", "tenant", "alpha")
	for _, path := range []string{api + "/persons", admin + "/persons", l.path + "/documents", l.responses} {
		want(t, h.past("operator", path, at).Want(200).Items()[0], "erased", "true")
	}
	for _, path := range []string{l.trigger, l.path + "/entitlement_triggers"} { // nothing in them was erased
		if r := h.past("operator", path, at).Want(200); r.Body != wanted[path] {
			t.Errorf("%s: %s, was %s", path, r.Body, wanted[path])
		}
	}
	if open := h.past("operator", l.path+"/pending_requirements", at).Want(200).List(); len(open) != 1 || open[0].Text("erased") != "true" {
		t.Errorf("open: %v", open)
	}
	for _, user := range []string{"operator", "auditor"} {
		var marked []string
		for _, event := range h.past(user, l.trigger+"/timeline", at).Want(200).List() {
			if event.Fields()["erased"] == true {
				marked = append(marked, event.Text("action"))
			}
		}
		if !slices.Equal(marked, []string{"request_information", "request_information"}) {
			t.Errorf("%s is told that the reasons of %v are erased", user, marked)
		}
	}
}

// TestObjectsThatTheRowsLack are not called unknown as of an earlier record until the rows have them.
func TestObjectsThatTheRowsLack(t *testing.T) {
	l := newHouse(t).anybody("late")
	definition := l.entitlement(owner.PersonType, `,"approval":"manual"`, l.questionnaire)
	l.Onboarding.Drain()
	release := l.HoldRows()
	before := l.Onboarding.Tip().String()
	document := l.path + "/documents/" + l.send("broker-a", l.path, "b.pdf", formattest.PDF()).Want(201).Text("id")
	trigger := l.path + "/entitlement_triggers/" + l.make("broker-a", l.path+"/entitlement_triggers", `{"entitlement_id":"`+definition+`"}`)
	late := []string{document, trigger}
	for _, path := range late {
		l.past("broker-a", path, before).Want(503)
	}
	release()
	for _, path := range late {
		if r := l.past("broker-a", path, before).Want(404); r.Text("detail") != "NOT_YET" {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
}
