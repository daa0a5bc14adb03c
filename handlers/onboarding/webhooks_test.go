package onboarding_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// TestFailingForFiveDays: five days of failures alone disable a registration, and show when. Nothing is tried then, but all is
// recorded; enabling sends what accrued, in its order. One success lets the five days begin anew.
func TestFailingForFiveDays(t *testing.T) {
	w := newTelling(t)
	hook, other := w.register(), w.make("broker-a", api+"/webhooks", `{"url":"`+w.receiver.URL+`/other","include_all_events":false,"event_types":["test"]}`)
	w.start()
	for _, day := range []struct {
		later  scalar.Time
		status int
	}{{0, 500}, {4 * scalar.Day, 200}, {scalar.Day, 500}, {5*scalar.Day - scalar.Second, 500}} {
		w.Advance(day.later)
		w.answers(day.status, "")
		w.try(hook, map[int]string{200: "delivered", 500: "dead"}[day.status])
		if at, disabled := w.shown(hook)["disabled_at"]; disabled {
			t.Fatalf("it is disabled, at %v, %d s later", at, day.later/scalar.Second)
		}
	}
	w.Advance(scalar.Second)
	w.try(hook, "dead")
	if got := w.shown(hook)["disabled_at"]; got != tradingtest.Start.Add(10*24*time.Hour).Format("2006-01-02T15:04:05.000000Z") {
		t.Errorf("it is disabled at %v", got)
	}

	w.answers(200, "")
	before := len(w.got())
	_, trigger, more := w.open()
	w.ask(trigger, more, "why b")
	w.ask(trigger, more, "why c")
	w.look(hook)
	w.try(other, "delivered") // by then the other would have been tried
	accrued := w.deliveries(hook)[5:]
	for _, d := range accrued {
		want(t, d, "status", "pending", "attempts", "[]", "next_attempt_at", "")
	}
	if n := len(w.got()) - before; n != 1 || len(accrued) != 3 {
		t.Fatalf("%d requests came and %d deliveries accrued", n, len(accrued))
	}
	w.Send("broker-b", "POST", api+"/webhooks/"+hook+"/enable", "").Detail(404, "WEBHOOK_NOT_FOUND")
	enabled := w.Send("broker-a", "POST", api+"/webhooks/"+hook+"/enable", "").Want(200)
	if _, disabled := enabled.Fields()["disabled_at"]; disabled || enabled.Text("id") != hook {
		t.Errorf("%s", enabled.Body)
	}
	w.Send("broker-a", "POST", api+"/webhooks/"+hook+"/enable", "").Detail(409, "WEBHOOK_NOT_DISABLED")
	w.look(hook)
	w.ends(api+"/webhooks/"+hook+"/deliveries/"+accrued[2].Text("id"), "delivered")
	came := w.got()[before+1:]
	if len(came) != 3 {
		t.Fatalf("%v", came)
	}
	for n, p := range came {
		if !strings.Contains(p.body, fmt.Sprintf(`"sequence":%d`, n+1)) {
			t.Errorf("request %d after it was enabled: %s", n, p.body)
		}
	}
	w.answers(500, "")
	w.try(hook, "dead")
	if at, disabled := w.shown(hook)["disabled_at"]; disabled {
		t.Errorf("a failure after it was enabled disables it, at %v", at)
	}
}

// TestHostsOfWebhooks: a name that can be in no DNS, and nothing else, is refused.
func TestHostsOfWebhooks(t *testing.T) {
	h := newHouse(t)
	long := strings.Repeat("a", 63)
	for _, bad := range []string{".", "..example", "a..example", ".example", "example..", long + "a.example", "bücher..example", strings.Repeat("bü", 40) + ".example",
		strings.Repeat(long+".", 4) + "a", "[::1%25eth0]", "[1.2.3.4]"} {
		same(t, bad, h.Send("broker-a", "POST", api+"/webhooks", `{"url":"https://`+bad+`:8443/x"}`).Details(), []string{"value_error body.url"})
	}
	for _, good := range []string{"example.org.", "localhost", "bücher.example", "my_host.example", long + ".example", strings.Repeat(long+".", 3) + long[:61], "[2001:db8::1]", "192.0.2.1"} {
		h.Send("broker-a", "POST", api+"/webhooks", `{"url":"https://`+good+`:8443/x"}`).Want(201)
	}
}

// TestRepeatedEventTypes count once.
func TestRepeatedEventTypes(t *testing.T) {
	h := newHouse(t)
	want(t, h.Send("broker-a", "POST", api+"/webhooks", `{"url":"https://example.org/","include_all_events":false,"event_types":["test","requirementsVid","test"]}`).Want(201),
		"event_types", `["test","requirementsVid"]`)
}

// TestWhatMayBeReplayed: of another tenant nothing is there; what is open is tried anyway; what is about a restricted owner is not
// there for its tenant, and what is about an erased one can't be told again.
func TestWhatMayBeReplayed(t *testing.T) {
	w := newTelling(t)
	hook := w.register()
	path, _, _ := w.open()
	id := w.deliveries(hook)[0].Text("id")
	one := api + "/webhooks/" + hook + "/deliveries/" + id
	w.Send("broker-a", "POST", one+"/replay", "").Detail(409, "DELIVERY_OPEN")
	w.answers(503, "not now")
	w.start()
	w.look(hook)
	w.ends(one, "dead")
	w.Send("broker-b", "POST", one+"/replay", "").Detail(404, "WEBHOOK_NOT_FOUND")
	w.Send("operator", "POST", one+"/replay", "").Detail(403, "Forbidden") // the tenant's route: operators have their own
	w.Send("broker-a", "POST", one+"/replay", `{"now":true}`).Details()
	want(t, w.Send("broker-a", "POST", one+"/replay", "").Want(200), "status", "pending", "next_attempt_at", "")
	w.look(hook)
	w.ends(one, "dead")
	w.answers(200, "")
	want(t, w.Send("operator", "POST", admin+"/webhook_deliveries/"+id+"/replay", "", operation.HeaderMinLogPosition, "none/0@1").Want(200), "status", "pending")
	w.look(hook)
	if n := len(w.ends(one, "delivered").Fields()["attempts"].([]any)); n != 3 {
		t.Errorf("%d attempts", n)
	}
	for _, p := range w.got() {
		if first := w.got()[0]; p.body != first.body || p.header.Get("webhook-id") != first.header.Get("webhook-id") {
			t.Errorf("%s, and first %s", p.body, first.body)
		}
	}

	w.Send("operator", "PUT", admin+"/retention", `{"seconds":3600}`).Want(200)
	ends := admin + "/persons/" + w.refOf(path).ID.String()
	w.Send("operator", "POST", ends+"/erase", `{"reason":"They asked for it"}`).Want(200)
	w.Onboarding.Drain()
	w.Send("broker-a", "POST", one+"/replay", "").Detail(404, "PERSON_NOT_FOUND")
	w.Send("operator", "POST", admin+"/webhook_deliveries/"+id+"/replay", "").Code(409, "OWNER_RESTRICTED")
	w.Advance(scalar.Hour)
	w.Onboarding.Drain()
	w.Send("broker-a", "POST", one+"/replay", "").Detail(409, "OWNER_ERASED")
	w.Send("operator", "POST", admin+"/webhook_deliveries/"+id+"/replay", "").Code(409, "OWNER_ERASED")
}

// TestTheEndOfAnErasedOwner: what was still to be told of who is erased is canceled. The one event that the erasure itself caused
// goes out, though the key is destroyed by then: it holds nothing of the owner's. The feed keeps ids, types and times.
func TestTheEndOfAnErasedOwner(t *testing.T) {
	w := newTelling(t)
	hook := w.register()
	path, trigger, more := w.open()
	w.ask(trigger, more, "a secret reason")
	spared, _, _ := w.open()
	w.Send("operator", "PUT", admin+"/retention", `{"seconds":0}`).Want(200)
	w.Send("operator", "POST", admin+"/persons/"+w.refOf(path).ID.String()+"/erase", `{"reason":"They asked for it"}`).Want(200)
	w.Onboarding.Drain()
	if err := w.Owners.Destroy(t.Context(), w.refOf(path).String()); err != nil {
		t.Fatal(err)
	}
	w.answers(200, "heard of it")
	w.start()
	w.look(hook)
	all := w.deliveries(hook)
	if len(all) != 4 {
		t.Fatalf("%d deliveries", len(all))
	}
	final := api + "/webhooks/" + hook + "/deliveries/" + all[3].Text("id")
	delivered := w.ends(final, "delivered")
	w.ends(api+"/webhooks/"+hook+"/deliveries/"+all[2].Text("id"), "delivered")
	for _, d := range w.deliveries(hook)[:2] {
		want(t, d, "status", "canceled", "attempts", "[]", "next_attempt_at", "")
	}
	if a := delivered.Fields()["attempts"].([]any)[0].(map[string]any); a["response"] != nil || a["status_code"] != 200.0 {
		t.Errorf("the receipt of what was told of an erased owner: %v", a)
	}
	about := make(map[string][]string)
	for _, p := range w.got() {
		for _, owner := range []string{path, spared} {
			if strings.Contains(p.body, w.refOf(owner).ID.String()) {
				about[owner] = append(about[owner], p.body)
			}
		}
	}
	if len(about[path]) != 1 || len(about[spared]) != 1 {
		t.Fatalf("%v", about)
	}
	for _, part := range []string{`"type":"entitlementFailed"`, `"entitlement_trigger_id":"` + trigger + `"`, `"code":"OWNER_ERASED"`, `"sequence":3`} {
		if !strings.Contains(about[path][0], part) {
			t.Errorf("%s lacks %s", about[path][0], part)
		}
	}
	hers := 0
	for _, r := range w.Send("broker-a", "GET", api+"/events", "").Want(200).Records() {
		if r.Text("owner_id") == w.refOf(spared).ID.String() {
			if r.Text("details") == "{}" {
				t.Errorf("of who is not erased: %s", r.Body)
			}
			continue
		}
		hers++
		want(t, r, "details", "{}", "owner_id", w.refOf(path).ID.String(), "owner_type", "person")
		if r.Text("timestamp") == "" || r.Text("id") == "" || r.Text("type") == "" {
			t.Errorf("%s", r.Body)
		}
	}
	if hers != 3 {
		t.Errorf("%d records of the feed", hers)
	}
}

// TestTheEndOfARotation: for a day both keys sign; then the new one is the public key, and signs alone. Only one rotation is under
// way at a time.
func TestTheEndOfARotation(t *testing.T) {
	w := newTelling(t)
	hook := w.register()
	w.start()
	old := w.shown(hook)["public_key"].(string)
	rotated := w.Send("broker-a", "POST", api+"/webhooks/"+hook+"/rotate", "").Want(200)
	next := rotated.Text("next_public_key")
	want(t, rotated, "public_key", old, "next_public_key_from", tradingtest.Start.Add(24*time.Hour).Format("2006-01-02T15:04:05.000000Z"))
	w.Advance(scalar.Day - scalar.Second)
	w.Onboarding.Drain()
	w.Send("broker-a", "POST", api+"/webhooks/"+hook+"/rotate", "").Detail(409, "WEBHOOK_ROTATING")
	want(t, w.Send("broker-a", "GET", api+"/webhooks", "").Want(200).Items()[0], "public_key", old, "next_public_key", next)
	signs := func(raw, alone string, all ...string) {
		t.Helper()
		w.try(hook, "delivered")
		p := w.got()[len(w.got())-1]
		if n := len(strings.Fields(p.header.Get("webhook-signature"))); n != len(all) {
			t.Errorf("%d signatures", n)
		}
		for _, key := range []string{old, next} {
			isRaw, isStandard := p.verifies(key)
			if isRaw != (key == raw) || isStandard != (alone == "" || alone == key) {
				t.Errorf("by %s: %t, %t: %v", key, isRaw, isStandard, p.header)
			}
		}
	}
	signs(old, "", old, next)
	w.Advance(scalar.Second)
	w.Onboarding.Drain()
	now := w.shown(hook)
	if _, rotating := now["next_public_key"]; rotating || now["public_key"] != next || now["key_id"] == rotated.Text("key_id") {
		t.Errorf("%v", now)
	}
	signs(next, next, next)
	want(t, w.Send("broker-a", "POST", api+"/webhooks/"+hook+"/rotate", "").Want(200), "public_key", next)
}

// TestAnEndIsSentOnce: a document's end is sent to receivers thirty days before it, and not again.
func TestAnEndIsSentOnce(t *testing.T) {
	w := newTelling(t)
	hook := w.register()
	w.start()
	path := w.person("p")
	until := tradingtest.Start.Add(31 * 24 * time.Hour)
	id := w.send("broker-a", path, "a.pdf", formattest.PDF(), "category", "id_document", "valid_until", until.Format(time.RFC3339)).Want(201).Text("id")
	w.Advance(scalar.Day - scalar.Second)
	w.Onboarding.Drain()
	w.try(hook, "delivered")
	w.Advance(scalar.Second)
	w.Onboarding.Drain()
	w.look(hook)
	told := w.deliveries(hook)
	if len(told) != 2 {
		t.Fatalf("%d deliveries, want the one that was tried and that of the end", len(told))
	}
	w.ends(api+"/webhooks/"+hook+"/deliveries/"+told[1].Text("id"), "delivered")
	for _, part := range []string{`"type":"documentExpiring"`, `"document_id":"` + id + `"`, `"category":"id_document"`, `"sequence":1`,
		`"owner_id":"` + w.refOf(path).ID.String() + `"`, `"valid_until":"` + until.Format("2006-01-02T15:04:05.000000Z") + `"`} {
		if body := w.got()[1].body; !strings.Contains(body, part) {
			t.Errorf("%s lacks %s", body, part)
		}
	}
	for range 2 {
		w.Advance(16 * scalar.Day) // once before the end, once after it
		w.Onboarding.Drain()
		w.try(hook, "delivered")
	}
	if n := len(w.got()); n != 4 {
		t.Errorf("%d requests came: a test, the document's end, and two tests", n)
	}
}

// TestRepliesThatAreShown: of a reply the first 256 bytes are shown, whatever they are.
func TestRepliesThatAreShown(t *testing.T) {
	w := newTelling(t)
	hook := w.register()
	w.start()
	for _, reply := range []struct{ sent, shown string }{
		{"", "null"},
		{"<b>\"no\"\\\n", "<b>\"no\"\\\n"},
		{"\x00\x01\x7f", "\x00\x01\x7f"},
		{"a\xff\xfeb", "a\uFFFDb"},
		{strings.Repeat("x", 300), strings.Repeat("x", 256)},
		{strings.Repeat("x", 255) + "€", strings.Repeat("x", 255) + "\uFFFD"}, // cut inside of a letter
	} {
		w.answers(200, reply.sent)
		d := w.try(hook, "delivered")
		a := d.Fields()["attempts"].([]any)[0].(map[string]any)
		if got, is := a["response"].(string); is && got != reply.shown || !is && reply.shown != "null" {
			t.Errorf("%q is shown as %q", reply.sent, a["response"])
		}
	}
}

// TestTheFeed: a tenant's events in their order, by type and in pages; whoever has come to the end goes on from there.
func TestTheFeed(t *testing.T) {
	w := newTelling(t)
	hook := w.register()
	_, trigger, more := w.open()
	w.test(hook)
	w.ask(trigger, more, "why b")
	w.open()
	w.Send("operator", "POST", admin+"/entitlement_triggers/"+trigger+"/reject", `{"code":"NO","reason":"No."}`).Want(200)
	w.Onboarding.Drain()
	type feed struct {
		Records []struct {
			ID      string         `json:"id"`
			Type    string         `json:"type"`
			OwnerID string         `json:"owner_id"`
			Details map[string]any `json:"details"`
		} `json:"records"`
		Metadata struct {
			End     string `json:"end_cursor"`
			HasNext bool   `json:"has_next"`
		} `json:"response_metadata"`
	}
	read := func(query string) (f feed) {
		t.Helper()
		w.Send("broker-a", "GET", api+"/events"+query, "").Want(200).JSON(&f)
		return f
	}
	whole := read("")
	var told []string
	sequences := make(map[string]float64)
	for _, r := range whole.Records {
		told = append(told, r.Type)
		if r.Type == "test" {
			continue
		}
		if sequences[r.OwnerID]++; r.Details["sequence"] != sequences[r.OwnerID] {
			t.Errorf("event %v of %s is the %v. about it", r.Details["sequence"], r.OwnerID, sequences[r.OwnerID])
		}
	}
	same(t, "the feed", told, []string{"requirementsQuestionnaire", "test", "requirementsQuestionnaire", "requirementsQuestionnaire", "entitlementFailed"})
	if len(sequences) != 2 || whole.Metadata.HasNext {
		t.Errorf("%+v", whole)
	}
	for _, filter := range []struct {
		query string
		want  []int
	}{{"?", []int{0, 1, 2, 3, 4}}, {"?type=requirementsQuestionnaire&", []int{0, 2, 3}}, {"?type=test&", []int{1}}, {"?type=requirementsVid&", nil}} {
		after := ""
		for n, i := range filter.want {
			page := read(filter.query + "page_size=1" + after)
			if len(page.Records) != 1 || page.Records[0].ID != whole.Records[i].ID || page.Metadata.HasNext != (n+1 < len(filter.want)) {
				t.Fatalf("%s, page %d: %+v", filter.query, n, page)
			}
			after = "&after=" + url.QueryEscape(page.Metadata.End)
		}
		if end := read(filter.query + "page_size=1" + after); len(end.Records) != 0 || end.Metadata.HasNext {
			t.Errorf("%s, the end: %+v", filter.query, end)
		}
	}
	end := "?after=" + url.QueryEscape(whole.Metadata.End)
	w.test(hook)
	if later := read(end); len(later.Records) != 1 || later.Records[0].Type != "test" || later.Records[0].ID == whole.Records[1].ID {
		t.Errorf("what came later: %+v", later)
	}
	for _, query := range []string{"", end} {
		if got := w.Send("broker-b", "GET", api+"/events"+query, "").Want(200).Records(); len(got) != 0 {
			t.Errorf("another tenant is told %d events", len(got))
		}
	}
	if got := w.Send("auditor", "GET", api+"/events", "").Want(200).Records(); len(got) != 6 {
		t.Errorf("auditors are told %d events", len(got))
	}
	for query, fault := range map[string]string{"?type=orders": "query.type", "?page_size=0": "query.page_size", "?page_size=1001": "query.page_size", "?after=x": "query.after"} {
		if got := w.Send("broker-a", "GET", api+"/events"+query, "").Details(); len(got) != 1 || !strings.HasSuffix(got[0], fault) {
			t.Errorf("%s: %v", query, got)
		}
	}
}

// TestWebhookURLs: the scheme and the host may be written in upper case. The answer has the scheme in lower case, and the rest as sent.
func TestWebhookURLs(t *testing.T) {
	v := tradingtest.New(t)
	for sent, want := range map[string]string{
		"https://example.com/Hook?A=b":     "https://example.com/Hook?A=b",
		"HTTPS://Example.COM/Hook?A=b":     "https://Example.COM/Hook?A=b",
		"Https://[2001:DB8::1]:8443/":      "https://[2001:DB8::1]:8443/",
		"HTTP://example.com/":              "",
		"https:example.com":                "",
		"HTTPS:/example.com":               "",
		"HTTPS://":                         "",
		"HTTPS://user@example.com/":        "",
		"HTTPS://example.com/#":            "",
		"https://example.com/a b":          "",
		"httpss://example.com/":            "",
		" https://example.com/":            "",
		"https://example.com:70000/":       "",
		"//example.com/":                   "",
		"":                                 "",
		"HTTPS://EXAMPLE.com:443/%41%2f%C": "",
	} {
		r := v.Send("broker-a", "POST", api+"/webhooks", fmt.Sprintf(`{"url":%q}`, sent))
		if want == "" {
			if r.Status != 422 {
				t.Errorf("%q: %d %s", sent, r.Status, r.Body)
			}
		} else if r.Status != 201 || r.Text("url") != want {
			t.Errorf("%q: %d %s", sent, r.Status, r.Body)
		}
	}
}
