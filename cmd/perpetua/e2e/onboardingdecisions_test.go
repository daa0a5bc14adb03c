package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestOnboardingDecisions looks at what is decided where the document of the onboarding interface is silent, as far as no other test
// of the running venue does: registrations, deliveries and the feed; lists and cases; and what is left of who is erased.
func TestOnboardingDecisions(t *testing.T) {
	t.Parallel()
	c := &decided{intake: startIntake(t, "--webhook-retries", "100ms,200ms")}
	c.hooks.answer = func(p parcel, before int) int {
		if p.Path == "/dead" {
			return 500
		}
		return 200
	}
	c.within(t, "registrations", func(*testing.T) { c.registrations() })
	c.within(t, "rotation", func(*testing.T) { c.rotation() })
	c.within(t, "cases", func(*testing.T) { c.cases() })
	c.within(t, "deliveries", func(*testing.T) { c.deliveries() })
	c.within(t, "feed", func(*testing.T) { c.feed() })
	c.within(t, "versions", func(*testing.T) { c.versions() })
	c.within(t, "export", func(*testing.T) { c.exported() })
	c.within(t, "erasure", func(*testing.T) { c.erased() })
}

// decided is a venue with one person, ann, whose case has ended, and one webhook that wants everything.
type decided struct {
	*intake
	hook         object
	ann          string
	owner        object
	full, more   string
	ended, video object // her triggers
	document     object
}

// detail wants an answer to be refused with a code.
func (c *decided) detail(status int, code string, a answer) {
	c.t.Helper()
	if want := `{"detail":"` + code + `"}`; a.Status != status || string(a.Body) != want {
		c.t.Errorf("%d %s, want %d %s", a.Status, a.Body, status, want)
	}
}

// faultOf wants an answer of status 422 with a fault at a member of the body.
func (c *decided) faultOf(member string, a answer) {
	c.t.Helper()
	var o object
	c.parse(a.Body, &o)
	if a.Status != 422 || !slices.ContainsFunc(o.objects("detail"), func(f object) bool { return strings.HasPrefix(f.text("loc"), `["body","`+member+`"`) }) {
		c.t.Errorf("%d %s, want a fault of %s", a.Status, a.Body, member)
	}
}

func (c *decided) post(path, body string) answer {
	c.t.Helper()
	return c.do("broker-a", http.MethodPost, path, body)
}

func (c *decided) registrations() {
	const hooks = "/api/v1/webhooks"
	for _, url := range []string{"http://a.example/", "https://", "https://a:b@a.example/", "a.example", "ftp://a.example", "https://a.example/\\u0007", ""} {
		c.faultOf("url", c.post(hooks, `{"url":"`+url+`"}`))
	}
	c.faultOf("event_types", c.post(hooks, `{"url":"https://a.example/","include_all_events":false}`))
	c.faultOf("event_types", c.post(hooks, `{"url":"https://a.example/","include_all_events":false,"event_types":[]}`))
	c.faultOf("event_types", c.post(hooks, `{"url":"https://a.example/","include_all_events":false,"event_types":["test","orders"]}`))
	c.hook = c.subscribe("/all", `,"event_types":["whatever"]`)
	c.has(c.hook, "include_all_events", "true", "event_types", "[]")
	one := c.subscribe("/some", `,"include_all_events":false,"event_types":["entitlementFailed"]`)
	c.detail(409, "EVENT_NOT_SELECTED", c.post(hooks+"/"+one.text("id")+"/test", ""))
	c.detail(409, "WEBHOOK_NOT_DISABLED", c.post(hooks+"/"+one.text("id")+"/enable", ""))
	var made []string
	for n := 2; n < 20; n++ {
		made = append(made, c.subscribe(fmt.Sprint("/", n), "").text("id"))
	}
	c.detail(409, "TOO_MANY_WEBHOOKS", c.post(hooks, `{"url":"https://a.example/"}`))
	if page := c.fetch(hooks + "?size=7"); page.text("total") != "20" || page.text("pages") != "3" || page.objects("items")[0].text("id") != made[len(made)-1] {
		c.t.Errorf("%v", page)
	}
	if past := c.fetch(hooks + "?page=9"); past.text("items") != "[]" || past.text("total") != "20" {
		c.t.Errorf("%v", past)
	}
	for _, id := range made {
		c.must(204, "broker-a", http.MethodDelete, hooks+"/"+id, nil)
	}
}

// rotation has a registration get another key: both sign as Standard Webhooks has it, the old one alone in the other header.
func (c *decided) rotation() {
	made := c.subscribe("/rotated", `,"include_all_events":false,"event_types":["test"]`)
	path := "/api/v1/webhooks/" + made.text("id")
	rotated := c.sendAs(200, "broker-a", http.MethodPost, path+"/rotate", "")
	next := rotated.text("next_public_key")
	c.has(rotated, "id", made.text("id"), "public_key", made.text("public_key"))
	if next == "" || next == made.text("public_key") {
		c.t.Fatalf("%v", rotated)
	}
	event := c.sendAs(201, "broker-a", http.MethodPost, path+"/test", "").text("event_id")
	p := c.hooks.await("/rotated", "the test", func(o object) bool { return o.text("id") == event })
	for _, key := range []string{made.text("public_key"), next} {
		public, err := base64.StdEncoding.DecodeString(key)
		if err != nil || !signsStandard(public, p) || signsBody(public, p) != (key == made.text("public_key")) {
			c.t.Errorf("by %s: %v", key, p.Header)
		}
	}
	if n := len(strings.Fields(p.Header.Get("webhook-signature"))); n != 2 {
		c.t.Errorf("%d signatures: %s", n, p.Header.Get("webhook-signature"))
	}
	if want := `{"id":"` + event + `","timestamp":"`; !strings.HasPrefix(string(p.Body), want) || !strings.HasSuffix(string(p.Body), `","type":"test","details":{}}`) {
		c.t.Errorf("a test is %s", p.Body)
	}
	c.must(204, "broker-a", http.MethodDelete, path, nil)
}

// cases walks a case by every way to be asked for something, and reads it as the tenant and as an operator.
func (c *decided) cases() {
	c.full, c.more = c.questionnaire("Everything", "person", "", everyType()), c.questionnaire("More", "person", "", everyType()[:1])
	manual := c.entitlement("trading", "person", "manual", "", c.full)
	video := c.entitlement("lending", "person", "automatic", `,"video_identification":true`)
	c.ann, c.owner = c.register("persons", `{"external_id":"ann","first_name":"Ann","last_name":"Lee"}`)
	c.document = c.upload(c.ann, "a.pdf", pdf(), "category", "cv")
	if nothing := c.do("broker-a", http.MethodGet, c.ann+"/pending_requirements", nil); string(nothing.Body) != "[]" {
		c.t.Errorf("pending at first: %s", nothing.Body)
	}
	c.ended = c.trigger(c.ann, manual)
	c.video = c.trigger(c.ann, video)
	c.until(c.ann, c.ended.text("id"), "ongoing")
	c.until(c.ann, c.video.text("id"), "ongoing")
	c.act(c.ended.text("id"), "request_information", "MORE", `,"questionnaire_ids":["`+c.more+`"],"internal_reason":"for us"`)
	var reasons []string
	for _, p := range c.pending(c.ann) {
		reasons = append(reasons, p.text("reason")+" "+p.text("pending_questionnaire_ids"))
	}
	if want := []string{`trading ["` + c.full + `"]`, `video_identification []`, `Because of MORE. ["` + c.more + `"]`}; !slices.Equal(reasons, want) {
		c.t.Errorf("pending are %q, want %q", reasons, want)
	}
	for action, code := range map[string]string{"approve": "REQUIREMENTS_OPEN", "release": "TRANSITION_NOT_ALLOWED"} {
		a := c.do("operator", http.MethodPost, "/admin/v1/entitlement_triggers/"+c.ended.text("id")+"/"+action, `{"code":"X","reason":"y"}`)
		if a.Status != 409 || a.get("code") != code {
			c.t.Errorf("%s: %d %s", action, a.Status, a.Body)
		}
	}
	first := c.respondInFull(c.ann, c.full, c.document.text("id"))
	second := c.respond(c.ann, c.full, "text", `"again"`)
	c.respond(c.ann, c.more, "text", `"more"`)
	page := c.fetch(c.ann + "/responses?size=2")
	if page.text("total") != "3" || page.text("pages") != "2" || page.objects("items")[1].text("id") != second.text("id") {
		c.t.Errorf("%v", page)
	}
	if read := c.fetch(c.ann + "/responses/" + first.text("id")); fmt.Sprint(read) != fmt.Sprint(first) {
		c.t.Errorf("%v, want %v", read, first)
	}
	c.act(c.ended.text("id"), "reject", "NO", "")
	c.timelines()
	if page := c.fetch(c.ann + "/entitlement_triggers?size=1&page=2"); page.text("total") != "2" || page.objects("items")[0].text("id") != c.ended.text("id") {
		c.t.Errorf("%v", page)
	}
}

// timelines reads a case as its tenant sees it, and as an operator does.
func (c *decided) timelines() {
	path := c.ann + "/entitlement_triggers/" + c.ended.text("id") + "/timeline"
	var tenants, operators []object
	c.parse(c.must(200, "broker-a", http.MethodGet, path, nil).Body, &tenants)
	c.parse(c.must(200, "operator", http.MethodGet, path, nil).Body, &operators)
	if len(tenants) != len(operators) || len(tenants) < 5 {
		c.t.Fatalf("%d events and %d", len(tenants), len(operators))
	}
	var said []string
	for i, e := range tenants {
		if i > 0 && (len(e.text("sequence")) < len(tenants[i-1].text("sequence")) || e.text("time") < tenants[i-1].text("time")) {
			c.t.Errorf("%v after %v", e, tenants[i-1])
		}
		for _, hidden := range []string{"actor", "internal_reason"} {
			if e.kind(hidden) != "" || operators[i].kind(hidden) == "" {
				c.t.Errorf("%s: %v, and to operators %v", hidden, e, operators[i])
			}
		}
		if e.text("code") != "null" {
			said = append(said, e.text("actor_kind")+" "+e.text("code")+" "+e.text("reason")+" "+operators[i].text("internal_reason")+" "+operators[i].text("actor"))
		}
	}
	for _, want := range []string{"operator MORE Because of MORE. for us operator", "operator NO Because of NO. null operator"} {
		if !slices.Contains(said, want) {
			c.t.Errorf("nobody said %q: %q", want, said)
		}
	}
	if kind := tenants[0].text("actor_kind"); kind != "client" {
		c.t.Errorf("%v", tenants[0])
	}
}

// deliveries looks at one that arrived and one that was given up, and has both sent again: the same bytes.
func (c *decided) deliveries() {
	ended := c.hooks.await("/all", "ann's end", func(o object) bool { return o.text("type") == "entitlementFailed" })
	path := "/api/v1/webhooks/" + c.hook.text("id") + "/deliveries"
	var d object
	waitFor(c.t, "the receipt", func() bool {
		for _, one := range c.list(path) {
			if one.text("event_id") == ended.Header.Get("webhook-id") && one.text("status") == "delivered" {
				d = one
			}
		}
		return d != nil
	})
	const members = "attempts created_at event_id event_type id next_attempt_at owner_id owner_type status webhook_id"
	if got := strings.Join(d.members(), " "); got != members {
		c.t.Errorf("a delivery has %s", got)
	}
	c.has(d, "event_type", "entitlementFailed", "owner_type", "person", "owner_id", c.owner.text("id"), "webhook_id", c.hook.text("id"), "next_attempt_at", "null")
	if got := strings.Join(d.objects("attempts")[0].members(), " "); got != "duration_ms error number response started_at status_code" {
		c.t.Errorf("an attempt has %s", got)
	}
	c.has(d.objects("attempts")[0], "number", "1", "status_code", "200", "error", "null", "response", "thank you")
	if got := strings.Join(c.fetch(path+"?size=1").members(), " "); got != "items page pages size total" {
		c.t.Errorf("the list has %s", got)
	}
	if one := c.fetch(path + "/" + d.text("id")); fmt.Sprint(one) != fmt.Sprint(d) {
		c.t.Errorf("%v, and alone %v", d, one)
	}
	again := c.sendAs(200, "broker-a", http.MethodPost, path+"/"+d.text("id")+"/replay", "")
	c.has(again, "id", d.text("id"), "status", "pending")
	waitFor(c.t, "it to come again", func() bool { return c.times(ended) == 2 })
	dead := c.subscribe("/dead", `,"include_all_events":false,"event_types":["test"]`)
	deads := "/api/v1/webhooks/" + dead.text("id")
	sent := c.sendAs(201, "broker-a", http.MethodPost, deads+"/test", "")
	c.has(sent, "status", "pending", "attempts", "[]", "event_type", "test")
	given := func() bool { return c.fetch(deads+"/deliveries/"+sent.text("id")).text("status") == "dead" }
	waitFor(c.t, "it to be given up", given)
	c.detail(404, "DELIVERY_NOT_FOUND", c.post(deads+"/deliveries/"+d.text("id")+"/replay", ""))
	c.sendAs(200, "broker-a", http.MethodPost, deads+"/deliveries/"+sent.text("id")+"/replay", "")
	waitFor(c.t, "it to be given up again", func() bool { return len(c.hooks.came("/dead", 0)) == 6 && given() })
	for _, p := range c.hooks.came("/dead", 0) {
		if first := c.hooks.came("/dead", 0)[0]; string(p.Body) != string(first.Body) || p.Header.Get("webhook-id") != first.Header.Get("webhook-id") {
			c.t.Errorf("%s, and first %s", p.Body, first.Body)
		}
	}
}

// times is how often a parcel came to /all with the same bytes.
func (c *decided) times(p parcel) (n int) {
	for _, other := range c.hooks.came("/all", 200) {
		if other.Header.Get("webhook-id") == p.Header.Get("webhook-id") && string(other.Body) == string(p.Body) {
			n++
		}
	}
	return n
}

// feed reads all events in their order, and holds them against what was delivered.
func (c *decided) feed() {
	page := func(query string) (o object) {
		c.parse(c.must(200, "broker-a", http.MethodGet, "/api/v1/events?"+query, nil).Body, &o)
		return o
	}
	whole := page("page_size=100")
	records, _ := whole["records"].([]any)
	if len(records) < 5 || whole.kind("response_metadata") != "object" {
		c.t.Fatalf("%v", whole)
	}
	told := make(map[string]string)
	for _, p := range c.hooks.came("/all", 200) {
		told[p.event(c.t).text("id")] = fmt.Sprint(p.event(c.t))
	}
	compared := 0
	for _, r := range whole.objects("records") {
		if body, delivered := told[r.text("id")]; delivered {
			if compared++; fmt.Sprint(r) != body {
				c.t.Errorf("the feed has %v, delivered was %s", r, body)
			}
		}
	}
	if compared < 4 {
		c.t.Errorf("%d records of the feed were delivered", compared)
	}
	first := page("page_size=1")
	meta, _ := first["response_metadata"].(map[string]any)
	second := page("page_size=1&after=" + object(meta).text("end_cursor"))
	if a, b := fmt.Sprint(first["records"], second["records"]), fmt.Sprint(records[:1], records[1:2]); a != b {
		c.t.Errorf("in pages %s, whole %s", a, b)
	}
	for _, r := range page("type=entitlementFailed").objects("records") {
		c.has(r, "type", "entitlementFailed")
	}
	if a := c.do("broker-a", http.MethodGet, "/api/v1/events?type=orders", nil); a.Status != 422 {
		c.t.Errorf("%d %s", a.Status, a.Body)
	}
}

// versions answers an older version, and several at once.
func (c *decided) versions() {
	old, path := c.answers(c.more, "text", `"old"`), c.ann+"/questionnaires/"+c.more+"/response"
	c.version(c.more, everyType()[:2])
	c.operate(200, "/admin/v1/questionnaires/"+c.more+"/publish", map[string]any{})
	c.detail(409, "QUESTIONNAIRE_VERSION_OUTDATED", c.post(path, old))
	mixed := strings.TrimSuffix(old, "]}") + "," + strings.TrimPrefix(c.answers(c.more, "text", `"new"`), `{"answers":[`)
	if a := c.post(path, mixed); a.Status != 422 {
		c.t.Errorf("of two versions: %d %s", a.Status, a.Body)
	}
	c.operate(200, "/admin/v1/questionnaires/"+c.more+"/unpublish", map[string]any{})
	c.detail(404, "QUESTIONNAIRE_NOT_FOUND", c.do("broker-a", http.MethodGet, "/api/v1/questionnaires/"+c.more, nil))
}

// exported looks for what ann told in the zip of all that is held about her.
func (c *decided) exported() {
	a := c.must(200, "broker-a", http.MethodGet, c.ann+"/export", nil)
	r, err := zip.NewReader(bytes.NewReader(a.Body), int64(len(a.Body)))
	if err != nil || a.Header.Get("Content-Type") != "application/zip" {
		c.t.Fatalf("%v %v", err, a.Header)
	}
	var all []string
	for _, f := range r.File {
		content, err := f.Open()
		if err != nil {
			c.t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			c.t.Fatalf("%s: %v", f.Name, err)
		}
		all = append(all, f.Name+"\n"+string(text))
	}
	for _, want := range []string{`"first_name":"Ann"`, `"answer_text":"again"`, string(pdf()), `Because of NO.`, c.ended.text("id"), `"status_code":200`} {
		if !slices.ContainsFunc(all, func(f string) bool {
			return strings.Contains(f, want) || strings.Contains(strings.NewReplacer(": ", ":", "\n", "").Replace(f), want)
		}) {
			c.t.Errorf("no file of the export has %.40q", want)
		}
	}
}

// erased has ann held, restricted, and in the end erased: the feed keeps ids, types and times.
func (c *decided) erased() {
	ends := "/admin/v1/persons/" + c.owner.text("id")
	c.operate(200, ends+"/hold", `{"reason":"a lawsuit"}`)
	c.must(200, "operator", http.MethodPut, "/admin/v1/retention", `{"seconds":0}`)
	asked := c.operate(200, ends+"/erase", `{"reason":"she asked for it"}`)
	c.has(asked, "requested_by", "operator", "reason", "she asked for it", "erased_at", "null")
	c.detail(404, "PERSON_NOT_FOUND", c.do("broker-a", http.MethodGet, c.ann, nil))
	if a := c.do("operator", http.MethodPost, ends+"/erase", `{"reason":"again"}`); a.Status != 409 {
		c.t.Errorf("a second time: %d %s", a.Status, a.Body)
	}
	last := c.hooks.await("/all", "that it is over", func(o object) bool { return strings.Contains(o.text("details"), "OWNER_ERASED") })
	c.has(last.event(c.t), "type", "entitlementFailed", "entitlement_trigger_id", c.video.text("id"))
	c.operate(200, ends+"/release-hold", `{"reason":"it is over"}`)
	var certificate object
	waitFor(c.t, "her erasure", func() bool {
		c.parse(c.must(200, "operator", http.MethodGet, ends+"/erasure", nil).Body, &certificate)
		return certificate.text("erased_at") != "null" && certificate.text("key_id") != "null"
	})
	if positions := certificate.texts("positions"); len(positions) != 3 {
		c.t.Errorf("%v", certificate)
	}
	c.detail(404, "PERSON_NOT_FOUND", c.do("broker-a", http.MethodGet, c.ann+"/documents/"+c.document.text("id"), nil))
	waitForWord(c.t, "the feed to tell nothing of her", func() string {
		var o object
		c.parse(c.must(200, "broker-a", http.MethodGet, "/api/v1/events?page_size=100", nil).Body, &o)
		hers := 0
		for _, r := range o.objects("records") {
			if r.text("owner_id") != c.owner.text("id") {
				continue
			}
			if hers++; r.text("details") != "{}" || r.text("timestamp") == "" || r.text("type") == "" {
				return fmt.Sprint(r)
			}
		}
		if hers < 4 {
			return fmt.Sprint(hers, " records")
		}
		return ""
	})
	for _, d := range c.list("/api/v1/webhooks/" + c.hook.text("id") + "/deliveries") {
		if d.text("owner_id") == c.owner.text("id") && d.text("event_id") != last.Header.Get("webhook-id") {
			c.detail(409, "OWNER_ERASED", c.post("/api/v1/webhooks/"+c.hook.text("id")+"/deliveries/"+d.text("id")+"/replay", ""))
		}
	}
	c.register("persons", `{"external_id":"ann","first_name":"Another","last_name":"Ann"}`) // the name is free again
}
