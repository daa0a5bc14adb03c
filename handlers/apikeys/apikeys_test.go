package apikeys_test

import (
	"os"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

const base = "/v1/api-keys"

// TestAPIKeys makes keys, uses one, and revokes it. The secret is in one answer and nowhere else.
func TestAPIKeys(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	v.Send("broker-b", "POST", "/v1/customers", `{"customer_code":"B-1"}`).Want(201)
	entry := `{"name":"market maker","scopes":["trade","read"],"customer_code":"A-1","ip_allow_list":["192.0.2.0/24","192.0.2.1"],"expires_at":"2026-12-31T00:00:00Z"}`
	made := v.Send("broker-a", "POST", base, entry, "Idempotency-Key", "k").Want(201)
	secret, id := made.Text("key"), made.Text("id")
	if len(secret) != 46 || made.Text("prefix") != secret[:9] || made.Text("scopes") != `["trade","read"]` || made.Text("customer_code") != "A-1" ||
		made.Text("ip_allow_list") != `["192.0.2.0/24","192.0.2.1/32"]` || made.Text("expires_at") != "2026-12-31T00:00:00.000000Z" || made.Text("last_used") != "" {
		t.Errorf("%s", made.Body)
	}
	if again := v.Send("broker-a", "POST", base, entry, "Idempotency-Key", "k").Want(201); again.Text("key") != "" || again.Text("id") != id || again.Text("prefix") != secret[:9] {
		t.Errorf("again: %s", again.Body)
	}
	v.Send("broker-a", "POST", base, strings.Replace(entry, "maker", "taker", 1), "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
	v.Send("reader-a", "POST", base, strings.NewReplacer(`"trade",`, "").Replace(entry), "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")

	list := v.Send("broker-a", "GET", base, "").Want(200)
	if strings.Contains(list.Body, secret) || strings.Count(list.Body, `"id"`) != 1 || !strings.Contains(list.Body, id) {
		t.Errorf("%s", list.Body)
	}
	if others := v.Send("reader-a", "GET", base, "").Want(200); others.Body != "[]" {
		t.Errorf("another user of the broker sees %s", others.Body)
	}
	for _, e := range v.Identity.Entries() {
		if strings.Contains(string(e.Value), secret[9:]) {
			t.Errorf("the log holds the secret: %s", e.Value)
		}
	}

	// httptest's requests come from 192.0.2.1.
	as := "Bearer " + secret
	v.Send("", "GET", "/v1/customers/A-1/orders", "", "Authorization", as).Want(200)
	v.Send("", "GET", "/admin/v1/users", "", "Authorization", as).Want(403)
	v.Send("", "GET", base, "", "Authorization", as).Want(200)
	v.Send("", "POST", base, `{"name":"x","scopes":["read"]}`, "Authorization", as).Code(403, "FORBIDDEN")
	v.Send("", "DELETE", base+"/"+id, "", "Authorization", as).Code(403, "FORBIDDEN")

	for _, user := range []string{"reader-a", "broker-b", "operator"} {
		v.Send(user, "DELETE", base+"/"+id, "").Code(404, "API_KEY_NOT_FOUND")
	}
	v.Send("broker-a", "DELETE", base+"/nothing", "").Code(404, "API_KEY_NOT_FOUND")
	if r := v.Send("broker-a", "DELETE", base+"/"+id, "").Want(200); r.Text("id") != id {
		t.Errorf("%s", r.Body)
	}
	v.Send("", "GET", "/v1/customers/A-1/orders", "", "Authorization", as).Want(401)
	v.Send("broker-a", "DELETE", base+"/"+id, "").Code(404, "API_KEY_NOT_FOUND")
	if list := v.Send("broker-a", "GET", base, "").Want(200); list.Body != "[]" {
		t.Errorf("%s", list.Body)
	}
}

// TestKeysForOneAccountSeeThatAlone: what a key lists is no more than what it is for.
func TestKeysForOneAccountSeeThatAlone(t *testing.T) {
	v := tradingtest.New(t)
	key := make(map[string]string)
	for _, name := range []string{"A-1", "A-2"} {
		v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"`+name+`"}`).Want(201)
		key[name] = v.Send("broker-a", "POST", base, `{"name":"of `+name+`","scopes":["read"],"customer_code":"`+name+`"}`).Want(201).Text("key")
	}
	key["all"] = v.Send("broker-a", "POST", base, `{"name":"of all","scopes":["read"]}`).Want(201).Text("key")
	for who, want := range map[string]int{"A-1": 1, "A-2": 1, "all": 3} {
		list := v.Send("", "GET", base, "", "Authorization", "Bearer "+key[who]).Want(200).Body
		if strings.Count(list, `"id"`) != want || !strings.Contains(list, `"of `+who+`"`) {
			t.Errorf("a key for %s lists %s", who, list)
		}
	}
	if list := v.Send("broker-a", "GET", base, "").Want(200).Body; strings.Count(list, `"id"`) != 3 {
		t.Errorf("the user lists %s", list)
	}
}

func TestBadRequestsForAPIKeys(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("broker-b", "POST", "/v1/customers", `{"customer_code":"B-1"}`).Want(201)
	for body, want := range map[string]string{
		`{}`:                            "name REQUIRED, scopes REQUIRED",
		`{"name":"","scopes":[]}`:       "name INVALID_VALUE, scopes REQUIRED",
		`{"name":"x","scopes":["all"]}`: "scopes[0] INVALID_VALUE",
		`{"name":"x","scopes":["read","all","read",1]}`:                                   "scopes[1] INVALID_VALUE, scopes[3] WRONG_TYPE, scopes[2] INVALID_VALUE",
		`{"name":"x","scopes":["read"],"ip_allow_list":[]}`:                               "ip_allow_list INVALID_VALUE",
		`{"name":"x","scopes":["read"],"ip_allow_list":["10.0.0.0/33","here"]}`:           "ip_allow_list[0] INVALID_VALUE, ip_allow_list[1] INVALID_VALUE",
		`{"name":"x","scopes":["read"],"customer_code":"a b","key":"pk_","expires_at":1}`: "customer_code INVALID_VALUE, expires_at OUT_OF_RANGE, key UNKNOWN_FIELD",
	} {
		if got := strings.Join(v.Send("broker-a", "POST", base, body).Want(400).Faults(), ", "); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	v.Send("broker-a", "POST", base, `{"name":"x","scopes":["operator"]}`).Code(422, "SCOPE_NOT_HELD")
	v.Send("broker-a", "POST", base, `{"name":"x","scopes":["read"],"customer_code":"B-1"}`).Code(422, "UNKNOWN_CUSTOMER")
	v.Send("broker-a", "POST", base, `{"name":"x","scopes":["read"],"expires_at":"2001-01-01T00:00:00Z"}`).Want(400)
	v.Send("", "POST", base, `{"name":"x","scopes":["read"]}`).Want(401)
	v.Send("broker-a", "POST", base, `{"name":"x","scopes":["read"],"ip_allow_list":["10.0.0.7"]}`).Want(201)
}
