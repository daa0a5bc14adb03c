package admin_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// delivery returns the id of the newest delivery.
func (d *desk) delivery() scalar.ID {
	d.T.Helper()
	var id scalar.ID
	for _, e := range d.Onboarding.Entries() {
		if made, ok := operation.Find[*onboarding.DeliveryCreated](e.Record); ok {
			id = made.ID
		}
	}
	return id
}

// TestDeliveries: operators see the deliveries of every tenant with their attempts, and have dead ones tried again.
func TestDeliveries(t *testing.T) {
	d := newDesk(t)
	hook := d.Send("broker-a", "POST", "/api/v1/webhooks", `{"url":"https://example.org/"}`).Want(201).Text("id")
	entitlement := d.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual"}`)
	ann := d.owner("alpha", owner.PersonType, 1)
	trigger := d.trigger(ann, "alpha", entitlement)
	d.Send("operator", "POST", base+"/entitlement_triggers/"+trigger+"/reject", because).Want(200)
	id := d.delivery()
	one := base + "/webhook_deliveries/" + id.String()
	d.Send("operator", "POST", one+"/replay", "").Code(409, "DELIVERY_OPEN")
	d.submit(decide.Actor{System: "sender"}, &onboarding.RecordAttempt{ID: id, Number: 1, Started: scalar.TimeOf(tradingtest.Start), StatusCode: 500})

	want(t, d.Send("auditor", "GET", one, "").Want(200), "id", id.String(), "webhook_id", hook, "status", "dead", "event_type", "entitlementFailed", "owner_id", ann.ID.String(),
		"attempts", `[{"duration_ms":0,"error":null,"number":1,"response":null,"started_at":"2026-03-31T08:00:00.000000Z","status_code":500}]`)
	want(t, d.Send("auditor", "GET", base+"/webhook_deliveries?status=dead|pending&webhook_id="+hook, "").Want(200), "total", "1", "pages", "1")
	want(t, d.Send("auditor", "GET", base+"/webhook_deliveries?status=delivered", "").Want(200), "total", "0", "items", "[]")
	// About one owner, whichever else the filter names.
	about := base + "/webhook_deliveries?owner_id=" + ann.ID.String()
	d.Send("broker-a", "POST", "/api/v1/webhooks/"+hook+"/test", "").Want(201)
	for more, total := range map[string]string{"": "1", "&status=dead|pending": "1", "&webhook_id=" + hook: "1", "&status=delivered": "0", "&webhook_id=" + scalar.ID{9}.String(): "0"} {
		want(t, d.Send("auditor", "GET", about+more, "").Want(200), "total", total)
	}
	want(t, d.Send("auditor", "GET", base+"/webhook_deliveries?owner_id="+scalar.ID{9}.String(), "").Want(200), "total", "0")
	again := d.Send("operator", "POST", one+"/replay", "", "Idempotency-Key", "k").Want(200)
	want(t, again, "status", "pending", "id", id.String())
	if repeated := d.Send("operator", "POST", one+"/replay", "", "Idempotency-Key", "k").Want(200); repeated.Body != again.Body {
		t.Errorf("again %s, first %s", repeated.Body, again.Body)
	}
	d.submit(decide.Actor{System: "sender"}, &onboarding.RecordAttempt{ID: id, Number: 2, Started: scalar.TimeOf(tradingtest.Start), StatusCode: 500})
	d.Send("operator", "POST", base+"/persons/"+ann.ID.String()+"/erase", `{"reason":"r"}`).Want(200)
	d.Send("operator", "POST", one+"/replay", "").Code(409, "OWNER_RESTRICTED")
	for _, unknown := range []string{"nonsense", scalar.ID{9}.String()} {
		d.Send("auditor", "GET", base+"/webhook_deliveries/"+unknown, "").Code(404, "DELIVERY_NOT_FOUND")
		d.Send("operator", "POST", base+"/webhook_deliveries/"+unknown+"/replay", "").Code(404, "DELIVERY_NOT_FOUND")
	}
	if got := d.Send("operator", "GET", base+"/webhook_deliveries?status=lost&webhook_id=x&size=0", "").Want(400).Faults(); len(got) != 3 {
		t.Errorf("faults %v", got)
	}
}

// TestReplayBringsForward replays deliveries that wait for their retry, as the operator and as the tenant. Rules 2 refuse it.
func TestReplayBringsForward(t *testing.T) {
	d := newDesk(t)
	hook := d.Send("broker-a", "POST", "/api/v1/webhooks", `{"url":"https://example.org/"}`).Want(201).Text("id")
	d.Nodes = []admin.Node{{Name: "http://a", Rules: map[string]int{"onboarding": 3}}}
	d.Send("operator", "POST", base+"/rules/onboarding", `{"rules":2}`).Want(200)
	var paths []string
	for range 2 {
		d.Send("broker-a", "POST", "/api/v1/webhooks/"+hook+"/test", "").Want(201)
		id := d.delivery()
		d.submit(decide.Actor{System: "sender"}, &onboarding.RecordAttempt{ID: id, Number: 1, Started: scalar.TimeOf(tradingtest.Start), StatusCode: 500,
			Schedule: webhook.Schedule{scalar.Hour}})
		paths = append(paths, base+"/webhook_deliveries/"+id.String())
	}
	tenants := "/api/v1/webhooks/" + hook + "/deliveries/" + d.delivery().String()
	if before := d.Send("operator", "GET", paths[0], "").Want(200); before.Text("status") != "retrying" || before.Text("next_attempt_at") == "" {
		t.Fatalf("%s", before.Body)
	}
	d.Send("operator", "POST", paths[0]+"/replay", "").Code(409, "DELIVERY_OPEN")
	d.Send("broker-a", "POST", tenants+"/replay", "").Detail(409, "DELIVERY_OPEN")
	d.Send("operator", "POST", base+"/rules/onboarding", `{"rules":3}`).Want(200)
	want(t, d.Send("operator", "POST", paths[0]+"/replay", "").Want(200), "status", "pending", "next_attempt_at", "")
	want(t, d.Send("broker-a", "POST", tenants+"/replay", "").Want(200), "status", "pending", "next_attempt_at", "")
	for _, path := range paths {
		want(t, d.Send("auditor", "GET", path, "").Want(200), "status", "pending", "next_attempt_at", "")
		d.Send("operator", "POST", path+"/replay", "").Code(409, "DELIVERY_OPEN")
	}
}

// forgotten is a desk under the rules that forget, with a registration of alpha's. Others close by flood.
type forgotten struct {
	*desk
	hook string
	told scalar.ID
}

func newForgotten(t *testing.T) *forgotten {
	f := &forgotten{desk: newDesk(t)}
	f.hook = f.Send("broker-a", "POST", "/api/v1/webhooks", `{"url":"https://example.org/"}`).Want(201).Text("id")
	f.Nodes = []admin.Node{{Name: "http://a", Rules: map[string]int{"onboarding": 2}}}
	want(t, f.Send("operator", "POST", base+"/rules/onboarding", `{"rules":2}`).Want(200), "journal", "onboarding", "rules", "2")
	return f
}

// flood has so many deliveries close that all which closed before are forgotten.
func (f *forgotten) flood() {
	f.T.Helper()
	hook := f.Send("broker-a", "POST", "/api/v1/webhooks", `{"url":"https://example.org/","include_all_events":false,"event_types":["test"]}`).Want(201).Text("id")
	id, err := scalar.ParseID(hook)
	if err != nil {
		f.T.Fatal(err)
	}
	for range 4096 {
		f.submit(client("alpha"), &onboarding.TestWebhook{ID: id})
	}
	f.told = f.delivery()
	f.Send("broker-a", "DELETE", "/api/v1/webhooks/"+hook, "").Want(204)
}

// unknown sees that the state knows nothing of a delivery.
func (f *forgotten) unknown(id scalar.ID) {
	f.T.Helper()
	f.Onboarding.View(func(s decide.State, _ record.Position) {
		if v, known := s.(*onboarding.State).Delivery(id); known {
			f.T.Errorf("the state has not forgotten %+v", v)
		}
	})
}

// dead makes a delivery about an owner that nobody acknowledged.
func (f *forgotten) dead(ref owner.Ref, entitlement string) scalar.ID {
	f.T.Helper()
	trigger := f.trigger(ref, "alpha", entitlement)
	f.Send("operator", "POST", base+"/entitlement_triggers/"+trigger+"/reject", because).Want(200)
	id := f.delivery()
	f.attempted(id, 1)
	return id
}

func (f *forgotten) attempted(id scalar.ID, number int) {
	f.T.Helper()
	f.submit(decide.Actor{System: "sender"}, &onboarding.RecordAttempt{ID: id, Number: number, Started: scalar.TimeOf(tradingtest.Start), StatusCode: 500})
}

// TestReplaysOfTheForgotten: whether the state has forgotten a delivery that is over makes no difference to who asks for it, or
// for it to be tried again. The rows know, and are waited for.
func TestReplaysOfTheForgotten(t *testing.T) {
	f := newForgotten(t)
	entitlement := f.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual"}`)
	ann, bea := f.owner("alpha", owner.PersonType, 1), f.owner("alpha", owner.PersonType, 2)
	id, hers := f.dead(ann, entitlement), f.dead(bea, entitlement)
	f.flood()
	canceled := f.told
	one, any := "/api/v1/webhooks/"+f.hook+"/deliveries/"+id.String(), base+"/webhook_deliveries/"
	for _, id := range []scalar.ID{id, hers} {
		f.unknown(id)
	}

	want(t, f.Send("broker-a", "GET", one, "").Want(200), "id", id.String(), "status", "dead")
	another := f.Send("broker-a", "POST", "/api/v1/webhooks", `{"url":"https://example.org/"}`).Want(201).Text("id")
	theirs := f.Send("broker-b", "POST", "/api/v1/webhooks", `{"url":"https://example.org/"}`).Want(201).Text("id")
	for _, path := range []string{"/api/v1/webhooks/" + another + "/deliveries/" + id.String(), "/api/v1/webhooks/" + f.hook + "/deliveries/" + scalar.ID{9}.String()} {
		f.Send("broker-a", "GET", path, "").Want(404)
		f.Send("broker-a", "POST", path+"/replay", "").Want(404)
	}
	f.Send("broker-b", "POST", one+"/replay", "").Want(404)
	f.Send("broker-b", "POST", "/api/v1/webhooks/"+theirs+"/deliveries/"+id.String()+"/replay", "").Want(404)
	f.Send("operator", "POST", any+scalar.ID{9}.String()+"/replay", "").Code(404, "DELIVERY_NOT_FOUND")

	first := f.Send("broker-a", "POST", one+"/replay", "", "Idempotency-Key", "k").Want(200)
	want(t, first, "id", id.String(), "status", "pending", "owner_id", ann.ID.String(), "webhook_id", f.hook, "event_type", "entitlementFailed")
	f.Send("operator", "POST", any+id.String()+"/replay", "").Code(409, "DELIVERY_OPEN")
	f.attempted(id, 2)
	want(t, f.Send("operator", "POST", any+hers.String()+"/replay", "").Want(200), "id", hers.String(), "status", "pending")

	// The rows stand still while hers closes and is forgotten. Then they may come to it.
	release := f.HoldRows()
	f.attempted(hers, 2)
	f.flood()
	f.unknown(id)
	f.Send("operator", "POST", any+hers.String()+"/replay", "").Code(503, "NOT_ACCEPTED")
	release()
	if err := f.OwnerRows.Wait(t.Context(), f.Onboarding.Tip().Sequence); err != nil {
		t.Fatal(err)
	}
	want(t, f.Send("operator", "POST", any+hers.String()+"/replay", "").Want(200), "id", hers.String(), "status", "pending")
	f.attempted(hers, 3)
	again := f.Send("broker-a", "POST", one+"/replay", "", "Idempotency-Key", "k").Want(200)
	if again.Body != first.Body {
		t.Errorf("again %s, first %s", again.Body, first.Body)
	}
	f.Send("operator", "POST", base+"/persons/"+ann.ID.String()+"/erase", `{"reason":"r"}`).Want(200)
	f.Send("operator", "POST", any+id.String()+"/replay", "").Code(409, "OWNER_RESTRICTED")
	f.Send("broker-a", "POST", one+"/replay", "").Want(404)
	f.Send("operator", "POST", any+canceled.String()+"/replay", "").Code(409, "DELIVERY_CANCELED")
}
