package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func (c *applicants) addressChecks() []check {
	return []check{
		{"This document covers the onboarding service: login, documents, questionnaires, responses, entitlements and their triggers, pending requirements, and webhooks", "", c.reads(
			c.ann+"/documents", "/api/v1/questionnaires/persons", c.ann+"/responses", "/api/v1/entitlements/persons", c.ann+"/entitlement_triggers",
			c.ann+"/pending_requirements", "/api/v1/webhooks")},
		{"A second document covers the derivatives trading interface (order updates, balance changes, order book and trade streams, and its change history)", "", c.reads("/v1/instruments")},
		{"Addresses: {base_url} is the service base address", "", c.reads("/api/v1/webhooks")},
		{"Resource paths below are relative to {base_url}/api/v1", "", together(c.reads("/api/v1/webhooks", "/api/v1/entitlements/persons"), func() {
			c.equal("/webhooks", fmt.Sprint(c.get("/webhooks").Status), "404")
		})},
		{"The login path is relative to {base_url} and is not under /api/v1", "", c.loginPath},
	}
}

// reads is a check: these can be read.
func (c *applicants) reads(paths ...string) func() {
	return func() {
		for _, path := range paths {
			c.equal("GET "+path, fmt.Sprint(c.get(path).Status), "200")
		}
	}
}

// logIn sends a login form.
func (c *applicants) logIn(path string, fields url.Values) answer {
	c.t.Helper()
	return c.do("", http.MethodPost, path, fields.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func (c *applicants) credentials(username, password string) url.Values {
	return url.Values{"username": {username}, "password": {password}}
}

func (c *applicants) loginPath() {
	good := c.credentials("broker-a", c.password("broker-a"))
	c.equal("/auth/jwt/login", fmt.Sprint(c.logIn("/auth/jwt/login", good).Status), "200")
	c.answered("/api/v1/auth/jwt/login", "404 Not Found", c.logIn("/api/v1/auth/jwt/login", good))
}

func (c *applicants) serviceChecks() []check {
	return []check{
		{"Accepts files uploaded for a person or a corporate, stores them as documents, and serves document metadata and temporary download links", "", func() {
			for i, of := range map[int]string{0: c.ann, 3: c.acme} {
				path := of + "/documents/" + c.documents[i].text("id")
				c.equal("metadata", c.fetch(path).text("id"), c.documents[i].text("id"))
				c.like("the link's url", c.fetch(path+"/download_link").text("url"), `^http`)
			}
		}},
		{"Serves questionnaires (versioned sets of questions) and accepts a response (a set of answers) to a questionnaire on behalf of a person or a corporate", "", func() {
			for _, r := range c.responses {
				c.like("of a "+r.text("owner_type"), r.text("questionnaire_version_id"), uuidForm)
			}
		}},
		{"Offers entitlements: triggerable capabilities granted to an account (for example an onboarding workflow)", "", func() {
			for _, e := range c.entitlements().read() {
				c.note("%s %s", e.text("name"), e.text("id"))
			}
			c.has(c.fetch(c.ann+"/entitlement_triggers/"+c.triggers["ann"].text("id")), "result", "success")
		}},
		{"Triggering an entitlement starts an asynchronous workflow that collects questionnaires and documents", "", func() {
			c.equal("at first", c.triggers["ann"].text("status"), "pending")
			c.equal("then", c.until(c.cara, c.triggers["cara"].text("id"), "ongoing").text("status"), "ongoing")
			c.like("collected", c.responses[0].text("answers"), c.documents[0].text("id"))
		}},
		{"Requirements are pushed by webhook or can be polled", "", together(c.pushed, c.polled)},
		{"Creating, updating or reading the person and corporate records themselves: not shown", "`POST|GET|PATCH /api/v1/persons[/{id}]` and `/corporates[/{id}]`, list with paging", c.ownerRoutes},
		{"Workflow for an entitlement 1. Trigger the entitlement with POST on the entitlement_triggers path of the person or corporate", "", c.createsTriggers},
		{"Workflow for an entitlement 2. Receive a webhook of type requirementsQuestionnaire carrying the ids of the questionnaires to answer (or poll pending_requirements)", "", together(c.pushed, c.polled)},
		{"Workflow for an entitlement 3. Fetch each questionnaire with GET /questionnaires/{id} to render it", "", c.reads("/api/v1/questionnaires/"+c.full, "/api/v1/questionnaires/"+c.company)},
		{"Workflow for an entitlement 4. Where a question needs a file, upload it as a document and keep the returned document id", "", c.named},
		{"Workflow for an entitlement 5. Submit the answers (with document ids where needed) to the response endpoint", "", c.named},
		{"Workflow for an entitlement 6. Further requirementsQuestionnaire webhooks may ask for more information", "", func() {
			p := c.hooks.await("/all", "the request for more", func(o object) bool { return c.isAbout("ann", o) && strings.Contains(o.text("details"), c.more) })
			c.like("details", p.event(c.t).text("details"), `"reason":"Because of MORE\."`)
		}},
		{"Workflow for an entitlement 7. A final webhook reports completion (entitlementCompleted) or failure (entitlementFailed)", "", func() {
			for name, want := range map[string]string{"ann": "entitlementCompleted", "bob": "entitlementFailed", "acme": "entitlementCompleted"} {
				final := 0
				for _, o := range c.bodies().read() {
					if c.isAbout(name, o) && strings.HasPrefix(o.text("type"), "entitlement") {
						c.equal("of "+name, o.text("type"), want)
						final++
					}
				}
				c.equal("final webhooks of "+name, fmt.Sprint(final), "1")
			}
		}},
	}
}

// pushed says that the first thing cara was told is what she has to answer, and polled that she reads the same.
func (c *applicants) pushed() {
	p := c.hooks.await("/all", "what cara has to answer", func(o object) bool { return c.isAbout("cara", o) && o.text("type") == "requirementsQuestionnaire" })
	c.like("pushed", p.event(c.t).text("details"), `"pending_questionnaire_ids":\["`+c.full+`"\]`)
}

func (c *applicants) polled() {
	c.equal("polled", c.pending(c.cara)[0].text("pending_questionnaire_ids"), `["`+c.full+`"]`)
}

// named says that the answers carry the ids that uploads were answered.
func (c *applicants) named() {
	path := c.ann + "/responses/" + c.responses[0].text("id")
	c.like("the stored answers", c.fetch(path).text("answers"), `"answer_document_id":"`+c.documents[0].text("id")+`"`)
	c.like("the stored answers", c.fetch(path).text("answers"), `"answer_document_ids":\["`+c.documents[0].text("id")+`","`+c.documents[1].text("id")+`"\]`)
}

func (c *applicants) createsTriggers() {
	for _, name := range []string{"ann", "acme"} {
		c.equal("the status of "+name+"'s", c.triggers[name].text("status"), "pending")
		c.equal("owner_type", c.triggers[name].text("owner_type"), c.fetch("/api/v1/"+map[string]string{"ann": "persons", "acme": "corporates"}[name]+"/"+
			c.owners[name].text("id")+"/entitlement_triggers/"+c.triggers[name].text("id")).text("owner_type"))
	}
}

// ownerRoutes makes, changes, reads and lists a person and a corporate.
func (c *applicants) ownerRoutes() {
	for kind, bodies := range map[string][2]string{
		"persons":    {`{"external_id":"eve","first_name":"Eve","last_name":"Orr"}`, `{"last_name":"Orr-Lee"}`},
		"corporates": {`{"external_id":"eves","legal_name":"Eve's"}`, `{"legal_form":"Ltd"}`},
	} {
		path, made := c.register(kind, bodies[0])
		c.like("POST /api/v1/"+kind, made.text("id"), uuidForm)
		changed := c.sendAs(200, "broker-a", http.MethodPatch, path, bodies[1])
		c.equal("PATCH", changed.text("last_name")+changed.text("legal_form"), map[string]string{"persons": "Orr-Lee", "corporates": "Ltd"}[kind])
		c.equal("GET", fmt.Sprint(c.fetch(path)), fmt.Sprint(changed))
		page := c.fetch("/api/v1/" + kind + "?size=1")
		c.members("the list", "items total page size pages", page)
		c.equal("its newest", page.objects("items")[0].text("id"), made.text("id"))
	}
}

func (c *applicants) conventionChecks() []check {
	all := joined("answers", c.allDocuments(), c.allQuestionnaires(), c.versions(), c.questions(), c.options(), c.entitlements(), c.allTriggers(), c.registrations(), c.bodies())
	envelope := func(path, want string) func() {
		return func() {
			page := c.fetch(path)
			c.members(path, want, page)
			c.equal("items", page.kind("items"), "array")
		}
	}
	return []check{
		{"Conventions: identifiers are UUID strings", "", func() {
			n := 0
			for _, o := range all.read() {
				for _, m := range o.members() {
					if m == "id" || strings.HasSuffix(m, "_id") && m != "key_id" && o.kind(m) == "string" {
						if n++; !matches(uuidForm, o.text(m)) {
							c.t.Errorf("%s of %v", m, o)
						}
					}
				}
			}
			c.note("%d identifiers, such as %s", n, c.owners["ann"].text("id"))
		}},
		{"Timestamps are ISO 8601 UTC strings with fractional seconds (for example the created_at fields)", "", func() {
			n := 0
			for _, o := range all.read() {
				for _, m := range o.members() {
					if strings.HasSuffix(m, "_at") || m == "timestamp" {
						if n++; !matches(timeForm, o.text(m)) {
							c.t.Errorf("%s of %v", m, o)
						}
					}
				}
			}
			c.note("%d timestamps, such as %s", n, c.owners["ann"].text("created_at"))
		}},
		{"owner_type is the string person or corporate", "", c.oneOf("owner_type", ownerTypes, ownerTypes, all)},
		{"Paginated lists are objects with an items array plus paging fields (page, size", "", together(envelope("/api/v1/questionnaires/persons", "items page size"), envelope(c.ann+"/documents", "items total page size pages"))},
		{"on some lists also total and pages)", "", together(envelope("/api/v1/webhooks", "items total page size pages"), envelope("/api/v1/entitlements/persons", "items total page size pages"))},
		{"In list examples size is 50", "", c.sizeIs50},
	}
}

func (c *applicants) sizeIs50() {
	for _, path := range []string{"/api/v1/questionnaires/persons", "/api/v1/entitlements/persons", "/api/v1/webhooks", c.ann + "/documents"} {
		c.equal("size of "+path, c.fetch(path).text("size"), "50")
	}
}

// answerOf is the answer to the question of a type, as it was stored with ann's full response.
func (c *applicants) answerOf(kind string) object {
	c.t.Helper()
	for _, q := range c.questions().read() {
		if q.text("question_type") != kind {
			continue
		}
		for _, a := range c.fetch(c.ann + "/responses/" + c.responses[0].text("id")).objects("answers") {
			if a.text("question_id") == q.text("id") {
				return a
			}
		}
	}
	c.t.Fatalf("there is no answer to a question of type %s", kind)
	return nil
}

// wrongly answers the full questionnaire with one answer that is refused, and wants the fault to be at that answer's member.
func (c *applicants) wrongly(kind, value string) {
	c.t.Helper()
	given := []string{"text", `"x"`, kind, value}
	at := 1
	if kind == "text" {
		given, at = given[2:], 0
	}
	a := c.do("broker-a", http.MethodPost, c.bob+"/questionnaires/"+c.full+"/response", c.answers(c.full, given...))
	var o object
	c.parse(a.Body, &o)
	for _, fault := range o.objects("detail") {
		if a.Status == 422 && strings.HasPrefix(fault.text("loc"), fmt.Sprintf(`["body","answers",%d,"%s"`, at, answerField[kind])) {
			c.note("%s=%.60s: 422 %s", kind, value, fault.text("type"))
			return
		}
	}
	c.t.Errorf("%s: %d %s", value, a.Status, a.Body)
}

func (c *applicants) responseChecks() []check {
	kinds := map[string]string{"text": "string", "integer": "integer", "bool": "boolean", "country": "string", "single_choice": "UUID",
		"multiple_choice": "array of UUID", "document": "UUID", "multiple_documents": "array of UUID"}
	out := []check{
		{"answers · Type: array of Answer", "", func() {
			c.equal("answers", fmt.Sprint(isOf("array of Answer", c.responses[0]["answers"])), "true")
			c.answered("an object", "422", c.do("broker-a", http.MethodPost, c.bob+"/questionnaires/"+c.full+"/response", `{"answers":{}}`))
		}},
		{"answers · Notes: one entry per answered question", "", func() {
			c.equal("answers to eight questions", fmt.Sprint(len(c.responses[0].objects("answers"))), "8")
			c.wronglyTwice()
		}},
		{"text · Notes: free text", "", func() {
			const text = "Ann & co: <\"ünï\">\nand a line"
			c.respond(c.bob, c.full, "text", `"Ann & co: <\"ünï\">\nand a line"`)
			c.equal("stored", c.list(c.bob + "/responses")[0].objects("answers")[0].text("answer_text"), text)
		}},
		{"country · Notes: ISO 3166-1 alpha-3 country code", "", func() {
			c.equal("country", c.answerOf("country").text("answer_country"), "DEU")
			for _, code := range []string{`"DE"`, `"deu"`, `"XYZ"`} {
				c.wrongly("country", code)
			}
		}},
		{"single_choice · Notes: id of one option of the question", "", c.oneOption},
		{"multiple_choice · Notes: several options allowed", "", c.manyOptions},
		{"document · Notes: must be the id of an uploaded document", "", func() {
			c.equal("document", c.answerOf("document").text("answer_document_id"), c.documents[0].text("id"))
			c.wrongly("document", `"`+c.full+`"`)
			c.wrongly("document", `"`+c.documents[0].text("id")+`"`) // ann's
		}},
		{"multiple_documents · Notes: each must be the id of an uploaded document", "", func() {
			c.equal("documents", c.answerOf("multiple_documents").text("answer_document_ids"), `["`+c.documents[0].text("id")+`","`+c.documents[1].text("id")+`"]`)
			c.wrongly("multiple_documents", `["`+c.documents[0].text("id")+`"]`)
		}},
		{"The stored Response record and its fields beyond the submitted answers and its tie to a questionnaire version: not shown",
			"POST response → 201 `{id, questionnaire_id, questionnaire_version_id, owner_type, owner_id, answers, created_at}`", c.storedResponse},
	}
	for kind, of := range kinds {
		out = append(out, check{kind + " · answer field: " + answerField[kind], "", func() {
			c.members("the answer to a question of type "+kind, "question_id "+answerField[kind], c.answerOf(kind))
		}}, check{kind + " · type: " + of, "", func() {
			a := c.answerOf(kind)
			c.note("%s=%s", answerField[kind], a.text(answerField[kind]))
			if !isOf(of, a[answerField[kind]]) {
				c.t.Errorf("it is no %s: %v", of, a)
			}
			wrong := map[string]string{"string": "7", "integer": `"7"`, "boolean": `"true"`, "UUID": `"no id"`, "array of UUID": `"` + c.full + `"`}
			c.wrongly(kind, wrong[of])
		}})
	}
	return out
}

func (c *applicants) wronglyTwice() {
	a := c.do("broker-a", http.MethodPost, c.bob+"/questionnaires/"+c.full+"/response", c.answers(c.full, "text", `"a"`, "text", `"b"`))
	c.equal("a question that is answered twice", fmt.Sprint(a.Status), "422")
}

func (c *applicants) oneOption() {
	c.like("single_choice", c.answerOf("single_choice").text("answer_option_id"), uuidForm)
	c.wrongly("single_choice", `"`+c.answerOf("multiple_choice").texts("answer_option_ids")[0]+`"`)
	c.wrongly("single_choice", `["`+c.answerOf("single_choice").text("answer_option_id")+`"]`)
}

func (c *applicants) manyOptions() {
	c.equal("multiple_choice", fmt.Sprint(len(c.answerOf("multiple_choice").texts("answer_option_ids"))), "2")
	c.wrongly("multiple_choice", `["`+c.answerOf("single_choice").text("answer_option_id")+`"]`)
	c.wrongly("multiple_choice", `"`+c.answerOf("multiple_choice").texts("answer_option_ids")[0]+`"`)
}

func (c *applicants) storedResponse() {
	for i, of := range []string{c.ann, c.acme, c.ann} {
		r := c.responses[i]
		c.members("the response", "id questionnaire_id questionnaire_version_id owner_type owner_id answers created_at", r)
		c.equal("as it is stored", fmt.Sprint(c.fetch(of+"/responses/"+r.text("id"))), fmt.Sprint(r))
		data, _ := c.fetch("/api/v1/questionnaires/" + r.text("questionnaire_id"))["data"].(map[string]any)
		c.equal("its version", r.text("questionnaire_version_id"), object(data).text("id"))
	}
}

func (c *applicants) stateChecks() []check {
	all := c.allTriggers()
	return []check{
		{"Entitlement trigger status values: pending, ongoing, terminated, canceled, blocked, failed, finished", "", c.oneOf("status", statuses7, statuses7, all)},
		{"Result values: success, fail", "", c.oneOf("result", results, results, all)},
		{"(none) · Moved by: POST entitlement_triggers", "", c.createsTriggers},
		{"(none) · Condition: request accepted", "", func() {
			before := len(c.list(c.cara + "/entitlement_triggers"))
			c.answered("one that is not", "404 ENTITLEMENT_NOT_FOUND", c.do("broker-a", http.MethodPost, c.cara+"/entitlement_triggers", `{"entitlement_id":"`+c.full+`"}`))
			c.answered("one that is open", "409 ENTITLEMENT_TRIGGER_ACTIVE", c.do("broker-a", http.MethodPost, c.cara+"/entitlement_triggers", `{"entitlement_id":"`+c.manual+`"}`))
			c.equal("triggers", fmt.Sprint(len(c.list(c.cara+"/entitlement_triggers"))), fmt.Sprint(before))
		}},
		{"(none) · Next state: pending", "", c.oneOf("status", []string{"pending"}, []string{"pending"}, c.createdTriggers())},
		{"(none) · Also happens: the trigger record is returned", "", func() {
			c.members("the record", "id entitlement_id status owner_id owner_type created_at", c.triggers["ann"])
		}},
		{"(none) · Also happens: the workflow runs asynchronously", "", func() {
			c.equal("later", c.until(c.cara, c.triggers["cara"].text("id"), "ongoing").text("status"), "ongoing")
		}},
		{"Transitions: not shown", "exactly one final webhook per trigger", c.transitions},
	}
}

// transitions reads the timelines of all triggers: each step is one of the decisions' table.
func (c *applicants) transitions() {
	allowed := []string{"pending>ongoing", "ongoing>ongoing", "ongoing>blocked", "ongoing>finished", "ongoing>failed", "ongoing>canceled", "ongoing>terminated"}
	for name, of := range map[string]string{"ann": c.ann, "bob": c.bob, "acme": c.acme, "cara": c.cara, "cancel": c.dan, "terminate": c.dan, "fail": c.dan, "block": c.dan} {
		var line []string
		last := "pending"
		for _, e := range c.timeline(of, c.triggers[name].text("id")) {
			status := e.text("status")
			if status == "null" || status == last && status == "pending" {
				continue
			}
			if step := last + ">" + status; !slices.Contains(allowed, step) {
				c.t.Errorf("%s of %s", step, name)
			}
			last = status
			line = append(line, status)
		}
		c.note("%s: %s", name, strings.Join(line, " "))
		if len(line) == 0 {
			c.t.Errorf("the timeline of %s has no states", name)
		}
	}
}

// timeline reads the events of a case.
func (c *applicants) timeline(of, trigger string) []object {
	c.t.Helper()
	var list []object
	raw := c.must(200, "broker-a", http.MethodGet, of+"/entitlement_triggers/"+trigger+"/timeline", nil).Body
	if raw[0] == '[' {
		c.parse(raw, &list)
		return list
	}
	var page object
	c.parse(raw, &page)
	return page.objects("items")
}
