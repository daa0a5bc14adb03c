package onboarding_test

import (
	"strings"
	"testing"
)

// TestALostKey: data about an owner whose key was lost can't be read now. Once the owner is erased, lists have the others.
func TestALostKey(t *testing.T) {
	h := newHouse(t)
	lost, other := h.person("lost"), h.person("other")
	if err := h.Owners.Discard(t.Context(), h.refOf(lost).String()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{lost, lost + "/export", api + "/persons"} {
		r := h.Send("broker-a", "GET", path, "").Detail(503, "KEYS_UNAVAILABLE")
		if wait := r.Header.Get("Retry-After"); wait != "60" {
			t.Errorf("%s: Retry-After is %q", path, wait)
		}
	}
	h.Send("broker-a", "PATCH", lost, `{"first_name":"Bea"}`).Detail(503, "KEYS_UNAVAILABLE")
	h.Send("broker-a", "GET", other, "").Want(200)
	h.Send("operator", "POST", strings.Replace(lost, api, admin, 1)+"/hold", `{"reason":"r"}`).Want(503)
	h.Send("operator", "PUT", admin+"/retention", `{"seconds":0}`).Want(200)
	h.Send("operator", "POST", strings.Replace(lost, api, admin, 1)+"/erase", `{"reason":"r"}`).Want(200)
	h.Onboarding.Drain()
	h.Send("broker-a", "GET", lost, "").Want(404)
	if all := h.Send("broker-a", "GET", api+"/persons", "").Want(200); !strings.Contains(all.Body, h.refOf(other).ID.String()) || strings.Contains(all.Body, h.refOf(lost).ID.String()) {
		t.Errorf("the list is %s", all.Body)
	}
}
