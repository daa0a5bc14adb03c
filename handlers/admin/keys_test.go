package admin_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

func TestSigningKeys(t *testing.T) {
	v := tradingtest.New(t)
	first := v.Send("operator", "POST", base+"/signing-keys", "", "Idempotency-Key", "k").Want(201)
	if again := v.Send("operator", "POST", base+"/signing-keys", "", "Idempotency-Key", "k").Want(201); again.Body != first.Body {
		t.Errorf("again %s, first %s", again.Body, first.Body)
	}
	second := v.Send("operator", "POST", base+"/signing-keys", "{}").Want(201)
	before := v.Send("auditor", "GET", base+"/signing-keys", "").Want(200).Text("total")
	list := v.Send("operator", "GET", base+"/signing-keys", "").Want(200)
	if a, b := strings.Index(list.Body, second.Text("kid")), strings.Index(list.Body, first.Text("kid")); a < 0 || b < a {
		t.Errorf("newest first: %s", list.Body)
	}
	retired := v.Send("operator", "DELETE", base+"/signing-keys/"+first.Text("kid"), "").Want(200)
	want(t, retired, "kid", first.Text("kid"))
	v.Send("operator", "DELETE", base+"/signing-keys/"+first.Text("kid"), "").Code(409, "SIGNING_KEY_RETIRED")
	v.Send("operator", "DELETE", base+"/signing-keys/unknown", "").Code(404, "SIGNING_KEY_NOT_FOUND")
	if list := v.Send("operator", "GET", base+"/signing-keys", "").Want(200); strings.Contains(list.Body, first.Text("kid")) || list.Text("total") == before {
		t.Errorf("after one was added and one retired: %s", list.Body)
	}
	for _, e := range v.Identity.Entries() {
		if strings.Contains(string(e.Value), `"d":`) {
			t.Errorf("the log holds a private key: %s", e.Value)
		}
	}
	v.Send("auditor", "POST", base+"/signing-keys", "").Want(403)
	v.Send("broker-a", "GET", base+"/signing-keys", "").Want(403)
}
