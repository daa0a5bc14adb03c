package onboarding_test

import (
	"fmt"
	"strings"
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

// TestACaseIsAsOfOneRecord has a case changed while it is read: all that is shown of it is as of the position of the answer.
func TestACaseIsAsOfOneRecord(t *testing.T) {
	h := newHouse(t)
	person := h.person("p-1")
	for user, path := range map[string]string{"operator": admin + "/entitlement_triggers/%s", "broker-a": person + "/entitlement_triggers/%s/explain"} {
		id := h.make("broker-a", person+"/entitlement_triggers", `{"entitlement_id":"`+h.entitlement(owner.PersonType, `,"approval":"manual"`)+`"}`)
		tip, reads := h.Onboarding.Tip(), 0
		h.BeforeRead(func() {
			if reads++; reads != 2 { // after the trigger
				return
			}
			for _, action := range []string{"/request_video_identification", "/block"} {
				h.Send("operator", "POST", admin+"/entitlement_triggers/"+id+action, `{"code":"C","reason":"why"}`).Want(200)
			}
			if err := h.OwnerRows.Wait(t.Context(), h.Onboarding.Tip().Sequence); err != nil {
				t.Error(err)
			}
		})
		r := h.Send(user, "GET", fmt.Sprintf(path, id), "").Want(200)
		if at := r.Header.Get(operation.HeaderLogPosition); reads < 2 || at != tip.String() || strings.Contains(r.Body, "block") || strings.Contains(r.Body, `:"video_identification"`) {
			t.Errorf("%s: after %d reads, as of %s and not %v: %s", user, reads, at, tip, r.Body)
		}
	}
}
