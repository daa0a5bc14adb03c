package onboarding_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// TestObjectsThatHaveNoRowsYet: what the log has is not answered with 404 while the rows are behind.
func TestObjectsThatHaveNoRowsYet(t *testing.T) {
	h := newHouse(t)
	entitlement := h.entitlement(owner.PersonType, `,"approval":"manual"`)
	hook := api + "/webhooks/" + h.make("broker-a", api+"/webhooks", `{"url":"https://example.org/"}`)
	release := h.HoldRows()
	person := h.person("p-1")
	document := person + "/documents/" + h.upload(person)
	trigger := person + "/entitlement_triggers/" + h.make("broker-a", person+"/entitlement_triggers", `{"entitlement_id":"`+entitlement+`"}`)
	delivery := hook + "/deliveries/" + h.make("broker-a", hook+"/test", "")
	for _, path := range []string{person, person + "/export", document, trigger, trigger + "/explain", delivery} {
		h.Send("broker-a", "GET", path, "", operation.HeaderMinLogPosition, "").Detail(503, "SOURCE_UNAVAILABLE")
	}
	release()
	for _, path := range []string{person, trigger, delivery} {
		h.Send("broker-a", "GET", path, "").Want(200)
	}
	h.Send("broker-a", "GET", person+"/entitlement_triggers/"+h.upload(person), "").Want(404)
}
