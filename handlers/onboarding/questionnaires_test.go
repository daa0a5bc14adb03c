package onboarding_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/owner"
)

// TestQuestionnaireListings: without an owner those that are published and for all of a type, with one those and its own. Each
// has exactly these members, and no totals.
func TestQuestionnaireListings(t *testing.T) {
	h := newHouse(t)
	path, other := h.person("p-1"), h.person("p-2")
	company := h.corporate("c-1")
	mine := func(path string) string { return `,"owner_type_id":"` + h.refOf(path).ID.String() + `"` }
	generic := h.questionnaire("For all", owner.PersonType, oneText, "").id
	second := h.questionnaire("For all, too", owner.PersonType, draft(), "").id
	h.make("operator", admin+"/questionnaires", `{"name":"Unpublished","owner_type":"person"}`)
	one := h.questionnaire("For one", owner.PersonType, oneText, mine(path)).id
	h.questionnaire("For another", owner.PersonType, oneText, mine(other))
	corporate := h.questionnaire("Of corporates", owner.CorporateType, oneText, "").id
	gone := h.questionnaire("Withdrawn", owner.PersonType, oneText, "").id
	h.Send("operator", "POST", admin+"/questionnaires/"+gone+"/unpublish", "").Want(200)

	list := api + "/questionnaires"
	id := func(path string) string { return h.refOf(path).ID.String() }
	for _, tt := range []struct {
		path string
		want []string
	}{
		{list + "/persons", []string{second, generic}},
		{list + "/persons?page=2&size=1", []string{generic}},
		{list + "/persons?page=3&size=1", []string{}},
		{list + "/persons/" + id(path), []string{one, second, generic}},
		{list + "/persons/" + id(path) + "?size=2", []string{one, second}},
		{list + "/corporates", []string{corporate}},
		{list + "/corporates/" + id(company), []string{corporate}},
	} {
		for _, user := range []string{"broker-a", "operator", "auditor"} {
			page := h.Send(user, "GET", tt.path, "").Want(200)
			same(t, tt.path, ids(page.Items()), tt.want)
			if members := len(page.Fields()); members != 3 {
				t.Errorf("%s has %d members: %s", tt.path, members, page.Body)
			}
		}
	}
	item := h.Send("broker-a", "GET", list+"/persons/"+id(path)+"?size=1", "").Want(200).Items()[0]
	if want := `{"id":"` + one + `","name":"For one","description":"","owner_type":"person","owner_type_id":"` + id(path) +
		`","is_generic":false,"is_published":true,"created_at":"2026-03-31T08:00:00.000000Z"}`; item.Body != want {
		t.Errorf("got  %s\nwant %s", item.Body, want)
	}
	h.Send("broker-a", "GET", list+"/persons/"+nothing, "").Detail(404, "PERSON_NOT_FOUND")
	h.Send("broker-a", "GET", list+"/corporates/"+id(path), "").Detail(404, "CORPORATE_NOT_FOUND")
	h.Send("broker-b", "GET", list+"/persons/"+id(path), "").Detail(404, "PERSON_NOT_FOUND")
	same(t, "faults", h.Send("broker-a", "GET", list+"/persons/x?size=0", "").Details(), []string{"uuid_parsing path.person_id", "greater_than_equal query.size"})
}

// TestOneQuestionnaire: the newest published version, or another that is published, with all that it asks. What is not published,
// or for an owner who is not to be seen, is not there.
func TestOneQuestionnaire(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	q := h.questionnaire("KYC", owner.PersonType, draft(), "")
	first := *q
	one := api + "/questionnaires/" + q.id
	shown := h.Send("broker-a", "GET", one, "").Want(200)
	var read struct {
		Data struct {
			ID        string `json:"id"`
			Number    int    `json:"version_number"`
			Questions []struct {
				ID      string `json:"id"`
				Version string `json:"questionnaire_version_id"`
				Type    string `json:"question_type"`
				Options []struct {
					Question string `json:"question_id"`
				} `json:"options"`
			} `json:"questions"`
		} `json:"data"`
	}
	shown.JSON(&read)
	if read.Data.ID != q.version || read.Data.Number != 1 || len(read.Data.Questions) != 16 {
		t.Errorf("got %s", shown.Body)
	}
	for i, asked := range read.Data.Questions {
		options := map[bool]int{true: 3, false: 0}[strings.HasSuffix(asked.Type, "choice")]
		if asked.ID != q.questions[i].ID || asked.Version != q.version || asked.Type != questionTypes[i%8] || len(asked.Options) != options || options > 0 && asked.Options[0].Question != asked.ID {
			t.Errorf("question %d is %v", i, asked)
		}
	}
	h.publish(q, oneText)
	h.make("operator", admin+"/questionnaires/"+q.id+"/versions", oneText) // a draft
	version := func(query string) string {
		h.Send("broker-a", "GET", one+query, "").Want(200).JSON(&read)
		return read.Data.ID
	}
	same(t, "versions", []string{version(""), version("?version=1"), version("?version=2")}, []string{q.version, first.version, q.version})
	for _, number := range []string{"3", "4"} {
		h.Send("broker-a", "GET", one+"?version="+number, "").Detail(404, "QUESTIONNAIRE_VERSION_NOT_FOUND")
	}
	same(t, "faults", h.Send("broker-a", "GET", one+"?version=0&page=1", "").Details(), []string{"greater_than_equal query.version", "extra_forbidden query.page"})
	same(t, "faults", h.Send("broker-a", "GET", api+"/questionnaires/x?version=a", "").Details(), []string{"uuid_parsing path.id", "int_parsing query.version"})
	h.Send("broker-a", "GET", api+"/questionnaires/"+nothing, "").Detail(404, "QUESTIONNAIRE_NOT_FOUND")

	own := h.questionnaire("For one", owner.PersonType, oneText, `,"owner_type_id":"`+h.refOf(path).ID.String()+`"`)
	h.Send("broker-a", "GET", api+"/questionnaires/"+own.id, "").Want(200)
	h.Send("auditor", "GET", api+"/questionnaires/"+own.id, "").Want(200)
	h.Send("broker-b", "GET", api+"/questionnaires/"+own.id, "").Detail(404, "QUESTIONNAIRE_NOT_FOUND")
	h.Send("operator", "POST", admin+"/questionnaires/"+q.id+"/unpublish", "").Want(200)
	h.Send("broker-a", "GET", one, "").Detail(404, "QUESTIONNAIRE_NOT_FOUND")
	h.Send("broker-a", "GET", one+"?version=1", "").Detail(404, "QUESTIONNAIRE_NOT_FOUND")
}

// TestEntitlementListings have all five members, and nothing of how an operator set them up.
func TestEntitlementListings(t *testing.T) {
	h := newHouse(t)
	q, c := h.questionnaire("KYC", owner.PersonType, oneText, ""), h.questionnaire("KYB", owner.CorporateType, oneText, "")
	person := h.entitlement(owner.PersonType, `,"approval":"manual","description":"d"`, q)
	corporate := h.entitlement(owner.CorporateType, `,"approval":"automatic"`, c)
	page := h.Send("broker-a", "GET", api+"/entitlements/persons", "").Want(200)
	want(t, page, "total", "1", "page", "1", "size", "50", "pages", "1")
	if got, want := page.Items()[0].Body, `{"id":"`+person+`","name":"Trading","description":"d","questionnaires":[{"entitlement_id":"`+person+
		`","questionnaire_id":"`+q.id+`","position":1}],"created_at":"2026-03-31T08:00:00.000000Z","updated_at":"2026-03-31T08:00:00.000000Z"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	same(t, "corporates", ids(h.Send("operator", "GET", api+"/entitlements/corporates", "").Want(200).Items()), []string{corporate})
	same(t, "past the end", ids(h.Send("auditor", "GET", api+"/entitlements/corporates?page=2", "").Want(200).Items()), []string{})
	same(t, "faults", h.Send("broker-a", "GET", api+"/entitlements/persons?size=101", "").Details(), []string{"less_than_equal query.size"})
}
