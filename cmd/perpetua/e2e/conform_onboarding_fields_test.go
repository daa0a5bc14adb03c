package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The objects that facts are about.

func (c *applicants) allDocuments() source {
	return source{"documents", func() []object {
		read := c.read("", c.ann+"/documents", c.ann+"/documents/"+c.documents[0].text("id"), c.acme+"/documents")
		return append(slices.Clone(c.documents), read.read()...)
	}}
}

func (c *applicants) listedQuestionnaires() source {
	return c.read("listed questionnaires", "/api/v1/questionnaires/persons", "/api/v1/questionnaires/persons/"+c.owners["ann"].text("id"),
		"/api/v1/questionnaires/corporates", "/api/v1/questionnaires/corporates/"+c.owners["acme"].text("id"))
}

func (c *applicants) singleQuestionnaires() source {
	return c.read("single questionnaires", "/api/v1/questionnaires/"+c.full, "/api/v1/questionnaires/"+c.own, "/api/v1/questionnaires/"+c.company)
}

func (c *applicants) allQuestionnaires() source {
	return joined("questionnaires", c.listedQuestionnaires(), c.singleQuestionnaires())
}

func joined(name string, sources ...source) source {
	return source{name, func() (out []object) {
		for _, s := range sources {
			out = append(out, s.read()...)
		}
		return out
	}}
}

// below are the objects in a member of others.
func below(name, member string, from source) source {
	return source{name, func() (out []object) {
		for _, o := range from.read() {
			if one, is := o[member].(map[string]any); is {
				out = append(out, one)
			}
			out = append(out, o.objects(member)...)
		}
		return out
	}}
}

func (c *applicants) versions() source  { return below("versions", "data", c.singleQuestionnaires()) }
func (c *applicants) questions() source { return below("questions", "questions", c.versions()) }
func (c *applicants) options() source   { return below("options", "options", c.questions()) }

func (c *applicants) entitlements() source {
	return c.read("entitlements", "/api/v1/entitlements/persons", "/api/v1/entitlements/corporates")
}

func (c *applicants) createdTriggers() source {
	return source{"created triggers", func() (out []object) {
		for _, name := range []string{"ann", "bob", "cara", "acme", "cancel", "terminate", "fail", "block"} {
			out = append(out, c.triggers[name])
		}
		return out
	}}
}

func (c *applicants) listedTriggers() source {
	return c.read("listed triggers", c.ann+"/entitlement_triggers", c.bob+"/entitlement_triggers", c.cara+"/entitlement_triggers",
		c.dan+"/entitlement_triggers", c.acme+"/entitlement_triggers")
}

func (c *applicants) allTriggers() source {
	return joined("triggers", c.createdTriggers(), c.listedTriggers())
}

func (c *applicants) registrations() source {
	return source{"registrations", func() []object {
		return append([]object{c.hooked["/all"], c.hooked["/some"], c.hooked["/failing"]}, c.list("/api/v1/webhooks")...)
	}}
}

func (c *applicants) bodies() source {
	return source{"bodies", func() (out []object) {
		for _, p := range c.hooks.came("/all", http.StatusOK) {
			out = append(out, p.event(c.t))
		}
		return out
	}}
}

var ownerTypes = []string{"person", "corporate"}

func (c *applicants) documentChecks() []check {
	docs := c.allDocuments()
	return append(c.typesOf(`
		id UUID
		category string
		orientation string
		name string
		source string
		owner_type string
		owner_id UUID
		created_at timestamp`, docs),
		check{"id · Notes: identifier of the document", "", func() {
			for _, d := range c.documents[:3] {
				c.has(c.fetch(c.ann+"/documents/"+d.text("id")), "id", d.text("id"), "name", d.text("name"))
				c.note("%s is %s", d.text("id"), d.text("name"))
			}
		}},
		check{"category · Notes: one of the document categories below", "", c.oneOf("category", categories(), []string{"id_document", "undetermined", "bank_statement"}, docs)},
		check{"orientation · Notes: front, back or undetermined", "", c.oneOf("orientation", []string{"front", "back", "undetermined"}, []string{"front", "back", "undetermined"}, docs)},
		check{"name · Notes: file name of the upload", "", c.oneOf("name", []string{"passport.pdf", "proof.pdf", "statement.csv"}, []string{"passport.pdf", "proof.pdf", "statement.csv"}, docs)},
		check{"source · Notes: opaque storage path of the stored file", "", together(
			c.eachIs("source", "a path without the file's name", func(d object) bool { return d.text("source") != "" && !strings.Contains(d.text("source"), "passport") }, docs),
			c.eachIs("source", "the file's own", func(d object) bool {
				return !slices.ContainsFunc(docs.read(), func(o object) bool { return o.text("source") == d.text("source") && o.text("id") != d.text("id") })
			}, source{"documents", func() []object { return c.documents }}))},
		check{"owner_type · Notes: person or corporate", "", c.oneOf("owner_type", ownerTypes, ownerTypes, docs)},
		check{"owner_id · Notes: identifier of the owning person or corporate", "", c.oneOf("owner_id", c.idsOf("ann", "acme"), c.idsOf("ann", "acme"), docs)},
		check{"created_at · Notes: creation time", "", c.eachIs("created_at", "later than its owner", func(d object) bool { return d.text("created_at") > c.owners["ann"].text("created_at") }, docs)},
	)
}

// idsOf are the ids of owners.
func (c *applicants) idsOf(names ...string) (ids []string) {
	for _, name := range names {
		ids = append(ids, c.owners[name].text("id"))
	}
	return ids
}

// misspelled is a category as the interface was first published.
const misspelled = "bank_statment" //nolint:misspell // that is the point

// categories are those that the document lists.
func categories() []string {
	return strings.Fields(`id_document residence_permit poa selfie source_of_funds retail_edd corporate_edd article_of_association
		commercial_register_extract financial_statement transparency_register_extract organizational_chart proof_of_capability rfi_document
		pep_questionnaire carf_self_declaration contract power_of_attorney cv bank_statement transaction_history kyt_report tx_monitoring_report sar
		onboarding_report termination_notice aml_policy proof_of_license other_corporate_document other_retail_document generic trading_history
		partner_cdd_report undetermined`)
}

func (c *applicants) linkChecks() []check {
	link := func() object {
		return c.fetch(c.ann + "/documents/" + c.documents[0].text("id") + "/download_link")
	}
	links := source{"links", func() []object { return []object{link()} }}
	return append(c.typesOf(`
		url string
		expires_in integer`, links),
		check{"url · Notes: temporary signed URL for the file", "", func() {
			url := link().text("url")
			c.equal("what is there", fmt.Sprint(string(c.download(url).Body) == string(pdf())), "true")
			c.equal("with another signature", fmt.Sprint(c.download(url+"0").Status), "403")
		}},
		check{"expires_in · Notes: validity of the URL", "", func() { c.like("expires_in", link().text("expires_in"), `^[1-9]\d*$`) }},
		check{"expires_in · Notes: unit of expires_in: not shown", "`expires_in` is seconds, default 900", func() { c.equal("expires_in", link().text("expires_in"), "900") }},
	)
}

// download follows a link, without a token.
func (c *applicants) download(url string) answer {
	c.t.Helper()
	return c.do("", http.MethodGet, strings.TrimPrefix(url, c.REST), nil)
}

func (c *applicants) categoryChecks() []check {
	spelled := func(category string) string {
		name, content := "a.pdf", pdf()
		return c.upload(c.bob, name, content, "category", category).text("category")
	}
	list := "id_document (proof of identity), residence_permit, poa (proof of address), selfie, source_of_funds, retail_edd, corporate_edd, " +
		"article_of_association, commercial_register_extract, financial_statement, transparency_register_extract, organizational_chart, " +
		"proof_of_capability, rfi_document (answer to a request for information), pep_questionnaire, carf_self_declaration, contract, power_of_attorney, " +
		"cv, bank_statement, transaction_history, kyt_report, tx_monitoring_report, sar, onboarding_report, termination_notice, aml_policy, " +
		"proof_of_license, other_corporate_document, other_retail_document, generic, trading_history, partner_cdd_report (customer due diligence report " +
		"of an external partner), undetermined (no clear category applies)"
	return []check{
		{list, "", func() {
			for _, category := range categories() {
				c.equal(category, spelled(category), category)
			}
			c.equal("any other", fmt.Sprint(c.sendFile(c.bob, "a.pdf", pdf(), "category", "selfies").Status), "422")
		}},
		{"The value bank_statement is noted as containing a typo in the interface", "", func() {
			c.equal(misspelled, spelled(misspelled), "bank_statement")
		}},
		{"the exact accepted spelling: not shown", "`bank_statement` is canonical", func() {
			c.equal("bank_statement", spelled("bank_statement"), "bank_statement")
		}},
	}
}

func (c *applicants) ownerChecks() []check {
	return []check{
		{"Fields of person and corporate records: not shown", "Person: external_id, first_name, last_name, nationality", func() {
			c.members("a person", "id external_id first_name last_name nationality birth_date email phone tax_identification_number tax_country address state created_at updated_at",
				c.fetch(c.ann))
			c.members("a corporate", "id external_id legal_name legal_form registration_number incorporation_country address state created_at updated_at", c.fetch(c.acme))
		}},
		{"They are addressed by {person_id} and {corporate_id} (UUID)", "", func() {
			c.like("person_id", c.owners["ann"].text("id"), uuidForm)
			c.equal("that person", c.fetch(c.ann).text("first_name"), "Ann")
			c.like("corporate_id", c.owners["acme"].text("id"), uuidForm)
			c.equal("that corporate", c.fetch(c.acme).text("legal_name"), "Acme Ltd")
		}},
	}
}

func (c *applicants) questionnaireChecks() []check {
	all, listed, single := c.allQuestionnaires(), c.listedQuestionnaires(), c.singleQuestionnaires()
	return append(c.typesOf(`
		id UUID
		name string
		description string
		owner_type string
		owner_type_id UUID or null
		is_generic boolean
		is_published boolean
		created_at timestamp
		data QuestionnaireVersion`, all),
		check{"owner_type · Notes: person or corporate: which entity type can answer it", "", func() {
			c.oneOf("owner_type", ownerTypes, ownerTypes, all)()
			body := c.answers(c.company, "text", `"x"`)
			c.answered("a person's response to a corporate's", "409 QUESTIONNAIRE_NOT_APPLICABLE",
				c.do("broker-a", http.MethodPost, c.ann+"/questionnaires/"+c.company+"/response", body))
		}},
		check{"owner_type_id · Notes: when set, the questionnaire applies to one specific entity", "", func() {
			c.equal("owner_type_id", c.fetch("/api/v1/questionnaires/"+c.own).text("owner_type_id"), c.owners["ann"].text("id"))
			body := c.answers(c.own, "text", `"x"`)
			c.answered("a response of that one", "201", c.do("broker-a", http.MethodPost, c.ann+"/questionnaires/"+c.own+"/response", body))
			c.answered("a response of another", "409 QUESTIONNAIRE_NOT_APPLICABLE", c.do("broker-a", http.MethodPost, c.bob+"/questionnaires/"+c.own+"/response", body))
		}},
		check{"is_generic · Notes: true: applies to all", "", c.eachIs("is_generic", "true without owner_type_id",
			func(q object) bool { return (q.text("is_generic") == "true") == (q.text("owner_type_id") == "null") }, all)},
		check{"is_generic · Notes: false: applies to one entity", "", func() {
			c.has(c.fetch("/api/v1/questionnaires/"+c.own), "is_generic", "false", "owner_type_id", c.owners["ann"].text("id"))
			c.note("is_generic=false of %s, for %s", c.own, c.owners["ann"].text("id"))
		}},
		check{"is_published · Notes: true: active and can be answered", "", func() {
			c.eachIs("is_published", "true", func(q object) bool { return q.text("is_published") == "true" }, all)()
			c.answered("one that is not", "404 QUESTIONNAIRE_NOT_FOUND", c.get("/api/v1/questionnaires/"+c.draft))
		}},
		check{"data · Notes: present in the single-questionnaire response (GET /questionnaires/{id})", "", c.eachIs("data", "an object", func(q object) bool { return q.kind("data") == "object" }, single)},
		check{"data · Notes: absent in list items", "", c.eachIs("data", "absent", func(q object) bool { return q.kind("data") == "" }, listed)},
	)
}

func (c *applicants) versionChecks() []check {
	return append(c.typesOf(`
		id UUID
		version_number integer
		questionnaire_id UUID
		created_at timestamp
		questions array of Question`, c.versions()),
		check{"version_number · Notes: incremental (1, 2, 3, ...)", "", c.numbered},
		check{"questionnaire_id · Notes: parent questionnaire", "", func() {
			for _, q := range c.singleQuestionnaires().read() {
				data, _ := q["data"].(map[string]any)
				c.equal("questionnaire_id", object(data).text("questionnaire_id"), q.text("id"))
			}
		}},
	)
}

// numbered adds two versions to a questionnaire and reads each by its number.
func (c *applicants) numbered() {
	q := c.questionnaire("Of three versions", "corporate", "", everyType()[:1])
	for n := 2; n <= 3; n++ {
		made := c.version(q, everyType()[:n])
		c.equal("the next version_number", made.text("version_number"), fmt.Sprint(n))
		c.operate(200, "/admin/v1/questionnaires/"+q+"/publish", map[string]any{})
	}
	for n := 1; n <= 3; n++ {
		data, _ := c.fetch(fmt.Sprintf("/api/v1/questionnaires/%s?version=%d", q, n))["data"].(map[string]any)
		c.equal("version_number", object(data).text("version_number"), fmt.Sprint(n))
		c.equal("its questions", fmt.Sprint(len(object(data).objects("questions"))), fmt.Sprint(n))
	}
}

func (c *applicants) questionChecks() []check {
	questions := c.questions()
	types := []string{"text", "integer", "bool", "country", "single_choice", "multiple_choice", "document", "multiple_documents"}
	isChoice := func(q object) bool { return strings.HasSuffix(q.text("question_type"), "_choice") }
	return append(c.typesOf(`
		id UUID
		questionnaire_version_id UUID
		label string
		value string
		question_type string
		is_optional boolean
		position integer
		options array of QuestionOption`, questions),
		check{"questionnaire_version_id · Notes: version the question belongs to", "", func() {
			for _, v := range c.versions().read() {
				for _, q := range v.objects("questions") {
					c.equal("questionnaire_version_id", q.text("questionnaire_version_id"), v.text("id"))
				}
			}
		}},
		check{"label · Notes: text shown to the end user", "", c.eachIs("label", "what the operator wrote", func(q object) bool { return q.text("label") == "What is your "+q.text("value")+"?" }, questions)},
		check{"value · Notes: machine-readable key, stable when the label changes", "", c.relabeled},
		check{"question_type · Notes: text, integer, bool, country, single_choice, multiple_choice, document, multiple_documents", "", c.oneOf("question_type", types, types, questions)},
		check{"is_optional · Notes: whether answering is optional", "", func() {
			c.answered("without the optional ones", "201", c.do("broker-a", http.MethodPost, c.bob+"/questionnaires/"+c.full+"/response", c.answers(c.full, "text", `"x"`)))
			c.answered("without the other one", "422", c.do("broker-a", http.MethodPost, c.bob+"/questionnaires/"+c.full+"/response", c.answers(c.full, "integer", `1`)))
		}},
		check{"position · Notes: display order", "", c.inOrder(c.versions(), "questions")},
		check{"options · Notes: for choice questions", "", func() {
			for _, q := range questions.read() {
				if isChoice(q) {
					c.equal(q.text("question_type"), fmt.Sprint(len(q.objects("options"))), "3")
				}
			}
		}},
		check{"options · Notes: empty for other types", "", func() {
			for _, q := range questions.read() {
				if !isChoice(q) {
					c.equal(q.text("question_type"), q.text("options"), "[]")
				}
			}
		}},
	)
}

// relabeled gives a question another label in the next version, and looks at its value.
func (c *applicants) relabeled() {
	q := c.questionnaire("Of another label", "corporate", "", []question{{value: "name", kind: "text"}})
	c.operate(201, "/admin/v1/questionnaires/"+q+"/versions", `{"questions":[{"label":"Your name, please","value":"name","question_type":"text","position":1}]}`)
	c.operate(200, "/admin/v1/questionnaires/"+q+"/publish", map[string]any{})
	for n, label := range []string{"What is your name?", "Your name, please"} {
		data, _ := c.fetch(fmt.Sprintf("/api/v1/questionnaires/%s?version=%d", q, n+1))["data"].(map[string]any)
		asked := object(data).objects("questions")[0]
		c.equal("label", asked.text("label"), label)
		c.equal("value", asked.text("value"), "name")
	}
}

// inOrder is a check of lists: they are in the order of their positions.
func (c *applicants) inOrder(from source, member string) func() {
	return func() {
		for _, o := range from.read() {
			list := o.objects(member)
			for i := 1; i < len(list); i++ {
				if a, b := list[i-1].text("position"), list[i].text("position"); len(a) > len(b) || len(a) == len(b) && a >= b {
					c.t.Errorf("%s after %s in %v", b, a, o)
				}
			}
			c.note("%d %s in order", len(list), member)
		}
	}
}

func (c *applicants) optionChecks() []check {
	return append(c.typesOf(`
		id UUID
		question_id UUID
		label string
		value string
		position integer`, c.options()),
		check{"question_id · Notes: owning question", "", func() {
			for _, q := range c.questions().read() {
				for _, o := range q.objects("options") {
					c.equal("question_id", o.text("question_id"), q.text("id"))
				}
			}
		}},
		check{"value · Notes: machine-readable key", "", c.oneOf("value", []string{"red", "green", "blue"}, []string{"red", "green", "blue"}, c.options())},
		check{"position · Notes: order in the list", "", c.inOrder(c.questions(), "options")},
	)
}

func (c *applicants) entitlementChecks() []check {
	all := c.entitlements()
	return append(c.typesOf(`
		id UUID
		name string
		description string
		questionnaires array of EntitlementQuestionnaire
		created_at timestamp
		updated_at timestamp`, all),
		check{"name · Notes: system name", "", c.oneOf("name", []string{"trading", "lending", "custody"}, []string{"trading", "lending", "custody"}, all)},
		check{"questionnaires · Notes: questionnaires that must be answered", "", func() {
			for _, e := range all.read() {
				if e.text("id") == c.manual {
					c.equal("questionnaire_id", e.objects("questionnaires")[0].text("questionnaire_id"), c.full)
				}
			}
			c.equal("what cara must answer", c.pending(c.cara)[0].text("pending_questionnaire_ids"), `["`+c.full+`"]`)
		}},
		check{"EntitlementQuestionnaire: entitlement_id (UUID), questionnaire_id (UUID), position (integer, suggested order of presentation)", "", func() {
			for _, e := range all.read() {
				for _, q := range e.objects("questionnaires") {
					c.members("an EntitlementQuestionnaire", "entitlement_id questionnaire_id position", q)
					c.equal("entitlement_id", q.text("entitlement_id"), e.text("id"))
					c.like("questionnaire_id", q.text("questionnaire_id"), uuidForm)
					c.equal("position", q.text("position"), "1")
				}
			}
		}},
	)
}

var (
	statuses7 = []string{"pending", "ongoing", "terminated", "canceled", "blocked", "failed", "finished"}
	results   = []string{"success", "fail"}
)

func (c *applicants) triggerChecks() []check {
	all := c.allTriggers()
	return append(c.typesOf(`
		id UUID
		entitlement_id UUID
		status enum
		result enum
		owner_id UUID
		owner_type string
		created_at timestamp`, all),
		check{"entitlement_id · Notes: entitlement definition used", "", c.oneOf("entitlement_id", []string{c.manual, c.video, c.automatic}, []string{c.manual, c.video, c.automatic}, all)},
		check{"status · Notes: see States and transitions", "", c.oneOf("status", statuses7, statuses7, all)},
		check{"result · Notes: success or fail", "", c.oneOf("result", results, results, all)},
		check{"result · Notes: absent while a trigger is pending in the examples", "", c.eachIs("result", "absent", func(o object) bool {
			return o.text("status") == "pending" && o.kind("result") == ""
		}, c.createdTriggers())},
		check{"owner_id · Notes: person or corporate id (present on the create response)", "", func() {
			for _, name := range []string{"ann", "acme"} {
				c.equal("owner_id of what "+name+" created", c.triggers[name].text("owner_id"), c.owners[name].text("id"))
			}
		}},
		check{"owner_type · Notes: person or corporate", "", c.oneOf("owner_type", ownerTypes, ownerTypes, all)},
	)
}

func (c *applicants) pendingChecks() []check {
	caras := source{"pending requirements", func() []object { return c.pending(c.cara) }}
	return append(c.typesOf(`
		reason string
		pending_questionnaire_ids array of UUID`, caras),
		check{"reason · Notes: human-readable reason", "", c.oneOf("reason", []string{"trading"}, []string{"trading"}, caras)},
		check{"pending_questionnaire_ids · Notes: questionnaires still to be answered", "", func() {
			c.equal("of one who has not answered", c.pending(c.cara)[0].text("pending_questionnaire_ids"), `["`+c.full+`"]`)
			c.equal("of one who has", fmt.Sprint(len(c.pending(c.ann))), "0")
		}},
	)
}

func (c *applicants) webhookChecks() []check {
	all := c.registrations()
	return append(c.typesOf(`
		id UUID
		key_id string
		url string
		event_types array of string
		include_all_events boolean
		public_key string
		created_at timestamp`, all),
		check{"key_id · Notes: identifier of the signing key", "", c.eachIs("key_id", "of its own", func(w object) bool {
			return w.text("key_id") != "" && !slices.ContainsFunc(all.read(), func(o object) bool { return o.text("key_id") == w.text("key_id") && o.text("id") != w.text("id") })
		}, all)},
		check{"url · Notes: HTTPS delivery address", "", c.eachIs("url", "https", func(w object) bool { return strings.HasPrefix(w.text("url"), "https://") }, all)},
		check{"event_types · Notes: subscribed event types", "", func() {
			c.equal("of /some", c.hooked["/some"].text("event_types"), `["entitlementCompleted"]`)
			c.equal("of /failing", c.hooked["/failing"].text("event_types"), `["entitlementFailed"]`)
		}},
		check{"public_key · Notes: Ed25519 public key for verifying signatures", "", c.eachIs("public_key", "base64 of 32 bytes", func(w object) bool {
			return matches(`^[A-Za-z0-9+/]{43}=$`, w.text("public_key"))
		}, all)},
	)
}
