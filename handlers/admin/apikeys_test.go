package admin_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// TestLimitsOfAPIKeys: the operator sees a user's keys, gives one a limit of its own and takes it away. The user sees it.
func TestLimitsOfAPIKeys(t *testing.T) {
	v := tradingtest.New(t)
	older := v.Send("broker-a", "POST", "/v1/api-keys", `{"name":"older","scopes":["read"]}`).Want(201)
	made := v.Send("broker-a", "POST", "/v1/api-keys", `{"name":"newer","scopes":["trade"]}`).Want(201)
	want(t, made, "rate_limit", "")
	keys := base + "/users/broker-a/api-keys"
	list := v.Send("auditor", "GET", keys, "").Want(200)
	want(t, list, "total", "2")
	if strings.Index(list.Body, `"newer"`) > strings.Index(list.Body, `"older"`) || strings.Contains(list.Body, made.Text("key")) {
		t.Errorf("newest first, and no secret: %s", list.Body)
	}
	v.Send("operator", "GET", base+"/users/nobody/api-keys", "").Code(404, "USER_NOT_FOUND")
	v.Send("broker-a", "GET", keys, "").Code(403, "FORBIDDEN")
	want(t, v.Send("operator", "GET", base+"/users/broker-b/api-keys", "").Want(200), "total", "0")

	at := keys + "/" + made.Text("id")
	limited := v.Send("operator", "PATCH", at, `{"rate_limit":{"per_second":5,"burst":9}}`, "Idempotency-Key", "k").Want(200)
	want(t, limited, "id", made.Text("id"), "username", "broker-a", "rate_limit", `{"burst":9,"per_second":5}`)
	if again := v.Send("operator", "PATCH", at, `{"rate_limit":{"per_second":5,"burst":9}}`, "Idempotency-Key", "k").Want(200); again.Body != limited.Body {
		t.Errorf("again %s, first %s", again.Body, limited.Body)
	}
	own := v.Send("broker-a", "GET", "/v1/api-keys", "").Want(200)
	if strings.Count(own.Body, `"rate_limit":null`) != 1 || strings.Count(own.Body, `"rate_limit":{"per_second":5,"burst":9}`) != 1 {
		t.Errorf("the user sees %s", own.Body)
	}
	want(t, v.Send("operator", "PATCH", at, `{"rate_limit":null}`).Want(200), "rate_limit", "")

	for path, code := range map[string]string{keys + "/nothing": "API_KEY_NOT_FOUND", base + "/users/broker-b/api-keys/" + made.Text("id"): "API_KEY_NOT_FOUND"} {
		v.Send("operator", "PATCH", path, `{"rate_limit":null}`).Code(404, code)
	}
	v.Send("auditor", "PATCH", at, `{"rate_limit":null}`).Code(403, "FORBIDDEN")
	v.Send("broker-a", "PATCH", at, `{"rate_limit":null}`).Code(403, "FORBIDDEN")
	for body, fault := range map[string]string{`{}`: "rate_limit REQUIRED", `{"rate_limit":5}`: "rate_limit WRONG_TYPE",
		`{"rate_limit":{"per_second":1,"burst":0}}`: "rate_limit.burst OUT_OF_RANGE", `{"rate_limit":null,"name":"x"}`: "name UNKNOWN_FIELD"} {
		if got := v.Send("operator", "PATCH", at, body).Code(400, "VALIDATION_FAILED").Faults(); len(got) != 1 || got[0] != fault {
			t.Errorf("%s: %v, want %s", body, got, fault)
		}
	}
	v.Send("broker-a", "DELETE", "/v1/api-keys/"+older.Text("id"), "").Want(200)
	v.Send("operator", "PATCH", keys+"/"+older.Text("id"), `{"rate_limit":null}`).Code(404, "API_KEY_NOT_FOUND")
	want(t, v.Send("operator", "GET", keys, "").Want(200), "total", "1")
}
