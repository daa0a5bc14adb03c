package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// flood has so many deliveries of a tenant close that the state forgets all which closed before: to registrations that are then
// deleted. Nothing of them leaves the machine.
func (v *venue) flood() {
	v.t.Helper()
	const hooks, rounds = 19, 4096/19 + 1
	var paths []string
	for range hooks {
		made := v.must(http.StatusCreated, "broker-a", http.MethodPost, "/api/v1/webhooks",
			`{"url":"https://10.0.0.1/","include_all_events":false,"event_types":["entitlementFailed"]}`)
		paths = append(paths, "/api/v1/webhooks/"+made.get("id"))
	}
	entitlement := v.must(http.StatusCreated, "operator", http.MethodPost, "/admin/v1/entitlements", `{"name":"none","owner_type":"person","approval":"manual"}`).get("id")
	person := v.must(http.StatusCreated, "broker-a", http.MethodPost, "/api/v1/persons", `{"external_id":"f","first_name":"Flo","last_name":"Od"}`).get("id")
	for range rounds {
		trigger := v.must(http.StatusCreated, "broker-a", http.MethodPost, "/api/v1/persons/"+person+"/entitlement_triggers",
			fmt.Sprintf(`{"entitlement_id":%q}`, entitlement)).get("id")
		v.must(http.StatusOK, "operator", http.MethodPost, "/admin/v1/entitlement_triggers/"+trigger+"/cancel", `{"code":"NO","reason":"No."}`)
	}
	for _, path := range paths {
		v.must(http.StatusNoContent, "broker-a", http.MethodDelete, path, nil)
	}
}

// TestForgottenDeliveries: deliveries that the state has forgotten are sent again when their tenant asks for it, with the same bytes;
// also by a venue that was started from a snapshot and has lost its database.
func TestForgottenDeliveries(t *testing.T) {
	t.Parallel()
	r := newWebhookReceiver(t)
	// A stop makes a snapshot after a tenth as many records, and a replay is only three.
	v := newHookedVenue(t, r, "--webhook-retries", "1h", "--snapshot-records", "10")
	v.start()
	t.Cleanup(v.stop)
	made := v.must(http.StatusCreated, "broker-a", http.MethodPost, "/api/v1/webhooks",
		fmt.Sprintf(`{"url":"%s/kept","include_all_events":false,"event_types":["test"]}`, r.URL))
	r.knows("/kept", made.get("public_key"))
	hook := made.get("id")
	told := func(id string, times int) {
		t.Helper()
		waitFor(t, "a receipt", func() bool {
			d := v.deliveryOf(hook, id)
			return d.Status == "delivered" && len(d.Attempts) == times
		})
	}
	var ids []string
	for range 2 {
		ids = append(ids, v.must(http.StatusCreated, "broker-a", http.MethodPost, "/api/v1/webhooks/"+hook+"/test", nil).get("id"))
	}
	told(ids[0], 1)
	told(ids[1], 1)
	bodies := make([]string, 0, 2)
	for _, p := range r.came("/kept", http.StatusOK) {
		bodies = append(bodies, p.Header.Get("webhook-id")+string(p.Body))
	}
	v.flood()
	again := func(id string) {
		t.Helper()
		a := v.must(http.StatusOK, "broker-a", http.MethodPost, "/api/v1/webhooks/"+hook+"/deliveries/"+id+"/replay", nil)
		if a.get("status") != "pending" || a.get("id") != id {
			t.Errorf("%s", a.Body)
		}
		told(id, 2)
	}
	again(ids[0])

	v.stop() // which makes a snapshot
	s := v.snapshot("onboarding").State.(*onboarding.State)
	if s.ActiveRules() != onboarding.Rules().Newest() {
		t.Fatalf("a venue that begins goes by rules %d", s.ActiveRules())
	}
	known := func(text string) bool {
		id, err := scalar.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		_, known := s.Delivery(id)
		return known
	}
	if n := s.Totals(); !known(ids[0]) || known(ids[1]) || n.Deliveries < 4096 || n.Retained != 4096 {
		t.Errorf("the snapshot knows of both deliveries: %t, %t, and of %+v in all", known(ids[0]), known(ids[1]), n)
	}
	v.dropDatabase()
	v.start()
	if at := v.measureOf("onboarding", "loaded_sequence"); at < s.Forgotten() {
		t.Errorf("it is started from a snapshot at %d", at)
	}
	again(ids[1])
	came := make(map[string]int) // by event and body
	for _, p := range r.came("/kept", 0) {
		came[p.Header.Get("webhook-id")+string(p.Body)]++
	}
	if !maps.Equal(came, map[string]int{bodies[0]: 2, bodies[1]: 2}) {
		t.Errorf("%v came, where each should come twice of %q", came, bodies)
	}
}
