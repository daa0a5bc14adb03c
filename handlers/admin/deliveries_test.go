package admin_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// delivery returns the id of the newest delivery.
func (d *desk) delivery() scalar.ID {
	d.T.Helper()
	var id scalar.ID
	for _, e := range d.Onboarding.Entries() {
		if made, ok := web.Find[*onboarding.DeliveryCreated](e.Record); ok {
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
