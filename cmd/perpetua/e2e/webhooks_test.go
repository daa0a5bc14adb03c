package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// newHookedVenue prepares a venue that may send to a receiver on loopback.
func newHookedVenue(t testing.TB, r *webhookReceiver, args ...string) *venue {
	t.Helper()
	return newVenue(t, append([]string{"--webhook-allow", "127.0.0.0/8", "--webhook-ca", r.CA}, args...)...)
}

// register registers a path of a receiver's, and has the receiver know the key.
func (v *venue) registerWebhook(r *webhookReceiver, path string) (id string) {
	v.t.Helper()
	made := v.must(201, "broker-a", "POST", "/api/v1/webhooks", map[string]any{"url": r.URL + path})
	r.knows(path, made.get("public_key"))
	return made.get("id")
}

// delivery is a delivery as clients see it.
type delivery struct {
	Status      string
	EventID     string  `json:"event_id"`
	NextAttempt *string `json:"next_attempt_at"`
	Attempts    []struct {
		Number     int
		StatusCode *int `json:"status_code"`
		Error      *string
		Response   *string
	}
}

// deliveryOf reads a delivery as its tenant does.
func (v *venue) deliveryOf(webhook, id string) delivery {
	v.t.Helper()
	return v.readDelivery("broker-a", "/api/v1/webhooks/"+webhook+"/deliveries/"+id)
}

// anyDelivery reads a delivery as operators do, also of a webhook that is deleted.
func (v *venue) anyDelivery(id string) delivery {
	v.t.Helper()
	return v.readDelivery("operator", "/admin/v1/webhook_deliveries/"+id)
}

func (v *venue) readDelivery(user, path string) (d delivery) {
	v.t.Helper()
	if err := json.Unmarshal(v.must(200, user, "GET", path, nil).Body, &d); err != nil {
		v.t.Fatal(err)
	}
	return d
}

// TestWebhooks walks a registration's life by the interface alone, with a real receiver.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	r := newWebhookReceiver(t)
	v := newHookedVenue(t, r, "--webhook-retries", "100ms,100ms")
	v.start()
	t.Cleanup(v.stop)
	const hooks = "/api/v1/webhooks"
	var refuse atomic.Bool
	r.answer = func(parcel, int) int {
		if refuse.Load() {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	}

	for _, bad := range []string{"", "http://receiver.example/", "https://", "https://user@receiver.example/", "https://user:word@receiver.example/", "ftp://receiver.example",
		"https://receiver.example:0/", "https://receiver.example:65536/", "https://receiver.example/#here", "https:///path", "receiver.example", "https://receiver.example/ x"} {
		if a := v.do("broker-a", "POST", hooks, map[string]any{"url": bad}); a.Status != 422 {
			t.Errorf("the URL %q is answered %d: %s", bad, a.Status, a.Body)
		}
	}
	for _, bad := range []map[string]any{{}, {"url": 7}, {"url": r.URL, "include_all_events": "yes"}, {"url": r.URL, "include_all_events": false},
		{"url": r.URL, "include_all_events": false, "event_types": []string{}}, {"url": r.URL, "include_all_events": false, "event_types": []string{"nothing"}}} {
		if a := v.do("broker-a", "POST", hooks, bad); a.Status != 422 {
			t.Errorf("%v is answered %d: %s", bad, a.Status, a.Body)
		}
	}
	ignored := v.must(201, "broker-a", "POST", hooks, map[string]any{"url": r.URL + "/ignored", "event_types": map[string]any{"a": 1}})
	if !strings.Contains(string(ignored.Body), `"event_types":[]`) || ignored.get("include_all_events") != "true" {
		t.Errorf("%s", ignored.Body)
	}
	v.must(204, "broker-a", "DELETE", hooks+"/"+ignored.get("id"), nil)
	v.must(404, "broker-a", "DELETE", hooks+"/"+ignored.get("id"), nil)
	picky := v.must(201, "broker-a", "POST", hooks, map[string]any{"url": r.URL + "/picky", "include_all_events": false, "event_types": []string{"entitlementFailed"}})
	if a := v.must(409, "broker-a", "POST", hooks+"/"+picky.get("id")+"/test", nil); a.get("detail") != "EVENT_NOT_SELECTED" {
		t.Errorf("%s", a.Body)
	}

	id := v.registerWebhook(r, "/hook")
	one := hooks + "/" + id
	if a := v.must(404, "broker-b", "POST", one+"/test", nil); a.get("detail") != "WEBHOOK_NOT_FOUND" {
		t.Errorf("another tenant: %s", a.Body)
	}
	test := v.must(201, "broker-a", "POST", one+"/test", nil)
	first := r.await("/hook", "the test event", func(o object) bool { return o.text("id") == test.get("event_id") })
	if got, want := string(first.Body), `{"id":"`+test.get("event_id")+`","timestamp":"`; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, `"type":"test","details":{}}`) {
		t.Errorf("the test event is %s", got)
	}
	if first.Header.Get("webhook-id") != test.get("event_id") || first.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", first.Header)
	}
	waitFor(t, "the receipt", func() bool { return v.deliveryOf(id, test.get("id")).Status == "delivered" })
	if d := v.deliveryOf(id, test.get("id")); len(d.Attempts) != 1 || *d.Attempts[0].StatusCode != 200 || *d.Attempts[0].Response != "thank you" || d.Attempts[0].Error != nil {
		t.Errorf("%+v", d)
	}

	// While a key takes another's place, the old one and the new one verify.
	rotated := v.must(200, "broker-a", "POST", one+"/rotate", nil)
	next := rotated.get("next_public_key")
	if a := v.must(409, "broker-a", "POST", one+"/rotate", nil); a.get("detail") != "WEBHOOK_ROTATING" || next == "" || next == rotated.get("public_key") {
		t.Errorf("%s, %s", rotated.Body, a.Body)
	}
	refuse.Store(true)
	failing := v.must(201, "broker-a", "POST", one+"/test", nil)
	waitFor(t, "the delivery to be dead", func() bool { return v.deliveryOf(id, failing.get("id")).Status == "dead" })
	refuse.Store(false)
	key := object{"public_key": rotated.get("public_key")}
	tried := r.came("/hook", http.StatusInternalServerError)
	if len(tried) != 3 {
		t.Fatalf("%d attempts", len(tried))
	}
	for _, p := range tried {
		both := strings.Split(p.Header.Get("webhook-signature"), " ")
		if string(p.Body) != string(tried[0].Body) || p.Header.Get("webhook-id") != failing.get("event_id") || len(both) != 2 {
			t.Errorf("%s with %v", p.Body, p.Header)
		}
		opensslVerifies(t, key.text("public_key"), p.Body, p.Header.Get("X-SERVICE-Signature"))
		opensslVerifies(t, next, p.standard(), strings.TrimPrefix(both[1], "v1a,"))
	}
	again := v.must(200, "broker-a", "POST", one+"/deliveries/"+failing.get("id")+"/replay", nil, "Idempotency-Key", "once-more")
	if again.get("status") != "pending" {
		t.Errorf("%s", again.Body)
	}
	waitFor(t, "the replay", func() bool { return v.deliveryOf(id, failing.get("id")).Status == "delivered" })
	if d := v.deliveryOf(id, failing.get("id")); len(d.Attempts) != 4 || d.Attempts[3].Number != 4 {
		t.Errorf("%+v", d)
	}
	if a := v.must(200, "broker-a", "POST", one+"/deliveries/"+failing.get("id")+"/replay", nil, "Idempotency-Key", "once-more"); string(a.Body) != string(again.Body) {
		t.Errorf("the repeated request is answered %s, the first one %s", a.Body, again.Body)
	}

	list := v.must(200, "broker-a", "GET", one+"/deliveries?size=1&page=2", nil)
	if list.get("total") != "2" || list.get("pages") != "2" || !strings.Contains(string(list.Body), test.get("id")) {
		t.Errorf("%s", list.Body)
	}
	v.must(404, "broker-b", "GET", one+"/deliveries", nil)
	v.must(200, "operator", "GET", one+"/deliveries", nil)
	v.checkFeed(test.get("event_id"), failing.get("event_id"))
}

// TestADeletionDuringAnAttempt: a registration is deleted while its receiver holds a request. The attempt is recorded all the same, and
// the delivery stays canceled.
func TestADeletionDuringAnAttempt(t *testing.T) {
	t.Parallel()
	r := newWebhookReceiver(t)
	v := newHookedVenue(t, r)
	v.start()
	t.Cleanup(v.stop)
	id := v.registerWebhook(r, "/hook")
	r.answers.shut()
	test := v.must(201, "broker-a", "POST", "/api/v1/webhooks/"+id+"/test", nil)
	waitFor(t, "the request", func() bool { return len(r.came("/hook", http.StatusOK)) == 1 })
	v.must(204, "broker-a", "DELETE", "/api/v1/webhooks/"+id, nil)
	r.answers.open()
	var d delivery
	waitFor(t, "the receipt", func() bool {
		d = v.anyDelivery(test.get("id"))
		return len(d.Attempts) > 0
	})
	// The sender may have given up on a receiver that a slow machine held for too long.
	if a := d.Attempts[0]; d.Status != "canceled" || d.NextAttempt != nil || len(d.Attempts) != 1 || a.Number != 1 || a.Error == nil && (*a.StatusCode != 200 || *a.Response != "thank you") {
		t.Errorf("%+v", d)
	}
	if a := v.must(409, "operator", "POST", "/admin/v1/webhook_deliveries/"+test.get("id")+"/replay", nil); a.get("detail") != "DELIVERY_CANCELED" && a.get("code") != "DELIVERY_CANCELED" {
		t.Errorf("%s", a.Body)
	}
	v.stop()
	v.start()
	if again := v.anyDelivery(test.get("id")); again.Status != "canceled" || len(again.Attempts) != 1 || len(r.came("/hook", 0)) != 1 {
		t.Errorf("after a restart %+v, and %d requests came", again, len(r.came("/hook", 0)))
	}
}

// checkFeed reads the feed one by one: of what was told, in order, nothing twice.
func (v *venue) checkFeed(want ...string) {
	v.t.Helper()
	var page struct {
		Records  []object
		Metadata struct {
			EndCursor string `json:"end_cursor"`
			HasNext   bool   `json:"has_next"`
		} `json:"response_metadata"`
	}
	after := ""
	for n, id := range want {
		if err := json.Unmarshal(v.must(200, "broker-a", "GET", "/api/v1/events?page_size=1"+after, nil).Body, &page); err != nil {
			v.t.Fatal(err)
		}
		if len(page.Records) != 1 || page.Records[0].text("id") != id || page.Metadata.HasNext != (n+1 < len(want)) {
			v.t.Errorf("event %d of the feed: %+v, want %s", n, page, id)
		}
		after = "&after=" + url.QueryEscape(page.Metadata.EndCursor)
	}
	if a := v.must(200, "broker-a", "GET", "/api/v1/events?type=test"+after, nil); !strings.Contains(string(a.Body), `"records":[]`) {
		v.t.Errorf("after the last one: %s", a.Body)
	}
	if a := v.must(200, "broker-b", "GET", "/api/v1/events", nil); !strings.Contains(string(a.Body), `"records":[]`) {
		v.t.Errorf("another tenant's: %s", a.Body)
	}
}

// TestAKillBetweenDeliveryAndReceipt: what arrived but was not recorded arrives again, with the same id and the same bytes.
func TestAKillBetweenDeliveryAndReceipt(t *testing.T) {
	t.Parallel()
	r := newWebhookReceiver(t)
	v := newHookedVenue(t, r)
	v.start()
	t.Cleanup(v.stop)
	id := v.registerWebhook(r, "/hook")
	r.answer = func(_ parcel, before int) int {
		if before == 0 {
			v.kill() // before the answer: the sender never hears it
		}
		return http.StatusOK
	}
	test, err := v.try("broker-a", "POST", "/api/v1/webhooks/"+id+"/test", nil)
	waitFor(t, "the kill", func() bool { return len(r.came("/hook", http.StatusOK)) > 0 })
	v.start()
	waitFor(t, "the redelivery", func() bool { return len(r.came("/hook", http.StatusOK)) > 1 })
	came := r.came("/hook", http.StatusOK)
	if a, b := came[0], came[1]; string(a.Body) != string(b.Body) || a.Header.Get("webhook-id") != b.Header.Get("webhook-id") {
		t.Errorf("%s, then %s", a.Body, b.Body)
	}
	if err != nil || test.Status != 201 {
		return // the kill was faster than the answer
	}
	waitFor(t, "the receipt", func() bool { return v.deliveryOf(id, test.get("id")).Status == "delivered" })
	if d := v.deliveryOf(id, test.get("id")); len(d.Attempts) != 1 {
		t.Errorf("the receipts tell of %d attempts, of which one was never heard of", len(d.Attempts))
	}
}
