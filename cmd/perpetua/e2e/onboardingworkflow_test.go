package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestOnboardingWorkflow walks the seven steps of the document as a client does, for a person and for a corporate, by webhooks that
// the receiver verifies from the raw bytes; once it ends well, once it does not.
func TestOnboardingWorkflow(t *testing.T) {
	t.Parallel()
	c := startIntake(t)
	for _, w := range []workflow{
		{"persons", `{"external_id":"ann","first_name":"Ann","last_name":"Lee"}`, "/person", "person", "approve", "entitlementCompleted", "success"},
		{"corporates", `{"external_id":"acme","legal_name":"Acme Ltd"}`, "/corporate", "corporate", "reject", "entitlementFailed", "fail"},
	} {
		c.within(t, w.owner, func(t *testing.T) { c.follow(w) })
	}
}

// workflow is who walks the seven steps, and to which end.
type workflow struct {
	kind, body, hook, owner string
	decision, final, result string
}

// follow walks the seven steps.
func (c *intake) follow(w workflow) {
	asked, more := c.questionnaire("the "+w.owner, w.owner, "", everyType()), c.questionnaire("more of the "+w.owner, w.owner, "", everyType()[:1])
	entitlement := c.entitlement("Trading of a "+w.owner, w.owner, "manual", "", asked)
	hook := c.subscribe(w.hook, "")
	of, owner := c.register(w.kind, w.body)
	about := func(kind string) func(object) bool {
		return func(o object) bool { return o.text("owner_id") == owner.text("id") && o.text("type") == kind }
	}

	// 1. The entitlement is in the listing, and is triggered.
	listed := c.list("/api/v1/entitlements/" + w.kind)
	if !slices.ContainsFunc(listed, func(e object) bool { return e.text("id") == entitlement }) {
		c.t.Fatalf("the listing has no %s: %v", entitlement, listed)
	}
	trigger := c.trigger(of, entitlement)
	c.has(trigger, "status", "pending", "result", "", "entitlement_id", entitlement, "owner_type", w.owner, "owner_id", owner.text("id"))

	// 2. A webhook says what is to be answered, and so does pending_requirements.
	first := c.hooks.await(w.hook, "what is to be answered", about("requirementsQuestionnaire"))
	event := first.event(c.t)
	details, _ := event["details"].(map[string]any)
	c.has(details, "pending_questionnaire_ids", `["`+asked+`"]`, "reason", "Trading of a "+w.owner, "sequence", "1")
	c.has(event, "entitlement_trigger_id", "", "entitlement_id", "")
	c.signed(first, event, hook)
	polled := c.pending(of)
	if len(polled) != 1 {
		c.t.Fatalf("pending requirements: %v", polled)
	}
	c.has(polled[0], "pending_questionnaire_ids", `["`+asked+`"]`, "reason", "Trading of a "+w.owner)

	// 3. to 5. It is fetched, a document is uploaded, and the answers are submitted.
	document := c.upload(of, "passport.pdf", pdf(), "category", "id_document", "orientation", "front")
	c.has(document, "owner_id", owner.text("id"), "owner_type", w.owner, "category", "id_document")
	response := c.respondInFull(of, asked, document.text("id"))
	if !strings.Contains(response.text("answers"), document.text("id")) {
		c.t.Errorf("the response names no document: %v", response)
	}
	if left := c.pending(of); len(left) != 0 {
		c.t.Errorf("all is answered, and pending are %v", left)
	}

	// 6. More is asked for. An answer from before does not count.
	c.respond(of, more, "text", `"early"`)
	c.act(trigger.text("id"), "request_information", "MORE", `,"questionnaire_ids":["`+more+`"]`)
	second := c.hooks.await(w.hook, "the request for more", func(o object) bool {
		return about("requirementsQuestionnaire")(o) && strings.Contains(o.text("details"), more)
	})
	event = second.event(c.t)
	details, _ = event["details"].(map[string]any)
	c.has(details, "pending_questionnaire_ids", `["`+more+`"]`, "reason", "Because of MORE.", "sequence", "2")
	c.signed(second, event, hook)
	c.respond(of, more, "text", `"late"`)

	// 7. It ends, with one final webhook.
	c.has(c.act(trigger.text("id"), w.decision, "DECIDED", ""), "status", "finished", "result", w.result)
	last := c.hooks.await(w.hook, "the end", about(w.final))
	event = last.event(c.t)
	details, _ = event["details"].(map[string]any)
	c.has(event, "entitlement_trigger_id", trigger.text("id"), "entitlement_id", entitlement)
	c.has(details, "code", "DECIDED", "reason", "Because of DECIDED.", "sequence", "3")
	c.signed(last, event, hook)
	c.has(c.until(of, trigger.text("id"), "finished"), "result", w.result)
	c.nothingElse(w, hook, []parcel{first, second, last})
	explained := object{}
	c.parse(c.must(200, "broker-a", http.MethodGet, of+"/entitlement_triggers/"+trigger.text("id")+"/explain", nil).Body, &explained)
	subjects, _ := explained["subjects"].([]any)
	c.has(explained, "decided_again", "true")
	if !slices.Contains(subjects, any(w.decision)) {
		c.t.Errorf("the end is explained as %v", explained)
	}
}

// has wants members of an object to have values, in pairs; "" for a member that is not there.
func (c *reading) has(o object, pairs ...string) {
	c.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if got := o.text(pairs[i]); got != pairs[i+1] {
			c.t.Errorf("%s is %q, want %q in %v", pairs[i], got, pairs[i+1], o)
		}
	}
}

// signed looks at a request that the receiver verified: its headers, and the signatures by somebody else's code.
func (c *intake) signed(p parcel, event, hook object) {
	c.t.Helper()
	if p.Method != http.MethodPost || p.Header.Get("Content-Type") != "application/json" || p.Header.Get("webhook-id") != event.text("id") {
		c.t.Errorf("%s %v of %s", p.Method, p.Header, p.Body)
	}
	opensslVerifies(c.t, hook.text("public_key"), p.Body, p.Header.Get("X-SERVICE-Signature"))
	standard, is := strings.CutPrefix(p.Header.Get("webhook-signature"), "v1a,")
	if !is {
		c.t.Fatalf("webhook-signature is %s", p.Header.Get("webhook-signature"))
	}
	opensslVerifies(c.t, hook.text("public_key"), p.standard(), standard)
}

// nothingElse waits until all deliveries of a registration are done, and sees that nothing came but what was awaited, all of it signed.
func (c *intake) nothingElse(w workflow, hook object, awaited []parcel) {
	c.t.Helper()
	path := "/api/v1/webhooks/" + hook.text("id") + "/deliveries"
	mine := func() (out []object) {
		for _, d := range c.list(path) {
			if d.text("owner_type") == w.owner {
				out = append(out, d)
			}
		}
		return out
	}
	waitForWord(c.t, "all deliveries to be done", func() string {
		for _, d := range mine() {
			if d.text("status") != "delivered" {
				return d.text("id") + " is " + d.text("status")
			}
		}
		return ""
	})
	var got, want []string
	for _, d := range slices.Backward(mine()) { // which has the newest first
		got = append(got, d.text("event_id"))
	}
	for _, p := range awaited {
		want = append(want, p.Header.Get("webhook-id"))
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("delivered were %v, awaited %v", got, want)
	}
	if refused := c.hooks.came(w.hook, http.StatusUnauthorized); len(refused) != 0 {
		c.t.Errorf("not signed as it should be: %s", refused[0].Body)
	}
}
