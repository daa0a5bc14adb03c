package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/schemas/spec"
)

// applicants is a running venue at which something of everything has been onboarded, and who was told of it.
type applicants struct {
	*intake
	ann, bob, cara, dan, acme string // the paths of what hangs on them; the last is a corporate

	full, more, own, company, draft string // the ids of questionnaires; own is for ann alone, and draft for nobody
	manual, video, automatic        string // the ids of entitlements

	owners    map[string]object // as they were registered
	documents []object          // as they were uploaded
	triggers  map[string]object // as they were created
	hooked    map[string]object // registrations, by their paths
	responses []object          // as they were submitted
}

// TestOnboardingConformance holds the running venue against every fact of the document of the onboarding interface, as
// TestConformance does with that of the trading interface.
func TestOnboardingConformance(t *testing.T) {
	t.Parallel()
	c := &applicants{intake: newIntake(t, "--webhook-retries", "100ms,200ms,400ms"), owners: make(map[string]object), triggers: make(map[string]object),
		hooked: make(map[string]object)}
	if os.Getenv(conformanceFront) != "" {
		c.putFront()
	}
	c.start()
	t.Cleanup(c.stop)
	c.define()
	c.apply()
	c.decide()
	interfaceDocument{"onboarding", spec.Onboarding, spec.OnboardingDecisions}.hold(t, c.reading, c.checks())
}

// checks are all checks by section.
func (c *applicants) checks() map[string][]check {
	return map[string][]check{
		"Onboarding Data Collection Service":               c.addressChecks(),
		"What the service does":                            c.serviceChecks(),
		"Resources and their fields":                       c.conventionChecks(),
		"Document":                                         c.documentChecks(),
		"Download link":                                    c.linkChecks(),
		"Document categories (allowed values of category)": c.categoryChecks(),
		"Person and corporate":                             c.ownerChecks(),
		"Questionnaire":                                    c.questionnaireChecks(),
		"QuestionnaireVersion":                             c.versionChecks(),
		"Question":                                         c.questionChecks(),
		"QuestionOption":                                   c.optionChecks(),
		"Response (request body)":                          c.responseChecks(),
		"Entitlement":                                      c.entitlementChecks(),
		"Entitlement trigger":                              c.triggerChecks(),
		"Pending requirement":                              c.pendingChecks(),
		"Webhook registration":                             c.webhookChecks(),
		"States and transitions":                           c.stateChecks(),
		"Endpoints":                                        c.endpointChecks(),
		"Authentication":                                   c.authenticationChecks(),
		"Events":                                           c.eventChecks(),
		"Delivery rules":                                   c.deliveryChecks(),
		"Body shape":                                       c.bodyChecks(),
		"Event types":                                      c.eventTypeChecks(),
		"Signature verification":                           c.signatureChecks(),
		"Errors":                                           c.errorChecks(),
		"Limits":                                           c.limitChecks(),
		"Versioning":                                       c.versioningChecks(),
	}
}

// define makes what may be asked of owners, the owners, and who is told of them.
func (c *applicants) define() {
	register := func(kind, name, body string) string {
		path, made := c.register(kind, body)
		c.owners[name] = made
		return path
	}
	c.ann = register("persons", "ann", `{"external_id":"ann","first_name":"Ann","last_name":"Lee","nationality":"DEU","address":{"city":"Bonn"}}`)
	c.bob = register("persons", "bob", `{"external_id":"bob","first_name":"Bob","last_name":"Ray"}`)
	c.cara = register("persons", "cara", `{"external_id":"cara","first_name":"Cara","last_name":"May"}`)
	c.dan = register("persons", "dan", `{"external_id":"dan","first_name":"Dan","last_name":"Fox"}`)
	c.acme = register("corporates", "acme", `{"external_id":"acme","legal_name":"Acme Ltd"}`)
	c.full = c.questionnaire("Who you are", "person", "", everyType())
	c.more = c.questionnaire("More", "person", "", everyType()[:1])
	c.own = c.questionnaire("For Ann", "person", c.owners["ann"].text("id"), everyType()[:2])
	c.company = c.questionnaire("The company", "corporate", "", everyType()[:1])
	c.draft = c.operate(201, "/admin/v1/questionnaires", `{"name":"A draft","owner_type":"person"}`).text("id")
	c.version(c.draft, everyType())
	c.manual = c.entitlement("trading", "person", "manual", "", c.full)
	c.video = c.entitlement("lending", "person", "automatic", `,"video_identification":true`)
	c.automatic = c.entitlement("custody", "corporate", "automatic", "", c.company)
	c.hooks.answer = func(p parcel, before int) int {
		if p.Path == "/failing" && before < 2 {
			return 503
		}
		return 200
	}
	c.hooked["/all"] = c.subscribe("/all", "")
	c.hooked["/some"] = c.subscribe("/some", `,"include_all_events":false,"event_types":["entitlementCompleted"]`)
	c.hooked["/failing"] = c.subscribe("/failing", `,"include_all_events":false,"event_types":["entitlementFailed"]`)
}

// apply has owners ask for entitlements and do what is asked of them.
func (c *applicants) apply() {
	begin := func(name, of, entitlement string) string {
		c.triggers[name] = c.trigger(of, entitlement)
		return c.triggers[name].text("id")
	}
	begin("ann", c.ann, c.manual)
	begin("cara", c.cara, c.manual)
	begin("bob", c.bob, c.video)
	begin("acme", c.acme, c.automatic)
	for _, f := range []struct{ name, category, orientation string }{
		{"passport.pdf", "id_document", "front"}, {"passport.pdf", "id_document", "back"}, {"C:\\papers\\proof.pdf", "", ""},
	} {
		var fields []string
		if f.category != "" {
			fields = []string{"category", f.category, "orientation", f.orientation}
		}
		c.documents = append(c.documents, c.upload(c.ann, f.name, pdf(), fields...))
	}
	c.documents = append(c.documents, c.upload(c.acme, "statement.csv", []byte("date,amount\n2026-01-01,1\n"), "category", misspelled))
	c.responses = append(c.responses, c.respondInFull(c.ann, c.full, c.documents[0].text("id"), c.documents[1].text("id")),
		c.respond(c.acme, c.company, "text", `"Acme"`))
}

// decide has an operator end what was asked for, in every way.
func (c *applicants) decide() {
	ann := c.triggers["ann"].text("id")
	c.act(ann, "request_information", "MORE", `,"questionnaire_ids":["`+c.more+`"]`)
	c.responses = append(c.responses, c.respond(c.ann, c.more, "text", `"that is all"`))
	c.act(ann, "approve", "GOOD", "")
	bob := c.triggers["bob"].text("id")
	c.until(c.bob, bob, "ongoing")
	c.act(bob, "complete_video_identification", "VIDEO_SEEN", `,"outcome":"failed"`)
	for _, action := range []string{"cancel", "terminate", "fail", "block"} {
		one := c.trigger(c.dan, c.manual)
		c.triggers[action] = one
		c.until(c.dan, one.text("id"), "ongoing")
		c.act(one.text("id"), action, "SO_BE_IT", "")
	}
	c.until(c.acme, c.triggers["acme"].text("id"), "finished")
	c.hooks.await("/all", "the end of ann's case", func(o object) bool { return c.isAbout("ann", o) && o.text("type") == "entitlementCompleted" })
	c.hooks.await("/all", "the end of bob's case", func(o object) bool { return c.isAbout("bob", o) && o.text("type") == "entitlementFailed" })
	c.hooks.await("/all", "the end of acme's case", func(o object) bool { return c.isAbout("acme", o) && o.text("type") == "entitlementCompleted" })
	c.hooks.await("/failing", "the end of bob's case", func(o object) bool { return c.isAbout("bob", o) })
	c.hooks.await("/some", "the end of ann's case", func(o object) bool { return c.isAbout("ann", o) })
}

func (c *applicants) isAbout(name string, event object) bool {
	return event.text("owner_id") == c.owners[name].text("id")
}

// The forms of values, by what the document calls their types.
const (
	uuidForm = `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	timeForm = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`
)

// form is what a value of a type is.
type form struct{ kind, pattern string }

var forms = map[string]form{
	"UUID": {"string", uuidForm}, "string": {"string", ``}, "enum": {"string", `^[a-z]+$`}, "timestamp": {"string", timeForm},
	"integer": {"number", `^-?\d+$`}, "boolean": {"boolean", ``}, "object": {"object", ``}, "QuestionnaireVersion": {"object", `"version_number":`},
	"Question": {"object", `"question_type":`}, "QuestionOption": {"object", `"question_id":`}, "Answer": {"object", `"question_id":`},
	"EntitlementQuestionnaire": {"object", `"entitlement_id":`},
}

// isOf reports whether a value is of a type as the document writes it.
func isOf(kind string, v any) bool {
	o := object{"v": v}
	if rest, either := strings.CutSuffix(kind, " or null"); either {
		return v == nil || isOf(rest, v)
	}
	if of, list := strings.CutPrefix(kind, "array of "); list {
		all, is := v.([]any)
		return is && !slices.ContainsFunc(all, func(one any) bool { return !isOf(of, one) })
	}
	f, known := forms[kind]
	return known && o.kind("v") == f.kind && regexp.MustCompile(f.pattern).MatchString(o.text("v"))
}

// typesOf are the checks of a table's column Type: "member type" in each line, of objects that need not all have the member.
func (c *applicants) typesOf(table string, from source) (out []check) {
	for line := range strings.Lines(table) {
		member, kind, some := strings.Cut(strings.TrimSpace(line), " ")
		if !some {
			continue
		}
		out = append(out, check{member + " · Type: " + kind, "", func() {
			seen := make(map[string]int)
			for _, o := range from.read() {
				v, there := o[member]
				if !there {
					continue
				}
				if !isOf(kind, v) {
					c.t.Errorf("%s of %s is no %s: %v", member, from.name, kind, o)
				}
				seen[o.text(member)]++
			}
			c.note("%s ×%d in %s", kind, len(seen), from.name)
			if len(seen) == 0 {
				c.t.Fatalf("no %s has %s", from.name, member)
			}
			c.note("%s=%s", member, slices.Sorted(maps.Keys(seen))[0])
		}})
	}
	return out
}

// eachIs is a check of objects: a member of each is as it is said.
func (c *applicants) eachIs(member, what string, is func(object) bool, from source) func() {
	return func() {
		all := from.read()
		for _, o := range all {
			if !is(o) {
				c.t.Errorf("%s of %s is not %s: %v", member, from.name, what, o)
			}
		}
		if len(all) == 0 {
			c.t.Fatalf("there are no %s", from.name)
		}
		c.note("%s: %s of %d %s, as %s", what, member, len(all), from.name, all[0].text(member))
	}
}

// oneOf is a check of a member: it has none but these values, and had at least those.
func (c *applicants) oneOf(member string, may, must []string, from source) func() {
	return func() {
		seen := make(map[string]int)
		for _, o := range from.read() {
			if v := o.text(member); v != "" {
				seen[v]++
			}
		}
		c.note("%s of %s: %v", member, from.name, seen)
		for v := range seen {
			if !slices.Contains(may, v) {
				c.t.Errorf("%s of %s is %s, want one of %v", member, from.name, v, may)
			}
		}
		for _, v := range must {
			if seen[v] == 0 {
				c.t.Errorf("%s of %s was never %s", member, from.name, v)
			}
		}
	}
}

// read is a source of one kind of answers: each path is an object or a page of them.
func (c *applicants) read(name string, paths ...string) source {
	return source{name, func() (out []object) {
		for _, path := range paths {
			o := c.fetch(path)
			if _, page := o["items"]; page {
				out = append(out, o.objects("items")...)
			} else {
				out = append(out, o)
			}
		}
		return out
	}}
}

// answered notes what a request is answered: its status, and what its detail says.
func (c *applicants) answered(name string, want string, a answer) {
	c.t.Helper()
	var o object
	if len(a.Body) > 0 && a.Body[0] == '{' {
		c.parse(a.Body, &o)
	}
	got := fmt.Sprint(a.Status)
	if detail := o.text("detail"); detail != "" && !strings.HasPrefix(detail, "[") {
		got += " " + detail
	}
	c.equal(name, got, want)
}

// get reads as broker-a, whatever comes of it.
func (c *applicants) get(path string) answer {
	c.t.Helper()
	return c.do("broker-a", http.MethodGet, path, nil)
}

// members is a check of an answer that is an object: exactly these members.
func (c *applicants) members(name, want string, o object) {
	c.t.Helper()
	c.equal(name, strings.Join(o.members(), " "), strings.Join(slices.Sorted(slices.Values(strings.Fields(want))), " "))
}
