package admin_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// TestKeysOfOneAccount: a key that is limited to one account reads and changes nothing of the venue, whatever its scopes.
func TestKeysOfOneAccount(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	v.Send("operator", "PATCH", base+"/users/broker-a", `{"scopes":["trade","read","operator","auditor"]}`).Want(200)
	key := func(more string) string {
		return "Bearer " + v.Send("broker-a", "POST", "/v1/api-keys", `{"name":"n","scopes":["read","operator","auditor"]`+more+`}`).Want(201).Text("key")
	}
	one, all := key(`,"customer_code":"A-1"`), key("")
	parameter := regexp.MustCompile(`:[a-z0-9_]+`)
	routes := 0
	for _, r := range v.Routes() {
		if !strings.HasPrefix(r.Path, base+"/") {
			continue
		}
		routes++
		path := parameter.ReplaceAllString(r.Path, "01a20a99-30b5-77f0-98b7-826bf3f29b50")
		v.Send("", r.Method, path, "", "Authorization", one).Code(403, "FORBIDDEN")
		if reply := v.Send("", r.Method, path, "", "Authorization", all); reply.Status == http.StatusForbidden {
			t.Errorf("%s %s of all accounts: %s", r.Method, path, reply.Body)
		}
	}
	if routes < 60 {
		t.Errorf("only %d routes were tried", routes)
	}
	const person = `{"username":"eve","password":"a password","broker":"venue","scopes":["operator"]}`
	v.Send("", "POST", base+"/users", person, "Authorization", one).Code(403, "FORBIDDEN")
	v.Send("", "POST", base+"/users", person, "Authorization", all).Want(201)
	v.Send("", "GET", "/v1/customers/A-1/account-summary", "", "Authorization", one).Want(200)
}
