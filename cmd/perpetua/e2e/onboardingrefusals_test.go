package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

// TestOnboardingRefusals: whose records are another tenant's, who may do what at all, and every way to answer a question wrongly.
func TestOnboardingRefusals(t *testing.T) {
	t.Parallel()
	c := startIntake(t)
	r := &refusals{intake: c, alpha: make(map[string]string), beta: make(map[string]string)}
	r.prepare()
	c.within(t, "tenants", func(*testing.T) { r.tenants() })
	c.within(t, "lists", func(*testing.T) { r.lists() })
	c.within(t, "scopes", func(*testing.T) { r.scopes() })
	c.within(t, "answers", func(*testing.T) { r.wrongAnswers() })
}

// refusals is a venue with records of two tenants: by the name of a route's parameter, the id of one of alpha's, and of one of
// beta's.
type refusals struct {
	*intake
	alpha, beta map[string]string
	full        string // a questionnaire that asks for everything
	nobodys     string // the id of nothing
}

func (r *refusals) prepare() {
	r.nobodys = "01000000-0000-4000-8000-000000000000"
	r.full = r.questionnaire("Everything", "person", "", everyType())
	company := r.questionnaire("The company", "corporate", "", everyType()[:1])
	manual := map[string]string{"person": r.entitlement("trading", "person", "manual", "", r.full), "corporate": r.entitlement("custody", "corporate", "manual", "", company)}
	for _, of := range []struct {
		user string
		ids  map[string]string
	}{{"broker-a", r.alpha}, {"broker-b", r.beta}} {
		post := func(path, body string) string {
			return r.sendAs(201, of.user, http.MethodPost, path, body).text("id")
		}
		of.ids["webhook_id"] = post("/api/v1/webhooks", `{"url":"`+r.hooks.URL+`/none"}`)
		of.ids["delivery_id"] = r.sendAs(201, of.user, http.MethodPost, "/api/v1/webhooks/"+of.ids["webhook_id"]+"/test", "").text("id")
		of.ids["person_id"] = post("/api/v1/persons", `{"external_id":"ann","first_name":"Ann","last_name":"Lee"}`)
		of.ids["corporate_id"] = post("/api/v1/corporates", `{"external_id":"acme","legal_name":"Acme Ltd"}`)
		for kind, path := range map[string]string{"person": "/api/v1/persons/" + of.ids["person_id"], "corporate": "/api/v1/corporates/" + of.ids["corporate_id"]} {
			of.ids[kind+" trigger_id"] = post(path+"/entitlement_triggers", `{"entitlement_id":"`+manual[kind]+`"}`)
			q := map[string]string{"person": r.full, "corporate": company}[kind]
			of.ids[kind+" questionnaire_id"] = q
			of.ids[kind+" response_id"] = post(path+"/questionnaires/"+q+"/response", r.answers(q, "text", `"x"`))
			body, contentType := r.form("a.pdf", pdf(), "category", "cv")
			of.ids[kind+" document_id"] = r.sendAs(201, of.user, http.MethodPost, path+"/documents", body, "Content-Type", contentType).text("id")
		}
	}
	r.alpha["id"] = r.questionnaire("For Ann", "person", r.alpha["person_id"], everyType()[:1]) // of GET /questionnaires/{id}
	r.beta["id"] = r.full
}

// operations are those of the OpenAPI file under /api/v1 that need a token.
func (r *refusals) operations() (out []conform.Route) {
	r.t.Helper()
	api, err := openAPI()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, route := range api.Routes() {
		where := "/paths/" + conform.Escape(route.Path) + "/" + strings.ToLower(route.Method) + "/security"
		none, _ := api.At(where)
		if list, is := none.([]any); strings.HasPrefix(route.Path, "/api/v1/") && (!is || len(list) > 0) {
			out = append(out, route)
		}
	}
	if len(out) < 40 {
		r.t.Fatalf("the file describes %d operations under /api/v1", len(out))
	}
	return out
}

// parameters are the names of a path's parameters.
func parameters(path string) (names []string) {
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

// fill puts ids into a path's parameters.
func (r *refusals) fill(path string, id func(parameter string) string) string {
	r.t.Helper()
	kind := "person"
	if strings.Contains(path, "{corporate_id}") {
		kind = "corporate"
	}
	for _, p := range parameters(path) {
		value := id(p)
		if value == "" {
			value = id(kind + " " + p)
		}
		if value == "" {
			r.t.Fatalf("%s: there is no %s", path, p)
		}
		path = strings.Replace(path, "{"+p+"}", value, 1)
	}
	return path
}

// unknown is the code of a record that is not there, by the parameter that names it.
var unknown = map[string]string{"person_id": "PERSON_NOT_FOUND", "corporate_id": "CORPORATE_NOT_FOUND", "document_id": "DOCUMENT_NOT_FOUND",
	"questionnaire_id": "QUESTIONNAIRE_NOT_FOUND", "id": "QUESTIONNAIRE_NOT_FOUND", "response_id": "RESPONSE_NOT_FOUND",
	"trigger_id": "ENTITLEMENT_TRIGGER_NOT_FOUND", "webhook_id": "WEBHOOK_NOT_FOUND", "delivery_id": "DELIVERY_NOT_FOUND"}

// ask sends an operation with a body that is wrong for most, since what is not there is told before.
func (r *refusals) ask(user string, route conform.Route, path string) answer {
	r.t.Helper()
	var body any
	if route.Method != http.MethodGet && route.Method != http.MethodDelete {
		body = `{}`
	}
	return r.do(user, route.Method, path, body)
}

// refused wants an operation to be answered with exactly this.
func (r *refusals) refusedAs(status int, detail string, a answer, what string) {
	r.t.Helper()
	if want := `{"detail":"` + detail + `"}`; a.Status != status || string(a.Body) != want {
		r.t.Errorf("%s: %d %s, want %d %s", what, a.Status, a.Body, status, want)
	}
}

// tenants has beta ask for each of alpha's records by every operation that names one: it is not there, as one that never was. Then it
// asks under its own owner, or its own webhook, for what is below another's.
func (r *refusals) tenants() {
	named := 0
	for _, route := range r.operations() {
		names := parameters(route.Path)
		if len(names) == 0 || names[0] == "questionnaire_id" {
			continue
		}
		named++
		for what, id := range map[string]func(string) string{
			"alpha's":  func(p string) string { return r.alpha[p] },
			"nobody's": func(p string) string { return r.nobodys },
		} {
			path := r.fill(route.Path, id)
			r.refusedAs(404, unknown[names[0]], r.ask("broker-b", route, path), what+" "+route.Method+" "+path)
		}
		last := names[len(names)-1]
		if len(names) < 2 || last == "questionnaire_id" { // which are no tenant's
			continue
		}
		path := r.fill(route.Path, func(p string) string {
			if strings.HasSuffix(p, last) {
				return r.alpha[p]
			}
			return r.beta[p]
		})
		r.refusedAs(404, unknown[last], r.ask("broker-b", route, path), "alpha's below beta's: "+route.Method+" "+path)
	}
	if named < 30 {
		r.t.Errorf("only %d operations name a record", named)
	}
	r.t.Logf("%d operations name a record", named)
}

// lists has beta read every list: it finds its own records, and none of alpha's.
func (r *refusals) lists() {
	for _, route := range r.operations() {
		if route.Method != http.MethodGet {
			continue
		}
		path := r.fill(route.Path, func(p string) string { return r.beta[p] })
		a := r.do("broker-b", http.MethodGet, path, nil)
		if a.Status != 200 {
			r.t.Errorf("GET %s: %d %.300s", path, a.Status, a.Body)
		}
		for name, id := range r.alpha {
			if !strings.HasSuffix(name, "questionnaire_id") && strings.Contains(string(a.Body), id) {
				r.t.Errorf("beta finds alpha's %s at %s: %.300s", name, path, a.Body)
			}
		}
	}
}

// scopes has nobody, somebody without the scope, and auditor and operator, who may only read, ask for everything.
func (r *refusals) scopes() {
	const password = "a password of her own"
	r.must(201, "broker-a", http.MethodPost, "/v1/customers", `{"customer_code":"ANNA"}`)
	for name, extra := range map[string]string{"trader": ``, "confined": `,"customer_code":"ANNA"`} {
		scopes := map[string]string{"trader": `["trade","read"]`, "confined": `["onboarding","read"]`}[name]
		var made answer
		waitFor(r.t, "the customer to be known where users are made", func() bool {
			made = r.do("operator", http.MethodPost, "/admin/v1/users", `{"username":"`+name+`","password":"`+password+`","broker":"alpha","scopes":`+scopes+
				`,"is_active":true,"is_verified":true`+extra+`}`)
			return made.Status == 201
		})
		r.tokens[name] = r.login(name, password, made)
	}
	for _, route := range r.operations() {
		path := r.fill(route.Path, func(p string) string { return r.alpha[p] })
		r.refusedAs(401, "Unauthorized", r.ask("", route, path), "without a token: "+route.Method+" "+path)
		for _, user := range []string{"trader", "confined"} { // one has no scope for it, one is for a trading account
			r.refusedAs(403, "Forbidden", r.ask(user, route, path), user+": "+route.Method+" "+path)
		}
		for _, user := range []string{"auditor", "operator"} {
			if a := r.ask(user, route, path); route.Method != http.MethodGet {
				r.refusedAs(403, "Forbidden", a, user+": "+route.Method+" "+path)
			} else if a.Status != 200 {
				r.t.Errorf("%s may not GET %s: %d %.300s", user, path, a.Status, a.Body)
			}
		}
	}
}

// wrongAnswer is an answer that is refused: the member and its JSON, and where the fault is below the answer.
type wrongAnswer struct{ field, value, at, kind string }

// wrongAnswers are, for each type of question, every way to answer it wrongly.
func (r *refusals) wrongAnswers() {
	of := "/api/v1/persons/" + r.alpha["person_id"]
	path := of + "/questionnaires/" + r.full + "/response"
	data, _ := r.fetch("/api/v1/questionnaires/" + r.full)["data"].(map[string]any)
	questions := make(map[string]object)
	for _, q := range object(data).objects("questions") {
		questions[q.text("question_type")] = q
	}
	option := func(kind string, n int) string { return `"` + questions[kind].objects("options")[n].text("id") + `"` }
	mine, theirs, corporates, nobodys := `"`+r.alpha["person document_id"]+`"`, `"`+r.beta["person document_id"]+`"`, `"`+r.alpha["corporate document_id"]+`"`, `"`+r.nobodys+`"`
	many := func(n int, one string) string { return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]" }
	right := map[string]string{"text": `"x"`, "integer": `7`, "bool": `true`, "country": `"DEU"`, "single_choice": option("single_choice", 0),
		"multiple_choice": "[" + option("multiple_choice", 0) + "]", "document": mine, "multiple_documents": "[" + mine + "]"}
	wrong := map[string][]wrongAnswer{
		"text": {{value: `7`}, {value: `true`}, {value: `["x"]`}, {value: `{}`}, {value: `""`, kind: "missing"}, {value: `"` + strings.Repeat("x", 10_001) + `"`, kind: "string_too_long"},
			{value: `"\u0000"`}, {value: `"a\u0007"`}, {value: `"\ud800"`}},
		"integer":       {{value: `"7"`}, {value: `7.5`}, {value: `1e40`}, {value: `9223372036854775808`}, {value: `true`}, {value: `[7]`}},
		"bool":          {{value: `"true"`}, {value: `1`}, {value: `[]`}},
		"country":       {{value: `"DE"`}, {value: `"deu"`}, {value: `"XYZ"`}, {value: `276`}, {value: `["DEU"]`}, {value: `"Germany"`}},
		"single_choice": {{value: `"red"`}, {value: nobodys}, {value: option("multiple_choice", 0)}, {value: "[" + option("single_choice", 0) + "]"}, {value: `1`}},
		"multiple_choice": {{value: option("multiple_choice", 0)}, {value: `["red"]`, at: `,0]`}, {value: "[" + option("multiple_choice", 1) + "," + nobodys + "]", at: `,1]`},
			{value: "[" + option("single_choice", 0) + "]", at: `,0]`}, {value: many(2, option("multiple_choice", 0)), at: `,1]`}, {value: many(101, option("multiple_choice", 0)), kind: "too_long"}, {value: `{}`}},
		"document": {{value: `"a.pdf"`}, {value: nobodys}, {value: theirs}, {value: corporates}, {value: "[" + mine + "]"}, {value: `1`}},
		"multiple_documents": {{value: mine}, {value: "[" + theirs + "]", at: `,0]`}, {value: "[" + mine + "," + corporates + "]", at: `,1]`}, {value: many(2, mine), at: `,1]`},
			{value: many(101, mine), kind: "too_long"}, {value: `[1]`, at: `,0]`}},
	}
	answer := func(kind, field, value string) string {
		return `{"question_id":"` + questions[kind].text("id") + `","` + field + `":` + value + `}`
	}
	before := r.fetch(of + "/responses").text("total")
	for kind, cases := range wrong {
		for other, field := range answerField { // the member of each other type
			if other != kind {
				cases = append(cases, wrongAnswer{field: field, value: right[other]})
			}
		}
		for _, w := range cases {
			if w.field == "" {
				w.field = answerField[kind]
			}
			text, n := answer(kind, w.field, w.value), 0
			if kind != "text" {
				text, n = answer("text", "answer_text", `"x"`)+","+text, 1
			}
			r.faulty(path, `{"answers":[`+text+`]}`, fmt.Sprintf(`["body","answers",%d,"%s"%s`, n, w.field, w.at), w.kind)
		}
		text, n := `{"question_id":"`+questions[kind].text("id")+`"}`, 0
		both := answer(kind, answerField[kind], right[kind])
		extra := map[bool]string{true: `,"answer_boolean":true}`, false: `,"answer_text":"x"}`}[kind == "text"]
		null := strings.TrimSuffix(text, "}") + `,"` + answerField[kind] + `":null}`
		if kind != "text" {
			n = 1
			text, both, null = answer("text", "answer_text", `"x"`)+","+text, answer("text", "answer_text", `"x"`)+","+both, answer("text", "answer_text", `"x"`)+","+null
		}
		r.faulty(path, `{"answers":[`+text+`]}`, fmt.Sprintf(`["body","answers",%d`, n), "missing") // no member
		r.faulty(path, `{"answers":[`+null+`]}`, fmt.Sprintf(`["body","answers",%d`, n), "missing") // null counts as absent
		r.faulty(path, `{"answers":[`+strings.TrimSuffix(both, "}")+extra+`]}`, fmt.Sprintf(`["body","answers",%d`, n), "")
	}
	text := answer("text", "answer_text", `"x"`)
	for body, loc := range map[string]string{
		`{"answers":[` + text + `,` + text + `]}`:                                      `["body","answers",1,"question_id"]`,
		`{"answers":[` + text + `,{"question_id":` + nobodys + `,"answer_text":"x"}]}`: `["body","answers",1,"question_id"]`,
		`{"answers":[` + text + `,{"question_id":"x","answer_text":"x"}]}`:             `["body","answers",1,"question_id"]`,
		`{"answers":[` + text + `,{"answer_text":"x"}]}`:                               `["body","answers",1,"question_id"]`,
		`{"answers":[` + text + `,7]}`:                                                 `["body","answers",1`,
		`{"answers":[]}`:                                                               `["body","answers"`,
		`{"answers":null}`:                                                             `["body","answers"`,
		`{"answers":{}}`:                                                               `["body","answers"`,
		`{}`:                                                                           `["body","answers"`,
		`[]`:                                                                           `["body"`,
		`{"answers":[` + text + `]`:                                                    `["body",`,
		`{"answers":[` + strings.TrimSuffix(strings.Repeat(text+",", 501), ",") + `]}`: `["body","answers"]`,
	} {
		r.faulty(path, body, loc, "")
	}
	// All that is wrong is told at once.
	all := r.faulty(path, `{"answers":[`+answer("integer", "answer_integer", `"7"`)+`,`+answer("country", "answer_country", `"DE"`)+`,`+answer("document", "answer_document_id", theirs)+`]}`,
		`["body","answers"`, "")
	for _, loc := range []string{`["body","answers",0,"answer_integer"]`, `["body","answers",1,"answer_country"]`, `["body","answers",2,"answer_document_id"]`} {
		if !slices.ContainsFunc(all, func(f object) bool { return f.text("loc") == loc }) {
			r.t.Errorf("no fault at %s: %v", loc, all)
		}
	}
	if after := r.fetch(of + "/responses").text("total"); after != before {
		r.t.Errorf("%s responses became %s", before, after)
	}
	for _, empty := range []string{`{"answers":[` + text + `,` + answer("multiple_choice", "answer_option_ids", `[]`) + `,` + answer("country", "answer_country", `""`) + `]}`} {
		r.must(201, "broker-a", http.MethodPost, path, empty) // what is optional may be answered by nothing
	}
}

// faulty wants a response to be refused with a fault at a place, of a type unless that is "", and returns all faults.
func (r *refusals) faulty(path, body, loc, kind string) []object {
	r.t.Helper()
	a := r.do("broker-a", http.MethodPost, path, body)
	var o object
	r.parse(a.Body, &o)
	all := o.objects("detail")
	found := slices.ContainsFunc(all, func(f object) bool {
		return strings.HasPrefix(f.text("loc"), loc) && (kind == "" || f.text("type") == kind) && f.text("msg") != ""
	})
	if a.Status != 422 || !found {
		r.t.Errorf("%.300s: %d %.300s, want a fault %s at %s", body, a.Status, a.Body, kind, loc)
	}
	return all
}
