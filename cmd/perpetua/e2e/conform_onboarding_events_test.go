package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// theFour are the event types that the document names.
var theFour = []string{"requirementsQuestionnaire", "requirementsVid", "entitlementCompleted", "entitlementFailed"}

// lifetime is how long a token lasts, in seconds.
func (c *applicants) lifetime() int64 {
	c.t.Helper()
	parts := strings.Split(c.token("broker-a"), ".")
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		c.t.Fatal(err)
	}
	var claims struct{ Exp, Iat int64 }
	c.parse(text, &claims)
	return claims.Exp - claims.Iat
}

// verified notes what came to the receiver and was signed as it should be; it let nothing else in.
func (c *applicants) verified() {
	for _, path := range []string{"/all", "/some", "/failing"} {
		good, bad := len(c.hooks.came(path, 0)), len(c.hooks.came(path, http.StatusUnauthorized))
		if c.note("%s: %d requests, %d not signed by %s", path, good, bad, c.hooked[path].text("public_key")); good == 0 || bad != 0 {
			c.t.Errorf("%d of %d requests to %s were not signed as they should be", bad, good, path)
		}
	}
}

func (c *applicants) eventChecks() []check {
	return []check{{"Events are delivered as webhooks: HTTPS POST requests to the registered url, with Content-Type application/json and a signature header named X-SERVICE-Signature (the signature of the raw body)", "", func() {
		for _, p := range c.hooks.came("/all", 0) {
			if p.Method != http.MethodPost || p.Header.Get("Content-Type") != "application/json" || !json.Valid(p.Body) {
				c.t.Errorf("%s %v %s", p.Method, p.Header, p.Body)
			}
		}
		p := c.hooks.came("/all", 0)[0]
		c.note("%s %s Content-Type=%s X-SERVICE-Signature=%s", p.Method, c.hooks.URL+p.Path, p.Header.Get("Content-Type"), p.Header.Get("X-SERVICE-Signature"))
		c.verified()
	}}}
}

// types are the types of events that came to a path.
func (c *applicants) types(path string) []string {
	seen := make(map[string]bool)
	for _, p := range c.hooks.came(path, 0) {
		seen[p.event(c.t).text("type")] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// allTypes has events of the two other types sent as well.
func (c *applicants) allTypes() {
	c.sendAs(201, "broker-a", http.MethodPost, "/api/v1/webhooks/"+c.hooked["/all"].text("id")+"/test", "")
	soon := time.Now().UTC().Add(24 * time.Hour).Format("2006-01-02T15:04:05.000000Z")
	document := c.upload(c.bob, "ends.pdf", pdf(), "category", "cv", "valid_until", soon)
	c.hooks.await("/all", "a test event", func(o object) bool { return o.text("type") == "test" })
	p := c.hooks.await("/all", "the reminder", func(o object) bool { return strings.Contains(o.text("details"), document.text("id")) })
	c.equal("the reminder", p.event(c.t).text("type"), "documentExpiring")
	c.equal("types at /all", strings.Join(c.types("/all"), " "), strings.Join(slices.Sorted(slices.Values(append(slices.Clone(theFour), "documentExpiring", "test"))), " "))
}

func (c *applicants) deliveryChecks() []check {
	return []check{
		{"1. Only the event types selected at registration are delivered", "", func() {
			c.equal("at /some", strings.Join(c.types("/some"), " "), "entitlementCompleted")
			c.equal("at /failing", strings.Join(c.types("/failing"), " "), "entitlementFailed")
		}},
		{"1. with include_all_events true (the default) all current and future types are delivered", "", c.allTypes},
		{"2. The receiver acknowledges with HTTP 200", "", func() {
			d := c.delivered("/all")
			c.equal("status", d.text("status"), "delivered")
			c.equal("status_code", d.objects("attempts")[0].text("status_code"), "200")
		}},
		{"2. A non-200 reply (for example 5xx) causes redelivery with exponential backoff", "", c.backsOff},
		{"3. Every event has a unique id and a timestamp, for de-duplication", "", func() {
			seen := make(map[string]bool)
			for _, o := range c.bodies().read() {
				if id := o.text("id"); seen[id] || !matches(timeForm, o.text("timestamp")) {
					c.t.Errorf("twice, or without a time: %v", o)
				} else {
					seen[id] = true
				}
			}
			c.note("%d events with as many ids", len(seen))
			again := c.tries()
			c.equal("the id of a redelivery", again[1].event(c.t).text("id"), again[0].event(c.t).text("id"))
			c.equal("its bytes", string(again[1].Body), string(again[0].Body))
		}},
		{"4. Retry schedule and number of attempts: not shown", "(`--webhook-retries` takes another list)", func() {
			made := c.subscribe("/dead", `,"include_all_events":false,"event_types":["test"]`)
			answer := c.hooks.answer
			c.hooks.mu.Lock()
			c.hooks.answer = func(p parcel, before int) int {
				if p.Path == "/dead" {
					return 500
				}
				return answer(p, before)
			}
			c.hooks.mu.Unlock()
			path := "/api/v1/webhooks/" + made.text("id")
			sent := c.sendAs(201, "broker-a", http.MethodPost, path+"/test", "")
			var d object
			waitFor(c.t, "the delivery to be given up", func() bool {
				d = c.fetch(path + "/deliveries/" + sent.text("id"))
				return d.text("status") == "dead"
			})
			c.equal("attempts with three retries", fmt.Sprint(len(d.objects("attempts"))), "4")
		}},
	}
}

// delivered is a delivery to a path that was acknowledged.
func (c *applicants) delivered(path string) (found object) {
	c.t.Helper()
	waitFor(c.t, "a delivery to "+path, func() bool {
		all := c.list("/api/v1/webhooks/" + c.hooked[path].text("id") + "/deliveries")
		i := slices.IndexFunc(all, func(d object) bool { return d.text("status") == "delivered" })
		if i >= 0 {
			found = c.fetch("/api/v1/webhooks/" + c.hooked[path].text("id") + "/deliveries/" + all[i].text("id"))
		}
		return i >= 0
	})
	return found
}

// tries are the requests about the delivery to /failing that was acknowledged first.
func (c *applicants) tries() (out []parcel) {
	c.t.Helper()
	event := c.delivered("/failing").text("event_id")
	for _, p := range c.hooks.came("/failing", 0) {
		if p.Header.Get("webhook-id") == event {
			out = append(out, p)
		}
	}
	return out
}

// backsOff looks at the receipts of what was answered 503 twice: each wait is longer than the one before.
func (c *applicants) backsOff() {
	d := c.delivered("/failing")
	if sent := c.tries(); len(sent) != 3 || sent[0].Status != 503 || sent[1].Status != 503 || sent[2].Status != 200 {
		c.t.Fatalf("%d requests came to /failing: %v", len(sent), sent)
	}
	var waits []time.Duration
	for _, line := range c.records("onboarding") {
		var r struct {
			Time   time.Time
			Events []struct {
				Type string
				Data struct {
					ID          string
					NextAttempt time.Time `json:"next_attempt_at"`
				}
			}
		}
		c.parse([]byte(line), &r)
		for _, e := range r.Events {
			if e.Type == "delivery.attempted" && e.Data.ID == d.text("id") && !e.Data.NextAttempt.IsZero() {
				waits = append(waits, e.Data.NextAttempt.Sub(r.Time))
			}
		}
	}
	c.note("waits of %v, then %s", waits, d.text("status"))
	if len(waits) != 2 || waits[1] <= waits[0] {
		c.t.Errorf("the waits are %v", waits)
	}
}

func (c *applicants) bodyChecks() []check {
	bodies := c.bodies()
	all := func(is func(object) bool) source {
		return source{"bodies", func() (out []object) {
			for _, o := range bodies.read() {
				if is(o) {
					out = append(out, o)
				}
			}
			return out
		}}
	}
	general := all(func(o object) bool { return slices.Contains(theFour[1:], o.text("type")) })
	pending := all(func(o object) bool { return o.text("type") == theFour[0] })
	owned := all(func(o object) bool { return o.text("type") != "test" })
	out := c.typesOf(`
		id UUID
		owner_id UUID
		owner_type string
		entitlement_trigger_id UUID
		entitlement_id UUID
		timestamp timestamp
		type string
		details object`, bodies)
	for _, member := range []string{"entitlement_trigger_id", "entitlement_id"} {
		out = append(out, check{member + " · Notes: present in the general payload", "", c.eachIs(member, "a UUID", func(o object) bool { return matches(uuidForm, o.text(member)) }, general)},
			check{member + " · Notes: absent in the pending-requirements payload", "", c.eachIs(member, "absent", func(o object) bool { return o.kind(member) == "" }, pending)})
	}
	return append(out,
		check{"id · Notes: unique event id", "", c.eachIs("id", "of its own", func(o object) bool {
			return !slices.ContainsFunc(bodies.read(), func(other object) bool {
				return other.text("id") == o.text("id") && other.text("timestamp") != o.text("timestamp")
			})
		}, bodies)},
		check{"owner_id · Notes: person or corporate", "", c.oneOf("owner_id", c.idsOf("ann", "bob", "cara", "dan", "acme"), c.idsOf("ann", "bob", "acme"), owned)},
		check{"owner_type · Notes: person or corporate", "", c.oneOf("owner_type", ownerTypes, ownerTypes, owned)},
		check{"timestamp · Notes: ISO 8601 UTC", "", c.eachIs("timestamp", "in UTC", func(o object) bool { return matches(timeForm, o.text("timestamp")) }, bodies)},
		check{"type · Notes: event type", "", c.oneOf("type", append(slices.Clone(theFour), "documentExpiring", "test"), theFour, bodies)},
		check{"details · Notes: event-specific data", "", func() {
			for _, kind := range theFour {
				c.like(kind, c.detailsOf(kind).text("sequence"), `^\d+$`)
			}
		}})
}

// detailsOf are the details of an event of a type.
func (c *applicants) detailsOf(kind string) object {
	c.t.Helper()
	for _, o := range c.bodies().read() {
		if o.text("type") == kind {
			details, _ := o["details"].(map[string]any)
			return details
		}
	}
	c.t.Fatalf("no %s came", kind)
	return nil
}

func (c *applicants) eventTypeChecks() []check {
	told := func(name, kind string) func() {
		return func() {
			p := c.hooks.await("/all", kind+" of "+name, func(o object) bool { return c.isAbout(name, o) && o.text("type") == kind })
			c.note("%s", p.Body)
		}
	}
	return []check{
		{"requirementsQuestionnaire · Emitted when: a user must answer additional questions", "", told("cara", "requirementsQuestionnaire")},
		{"requirementsQuestionnaire · details: pending_questionnaire_ids (array of UUID), reason (string)", "", func() {
			details := c.detailsOf("requirementsQuestionnaire")
			c.members("details", "pending_questionnaire_ids reason sequence", details)
			c.equal("pending_questionnaire_ids", fmt.Sprint(isOf("array of UUID", details["pending_questionnaire_ids"])), "true")
			c.equal("reason", details.kind("reason"), "string")
		}},
		{"requirementsVid · Emitted when: a video identification step is required", "", told("bob", "requirementsVid")},
		{"entitlementCompleted · Emitted when: a workflow finishes successfully", "", together(told("ann", "entitlementCompleted"), told("acme", "entitlementCompleted"), func() {
			c.equal("ann's result", c.fetch(c.ann+"/entitlement_triggers/"+c.triggers["ann"].text("id")).text("result"), "success")
		})},
		{"entitlementFailed · Emitted when: a workflow is rejected or fails", "", together(told("bob", "entitlementFailed"), func() {
			c.equal("bob's result", c.fetch(c.bob+"/entitlement_triggers/"+c.triggers["bob"].text("id")).text("result"), "fail")
		})},
		{"Details of the three types other than requirementsQuestionnaire: not shown", "Final details `{code, reason}`", func() {
			c.members("requirementsVid", "sequence", c.detailsOf("requirementsVid"))
			c.members("entitlementCompleted", "code reason sequence", c.detailsOf("entitlementCompleted"))
			c.members("entitlementFailed", "code reason sequence", c.detailsOf("entitlementFailed"))
		}},
		{"These are named as the common types", "", func() {
			for _, kind := range theFour {
				c.equal(kind+" came", fmt.Sprint(slices.Contains(c.types("/all"), kind)), "true")
			}
		}},
		{"the complete list of event types: not shown", "Event types: the four of the document, documentExpiring, test", c.allTypes},
		{"Which trigger status change emits which event: not shown", "exactly one final webhook per trigger", c.eventsOfTriggers},
	}
}

// eventsOfTriggers holds what was told of each trigger against where it ended.
func (c *applicants) eventsOfTriggers() {
	want := map[string]string{"ann": "entitlementCompleted", "acme": "entitlementCompleted", "bob": "requirementsVid entitlementFailed",
		"cancel": "entitlementFailed", "terminate": "entitlementFailed", "fail": "entitlementFailed", "block": "", "cara": ""}
	for name, types := range want {
		told := func() string {
			var out []string
			for _, o := range c.bodies().read() {
				if o.text("entitlement_trigger_id") == c.triggers[name].text("id") {
					out = append(out, o.text("type"))
				}
			}
			return strings.Join(out, " ")
		}
		waitForWord(c.t, "what is told of "+name, func() string {
			if got := told(); got != types {
				return got
			}
			return ""
		})
		c.note("%s: %s", name, told())
	}
}

func (c *applicants) signatureChecks() []check {
	first := func() parcel { return c.hooks.came("/all", http.StatusOK)[0] }
	return []check{
		{"1. Read the raw request body as exact bytes, without parsing", "", func() {
			p := first()
			public, _ := base64.StdEncoding.DecodeString(c.hooked["/all"].text("public_key"))
			spaced := p
			spaced.Body = append([]byte(" "), p.Body...)
			c.equal("the bytes as they came", fmt.Sprint(signsBody(public, p)), "true")
			c.equal("with one space more", fmt.Sprint(signsBody(public, spaced)), "false")
		}},
		{"2. Read the signature from X-SERVICE-Signature", "", func() {
			c.like("X-SERVICE-Signature", first().Header.Get("X-SERVICE-Signature"), `^[A-Za-z0-9+/]{86}==$`)
		}},
		{"3. Verify the signature over the body bytes with an Ed25519 implementation, using the public_key from registration (decoded as base64)", "", func() {
			p := first()
			opensslVerifies(c.t, c.hooked["/all"].text("public_key"), p.Body, p.Header.Get("X-SERVICE-Signature"))
			c.verified()
		}},
		{"Encoding of the header value (hex or base64): not shown, the sample code and the sample header disagree", "padded standard base64 of the 64-byte Ed25519 signature", func() {
			raw, err := base64.StdEncoding.DecodeString(first().Header.Get("X-SERVICE-Signature"))
			c.equal("bytes", fmt.Sprint(len(raw), err), "64 <nil>")
		}},
	}
}
