package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func (c *applicants) endpointChecks() []check {
	ann, acme := c.owners["ann"].text("id"), c.owners["acme"].text("id")
	document := c.ann + "/documents/" + c.documents[0].text("id")
	const login, upload, hooks = "POST {base_url}/auth/jwt/login", "POST /{owner}/documents", "POST /webhooks"
	lists := map[string]string{"persons": "/api/v1/questionnaires/persons", "persons/{person_id}": "/api/v1/questionnaires/persons/" + ann,
		"corporates": "/api/v1/questionnaires/corporates", "corporates/{corporate_id}": "/api/v1/questionnaires/corporates/" + acme}
	out := []check{
		{"All endpoints except login require the Authorization header (see Authentication)", "", c.needsToken},
		{"{owner} below means persons/{person_id} or corporates/{corporate_id}", "", c.reads(c.ann+"/documents", c.acme+"/documents")},
		{"both forms exist for each row marked so", "", c.bothForms},
		{login + " · Request: form body (application/x-www-form-urlencoded): username (string, required), password (string, required)", "", func() {
			c.equal("both", fmt.Sprint(c.logIn("/auth/jwt/login", c.credentials("broker-a", c.password("broker-a"))).Status), "200")
			for _, missing := range []string{"username", "password"} {
				fields := c.credentials("broker-a", c.password("broker-a"))
				fields.Del(missing)
				c.faultAt("without "+missing, missing, c.logIn("/auth/jwt/login", fields))
			}
		}},
		{login + " · Response: 200 with access_token (string) and token_type (string, always bearer)", "", func() {
			a := c.logIn("/auth/jwt/login", c.credentials("broker-a", c.password("broker-a")))
			var o object
			c.parse(a.Body, &o)
			c.members("the answer", "access_token token_type", o)
			c.equal("token_type", o.text("token_type"), "bearer")
			c.equal("access_token is a", o.kind("access_token"), "string")
		}},
		{upload + " · Request: multipart/form-data: category (string), orientation (string), file (binary)", "", func() {
			c.has(c.documents[0], "category", "id_document", "orientation", "front")
			c.note("category=id_document, orientation=front, file of %d bytes", len(pdf()))
			c.equal("of another content type", fmt.Sprint(c.do("broker-a", http.MethodPost, c.ann+"/documents", `{"category":"cv"}`).Status), "415")
		}},
		{upload + " · Response: a Document", "", func() { c.isDocument(c.documents[0]) }},
		{"GET /{owner}/documents · Request: none", "", c.reads(c.ann+"/documents", c.acme+"/documents")},
		{"GET /{owner}/documents · Response: paginated list of documents", "", func() {
			c.isDocument(c.list(c.ann + "/documents")[0])
			c.like("page", c.fetch(c.ann+"/documents").text("page"), `^1$`)
		}},
		{"GET /{owner}/documents/{document_id} · Request: none", "", c.reads(document)},
		{"GET /{owner}/documents/{document_id} · Response: a Document", "", func() { c.isDocument(c.fetch(document)) }},
		{"GET /{owner}/documents/{document_id}/download_link · Request: none", "", c.reads(document + "/download_link")},
		{"GET /{owner}/documents/{document_id}/download_link · Response: download link (url, expires_in)", "", func() {
			c.members("the link", "url expires_in", c.fetch(document+"/download_link"))
		}},
		{"GET /questionnaires/{id} · Request: none", "", c.reads("/api/v1/questionnaires/" + c.full)},
		{"GET /questionnaires/{id} · Response: a Questionnaire including data (version with questions and options)", "", func() {
			o := c.fetch("/api/v1/questionnaires/" + c.full)
			c.members("it", "id name description owner_type owner_type_id is_generic is_published created_at data", o)
			data, _ := o["data"].(map[string]any)
			c.members("its version", "id version_number questionnaire_id created_at questions", data)
			c.equal("questions", fmt.Sprint(len(object(data).objects("questions"))), "8")
			c.equal("options of the fifth", fmt.Sprint(len(object(data).objects("questions")[4].objects("options"))), "3")
		}},
		{"POST /{owner}/questionnaires/{questionnaire_id}/response · Request: JSON: answers (array of Answer)", "", func() {
			path := c.bob + "/questionnaires/" + c.more + "/response"
			c.answered("an array", "201", c.do("broker-a", http.MethodPost, path, c.answers(c.more, "text", `"x"`)))
			c.faultAt("without answers", "answers", c.do("broker-a", http.MethodPost, path, `{}`))
		}},
		{"POST /{owner}/questionnaires/{questionnaire_id}/response · Response: see notes", "", c.storedResponse},
		{"GET /entitlements/persons · Request: none", "", c.reads("/api/v1/entitlements/persons")},
		{"GET /entitlements/persons · Response: page: items (Entitlement), total, page, size, pages", "", c.pageOf("/api/v1/entitlements/persons", "items total page size pages", "id name description questionnaires created_at updated_at")},
		{"GET /entitlements/corporates · Request: none", "", c.reads("/api/v1/entitlements/corporates")},
		{"GET /entitlements/corporates · Response: same shape", "", c.pageOf("/api/v1/entitlements/corporates", "items total page size pages", "id name description questionnaires created_at updated_at")},
		{"POST /{owner}/entitlement_triggers · Request: JSON: entitlement_id (UUID, an id from the entitlement listing)", "", func() {
			ids := []string{c.entitlements().read()[0].text("id"), c.triggers["ann"].text("entitlement_id")}
			c.note("%v", ids)
			c.faultAt("no UUID", "entitlement_id", c.do("broker-a", http.MethodPost, c.ann+"/entitlement_triggers", `{"entitlement_id":"trading"}`))
			c.answered("not of the listing", "404 ENTITLEMENT_NOT_FOUND", c.do("broker-a", http.MethodPost, c.ann+"/entitlement_triggers", `{"entitlement_id":"`+c.full+`"}`))
		}},
		{"POST /{owner}/entitlement_triggers · Response: an entitlement trigger (status pending)", "", c.oneOf("status", []string{"pending"}, []string{"pending"}, c.createdTriggers())},
		{"GET /{owner}/entitlement_triggers · Request: none", "", c.reads(c.ann+"/entitlement_triggers", c.acme+"/entitlement_triggers")},
		{"GET /{owner}/entitlement_triggers · Response: object: items (triggers), total", "", func() {
			o := c.fetch(c.dan + "/entitlement_triggers")
			c.members("the object", "items total", o)
			c.equal("total", o.text("total"), fmt.Sprint(len(o.objects("items"))))
		}},
		{"GET /{owner}/pending_requirements · Request: none", "", c.reads(c.ann+"/pending_requirements", c.acme+"/pending_requirements")},
		{"GET /{owner}/pending_requirements · Response: JSON array of pending requirements", "", func() {
			c.members("an element", "reason pending_questionnaire_ids", c.pending(c.cara)[0])
			c.equal("where nothing is pending", string(c.get(c.ann+"/pending_requirements").Body), "[]")
		}},
		{hooks + " · Request: JSON: url (string, required, HTTPS)", "", func() {
			c.faultAt("without", "url", c.do("broker-a", http.MethodPost, "/api/v1/webhooks", `{}`))
			c.faultAt("http", "url", c.do("broker-a", http.MethodPost, "/api/v1/webhooks", `{"url":"http://127.0.0.1/"}`))
			c.like("one that is taken", c.hooked["/all"].text("url"), "^https://")
		}},
		{hooks + " · Request: include_all_events (boolean, optional, default true)", "", func() {
			c.equal("by default", c.hooked["/all"].text("include_all_events"), "true")
			c.equal("as it was asked", c.hooked["/some"].text("include_all_events"), "false")
			c.faultAt("no boolean", "include_all_events", c.do("broker-a", http.MethodPost, "/api/v1/webhooks", `{"url":"https://127.0.0.1/","include_all_events":"maybe"}`))
		}},
		{hooks + " · Request: event_types (array of string, optional, ignored when include_all_events is true)", "", func() {
			made := c.subscribe("/ignored", `,"include_all_events":true,"event_types":["no such type"]`)
			c.equal("event_types", made.text("event_types"), "[]")
			c.must(204, "broker-a", http.MethodDelete, "/api/v1/webhooks/"+made.text("id"), nil)
		}},
		{hooks + " · Response: a webhook registration including public_key", "", func() {
			c.members("the registration", "id key_id url event_types include_all_events public_key created_at", withoutNulls(c.hooked["/all"]))
		}},
		{"GET /webhooks · Request: none", "", c.reads("/api/v1/webhooks")},
		{"GET /webhooks · Response: page: items (webhook registrations), total, page, size, pages", "", func() {
			o := c.fetch("/api/v1/webhooks")
			c.members("the page", "items total page size pages", o)
			c.like("items", o.text("items"), `"public_key":"`)
		}},
		{"DELETE /webhooks/{webhook_id} · Request: none", "", c.deletes},
		{"DELETE /webhooks/{webhook_id} · Response: see notes", "", c.deletes},
		{"Rules 1. The uploaded file belongs to the entity in the path", "", func() {
			path := "/documents/" + c.documents[0].text("id")
			c.equal("under ann", fmt.Sprint(c.get(c.ann+path).Status), "200")
			c.answered("under bob", "404 DOCUMENT_NOT_FOUND", c.get(c.bob+path))
		}},
		{"Rules 1. the Document carries that entity as owner_type and owner_id", "", func() {
			c.equal("of a person", c.documents[0].text("owner_type")+" "+c.documents[0].text("owner_id"), "person "+ann)
			c.equal("of a corporate", c.documents[3].text("owner_type")+" "+c.documents[3].text("owner_id"), "corporate "+acme)
		}},
		{"Rules 2. The public_key is returned at registration and in the listing", "", func() {
			for _, w := range c.list("/api/v1/webhooks") {
				if w.text("id") == c.hooked["/all"].text("id") {
					c.equal("public_key", w.text("public_key"), c.hooked["/all"].text("public_key"))
				}
			}
		}},
		{"Rules 2. it must be kept to verify deliveries", "", c.verified},
		{"Rules 3. A single-choice answer carries one option id", "", c.oneOption},
		{"Rules 3. a multiple-choice answer carries an array of option ids", "", c.manyOptions},
		{"Not shown for this area. Pagination inputs (query parameter names) of list endpoints: not shown", "Lists: query `page` (from 1), `size` (1–100, default 50", c.pages},
		{"Not shown for this area. Which of category, orientation and file are required: not shown", "`file` required", func() {
			c.has(c.documents[2], "category", "undetermined", "orientation", "undetermined")
			c.note("without category and orientation: %s, %s", c.documents[2].text("category"), c.documents[2].text("orientation"))
			c.faultAt("without a file", "file", c.sendFile(c.ann, "", nil, "category", "cv"))
		}},
		{"Not shown for this area. Success status codes other than for login: not shown", "Creates 201", func() {
			_, made := c.register("persons", `{"external_id":"gus","first_name":"Gus","last_name":"Orr"}`)
			path := "/api/v1/persons/" + made.text("id")
			c.answered("a create", "201", c.do("broker-a", http.MethodPost, "/api/v1/persons", `{"external_id":"hal","first_name":"Hal","last_name":"Orr"}`))
			c.answered("an update", "200", c.do("broker-a", http.MethodPatch, path, `{"last_name":"Fox"}`))
			c.answered("a read", "200", c.get(path))
		}},
		{"Not shown for this area. Envelope of the document listing response: not shown", "documents, persons and corporates all five", c.pageOf(c.ann+"/documents", "items total page size pages", documentMembers)},
		{"Not shown for this area. Body of the response to submitting answers: not shown",
			"POST response → 201 `{id, questionnaire_id, questionnaire_version_id, owner_type, owner_id, answers, created_at}`", c.storedResponse},
		{"Not shown for this area. Response to deleting a webhook: not shown", "webhook delete 204 with no body, again → 404", c.deletes},
		{"Not shown for this area. Difference between the questionnaire listing with and without an owner id: not shown",
			"Without an owner id: published and generic ones of that owner type", func() {
				ids := func(path string) (out []string) {
					for _, q := range c.list(path) {
						out = append(out, q.text("id"))
					}
					return out
				}
				general, anns, bobs := ids(lists["persons"]), ids(lists["persons/{person_id}"]), ids("/api/v1/questionnaires/persons/"+c.owners["bob"].text("id"))
				c.equal("ann's own is in the general listing", fmt.Sprint(slices.Contains(general, c.own)), "false")
				c.equal("in ann's", fmt.Sprint(slices.Contains(anns, c.own)), "true")
				c.equal("in bob's", fmt.Sprint(slices.Contains(bobs, c.own)), "false")
				c.equal("a general one is in ann's", fmt.Sprint(slices.Contains(anns, c.full)), "true")
				c.equal("a draft is in any", fmt.Sprint(slices.Contains(anns, c.draft)), "false")
			}},
	}
	const listed = "id name description owner_type owner_type_id is_generic is_published created_at"
	for row, path := range lists {
		shape := "same shape"
		if row == "persons" {
			shape = "page: items (questionnaires without data), page, size"
		}
		out = append(out, check{"GET /questionnaires/" + row + " · Request: none", "", c.reads(path)},
			check{"GET /questionnaires/" + row + " · Response: " + shape, "", c.pageOf(path, "items page size", listed)})
	}
	return out
}

const documentMembers = "id category orientation name source owner_type owner_id created_at"

func withoutNulls(o object) object {
	out := make(object)
	for member, v := range o {
		if v != nil {
			out[member] = v
		}
	}
	return out
}

func (c *applicants) isDocument(o object) {
	c.t.Helper()
	c.members("a Document", documentMembers, withoutNulls(o))
}

// pageOf is a check of a list: its members, and those of its items.
func (c *applicants) pageOf(path, envelope, item string) func() {
	return func() {
		o := c.fetch(path)
		c.members(path, envelope, o)
		for _, one := range o.objects("items") {
			if got, want := one.members(), slices.Sorted(slices.Values(strings.Fields(item))); !slices.Equal(got, want) && !slices.Equal(withoutNulls(one).members(), want) {
				c.t.Errorf("%v, want %v", got, want)
			}
		}
		c.like("items", o.text("items"), `^\[\{`)
	}
}

// faultAt wants a request to be refused with 422 for a member of its body.
func (c *applicants) faultAt(name, member string, a answer) {
	c.t.Helper()
	var o object
	c.parse(a.Body, &o)
	i := slices.IndexFunc(o.objects("detail"), func(f object) bool { return strings.HasPrefix(f.text("loc"), `["body","`+member+`"`) })
	if c.note("%s: %d %s", name, a.Status, o.text("detail")); a.Status != 422 || i < 0 {
		c.t.Errorf("%s: %d %s, want 422 for %s", name, a.Status, a.Body, member)
	}
}

// needsToken asks without a token: only the login answers.
func (c *applicants) needsToken() {
	c.equal("login", fmt.Sprint(c.logIn("/auth/jwt/login", c.credentials("broker-a", c.password("broker-a"))).Status), "200")
	for _, path := range []string{c.ann + "/documents", "/api/v1/questionnaires/persons", "/api/v1/questionnaires/" + c.full, "/api/v1/entitlements/persons",
		c.ann + "/entitlement_triggers", c.ann + "/pending_requirements", "/api/v1/webhooks"} {
		c.answered(path, "401 Unauthorized", c.do("", http.MethodGet, path, nil))
	}
}

// bothForms looks at each route of an owner in both forms.
func (c *applicants) bothForms() {
	for _, of := range []struct{ path, document, questionnaire, name string }{
		{c.ann, c.documents[0].text("id"), c.more, "ann"}, {c.acme, c.documents[3].text("id"), c.company, "acme"},
	} {
		c.reads(of.path+"/documents", of.path+"/documents/"+of.document, of.path+"/documents/"+of.document+"/download_link", of.path+"/entitlement_triggers",
			of.path+"/pending_requirements")()
		c.answered("POST "+of.path+"/documents", "201", c.sendFile(of.path, "again.pdf", pdf()))
		c.answered("POST "+of.path+"/questionnaires/…/response", "201",
			c.do("broker-a", http.MethodPost, of.path+"/questionnaires/"+of.questionnaire+"/response", c.answers(of.questionnaire, "text", `"x"`)))
		c.equal("POST "+of.path+"/entitlement_triggers", c.triggers[of.name].text("status"), "pending")
	}
}

func (c *applicants) deletes() {
	made := c.subscribe("/deleted", "")
	a := c.do("broker-a", http.MethodDelete, "/api/v1/webhooks/"+made.text("id"), nil)
	c.equal("DELETE", fmt.Sprintf("%d %q", a.Status, a.Body), `204 ""`)
	c.answered("again", "404 WEBHOOK_NOT_FOUND", c.do("broker-a", http.MethodDelete, "/api/v1/webhooks/"+made.text("id"), nil))
}

func (c *applicants) pages() {
	all := c.list(c.ann + "/documents")
	second := c.fetch(c.ann + "/documents?page=2&size=1")
	c.equal("page", second.text("page"), "2")
	c.equal("size", second.text("size"), "1")
	c.equal("pages", second.text("pages"), second.text("total"))
	c.equal("the second", second.objects("items")[0].text("id"), all[1].text("id"))
	for _, query := range []string{"size=101", "size=0", "page=0"} {
		c.equal(query, fmt.Sprint(c.get(c.ann+"/documents?"+query).Status), "422")
	}
}

func (c *applicants) authenticationChecks() []check {
	return []check{
		{"1. The service uses JWT bearer tokens", "", func() {
			if !matches(`^[\w-]+\.[\w-]+\.[\w-]+$`, c.token("broker-a")) { // which is for no report
				c.t.Error("the token is no JWT")
			}
			c.answered("as Basic", "401 Unauthorized", c.do("", http.MethodGet, "/api/v1/webhooks", nil, "Authorization", "Basic "+c.token("broker-a")))
			c.equal("as Bearer", fmt.Sprint(c.do("", http.MethodGet, "/api/v1/webhooks", nil, "Authorization", "Bearer "+c.token("broker-a")).Status), "200")
		}},
		{"1. A client obtains a token from the login endpoint with a username and password assigned out of band, then sends Authorization: Bearer <ACCESS_TOKEN> on every later request", "", func() {
			token := c.login("broker-b", c.password("broker-b"))
			c.equal("with it", fmt.Sprint(c.do("", http.MethodGet, "/api/v1/webhooks", nil, "Authorization", "Bearer "+token).Status), "200")
			c.equal("without", fmt.Sprint(c.do("", http.MethodGet, "/api/v1/webhooks", nil).Status), "401")
		}},
		{"2. There is no refresh endpoint", "", func() {
			for _, path := range []string{"/auth/jwt/refresh", "/auth/refresh"} {
				c.equal(path, fmt.Sprint(c.do("broker-a", http.MethodPost, path, nil).Status), "404")
			}
		}},
		{"2. When a token expires or becomes invalid, the client logs in again", "", c.logsInAgain},
		{"3. Login failures: see Errors", "", func() {
			c.answered("a wrong password", "400 LOGIN_BAD_CREDENTIALS", c.logIn("/auth/jwt/login", c.credentials("nobody-1", "wrong")))
		}},
		{"4. Lifetime of an access token: not shown", "Token 3600 s", func() { c.equal("exp - iat", fmt.Sprint(c.lifetime()), "3600") }},
		{"5. Webhook deliveries are authenticated by an Ed25519 signature (see Events)", "", c.verified},
	}
}

func (c *applicants) logsInAgain() {
	const password = "a password of her own"
	made := c.must(201, "operator", http.MethodPost, "/admin/v1/users", map[string]any{"username": "once", "password": password, "broker": "alpha",
		"scopes": []string{"onboarding"}, "is_active": true, "is_verified": true})
	c.tokens["once"] = c.login("once", password, made)
	c.equal("a good token", fmt.Sprint(c.do("once", http.MethodGet, "/api/v1/webhooks", nil).Status), "200")
	c.must(200, "operator", http.MethodPatch, "/admin/v1/users/once", `{"is_active":false}`)
	waitFor(c.t, "the token to be invalid", func() bool { return c.do("once", http.MethodGet, "/api/v1/webhooks", nil).Status == 401 })
	c.note("an invalid one=401")
	back := c.must(200, "operator", http.MethodPatch, "/admin/v1/users/once", `{"is_active":true}`)
	c.tokens["once"] = c.login("once", password, back)
	c.equal("after another login", fmt.Sprint(c.do("once", http.MethodGet, "/api/v1/webhooks", nil).Status), "200")
}

func (c *applicants) errorChecks() []check {
	const user = "/admin/v1/users"
	make := func(name string, active, verified bool) answer {
		return c.must(201, "operator", http.MethodPost, user, map[string]any{"username": name, "password": "a password of her own", "broker": "alpha",
			"scopes": []string{"onboarding"}, "is_active": active, "is_verified": verified})
	}
	tried := func(made answer, name string) answer {
		return c.insist(400, func() answer { // this node may know the user a moment later
			return c.do("", http.MethodPost, "/auth/jwt/login", c.credentials(name, "a password of her own").Encode(), "Content-Type", "application/x-www-form-urlencoded",
				"X-Min-Log-Position", made.Header.Get("X-Log-Position"))
		})
	}
	return []check{
		{"POST /auth/jwt/login 400 LOGIN_BAD_CREDENTIALS · Condition: wrong username or password, or the user is inactive", "", func() {
			c.answered("a wrong username", "400 LOGIN_BAD_CREDENTIALS", c.logIn("/auth/jwt/login", c.credentials("nobody-2", "wrong")))
			c.answered("a wrong password", "400 LOGIN_BAD_CREDENTIALS", c.logIn("/auth/jwt/login", c.credentials("auditor", "wrong")))
			c.answered("an inactive user", "400 LOGIN_BAD_CREDENTIALS", tried(make("inactive", false, true), "inactive"))
		}},
		{"POST /auth/jwt/login 400 LOGIN_USER_NOT_VERIFIED · Condition: the user exists but is not verified", "", func() {
			c.answered("a user who is not verified", "400 LOGIN_USER_NOT_VERIFIED", tried(make("unverified", true, false), "unverified"))
		}},
		{"POST /auth/jwt/login 422 (validation error) · Condition: invalid input, for example a missing required field", "", func() {
			c.faultAt("without a password", "password", c.logIn("/auth/jwt/login", url.Values{"username": {"broker-a"}}))
		}},
		{"The webhook receiver is expected to reject an invalid signature with 400 or 401", "", c.rejectsForgery},
		{"Shape of error bodies: not shown", "Errors `{\"detail\":\"CODE\"}`", func() {
			c.equal("a code", string(c.get("/api/v1/questionnaires/"+c.draft).Body), `{"detail":"QUESTIONNAIRE_NOT_FOUND"}`)
			var o object
			c.parse(c.do("broker-a", http.MethodPost, "/api/v1/webhooks", `{}`).Body, &o)
			c.members("a fault", "type loc msg input", o.objects("detail")[0])
		}},
		{"Errors of all other endpoints (missing or expired token, unknown ids, invalid answers): not shown", "401 `{\"detail\":\"Unauthorized\"}`, 403 `{\"detail\":\"Forbidden\"}`", func() {
			c.answered("a missing token", "401 Unauthorized", c.do("", http.MethodGet, "/api/v1/webhooks", nil))
			c.answered("a bad one", "401 Unauthorized", c.do("", http.MethodGet, "/api/v1/webhooks", nil, "Authorization", "Bearer x"))
			c.answered("an unknown person", "404 PERSON_NOT_FOUND", c.get("/api/v1/persons/"+c.full))
			c.answered("an unknown corporate", "404 CORPORATE_NOT_FOUND", c.get("/api/v1/corporates/"+c.full))
			c.answered("of another tenant", "404 PERSON_NOT_FOUND", c.do("broker-b", http.MethodGet, c.ann, nil))
			c.answered("without the scope", "403 Forbidden", c.do("auditor", http.MethodPost, "/api/v1/persons", `{}`))
			c.wrongly("integer", `"seven"`)
		}},
	}
}

// rejectsForgery sends a request with a signature by nobody, and has the venue meet a receiver that knows another key.
func (c *applicants) rejectsForgery() {
	made := c.sendAs(201, "broker-a", http.MethodPost, "/api/v1/webhooks", `{"url":"`+c.hooks.URL+`/stranger","include_all_events":false,"event_types":["test"]}`)
	c.hooks.knows("/stranger", c.hooked["/all"].text("public_key"))
	path := "/api/v1/webhooks/" + made.text("id")
	sent := c.sendAs(201, "broker-a", http.MethodPost, path+"/test", "")
	waitFor(c.t, "the receiver to refuse it", func() bool { return len(c.hooks.came("/stranger", 401)) > 0 })
	waitFor(c.t, "the attempt to be told", func() bool {
		d := c.fetch(path + "/deliveries/" + sent.text("id"))
		tries := d.objects("attempts")
		return len(tries) > 0 && tries[0].text("status_code") == "401" && d.text("status") != "delivered"
	})
	c.note("signed by another key: 401, and it is tried again")
}

func (c *applicants) limitChecks() []check {
	return []check{
		{"Lists observed with page size 50", "", c.sizeIs50},
		{"Rate limits, maximum upload size, accepted file types, and the number of answers per response: not shown", "Limits: 500 answers, text 10,000 characters, 100 ids an array, 1 MiB", func() {
			big := append(pdf(), make([]byte, 20<<20)...)
			c.equal("a file of more than 20 MiB", fmt.Sprint(c.sendFile(c.bob, "big.pdf", big).Status), "413")
			c.equal("a file of no known type", fmt.Sprint(c.sendFile(c.bob, "a.exe", []byte("MZ is no document")).Status), "415")
			one := `{"question_id":"` + c.full + `","answer_integer":1}`
			c.equal("501 answers", fmt.Sprint(c.do("broker-a", http.MethodPost, c.bob+"/questionnaires/"+c.full+"/response",
				`{"answers":[`+one+strings.Repeat(","+one, 500)+`]}`).Status), "422")
			c.wrongly("text", `"`+strings.Repeat("x", 10_001)+`"`)
			limit, _ := c.fetch("/v1/limits")["rate_limit"].(map[string]any)
			c.equal("requests a second", object(limit).text("per_second"), "none")
		}},
	}
}

func (c *applicants) versioningChecks() []check {
	return []check{
		{"Resource paths are under the prefix /api/v1", "", c.reads("/api/v1/webhooks", "/api/v1/questionnaires/persons", "/api/v1/entitlements/persons", c.ann+"/documents")},
		{"The login path carries no version prefix", "", c.loginPath},
		{"Questionnaires are versioned: each version has an incremental version_number and fixes the questions, options, types and order", "", c.numbered},
		{"the questionnaire response refers to a version", "", func() {
			for _, r := range c.responses {
				data, _ := c.fetch("/api/v1/questionnaires/" + r.text("questionnaire_id"))["data"].(map[string]any)
				c.equal("questionnaire_version_id", r.text("questionnaire_version_id"), object(data).text("id"))
			}
		}},
		{"Deprecation and compatibility policy of the onboarding interface: not shown", nothing, func() {
			a := c.get("/api/v1/webhooks")
			c.equal("Deprecation and Sunset", a.Header.Get("Deprecation")+a.Header.Get("Sunset"), "")
		}},
	}
}
