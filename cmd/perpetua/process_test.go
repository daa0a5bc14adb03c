package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestProcessManagers has people finish an entitlement that opens a trading account, and others erased, while the two nodes
// with the process managers are killed in turn. Each account is opened once and each key's destruction confirmed once, by
// nodes that own no journal.
func TestProcessManagers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "engine,api,projector", "process", "process")
	v := c.node(0)
	v.must(200, "operator", http.MethodPut, "/admin/v1/retention", `{"seconds":0}`)
	entitlement := v.must(201, "operator", http.MethodPost, "/admin/v1/entitlements",
		`{"name":"trading","owner_type":"person","approval":"automatic","questionnaires":[],"opens_trading_account":true}`).get("id")
	var opening, erased []string
	for n := range 6 {
		id := v.must(201, "broker-a", http.MethodPost, "/api/v1/persons", fmt.Sprintf(`{"external_id":"p-%d","first_name":"A","last_name":"B"}`, n)).get("id")
		if n%2 == 0 {
			v.must(201, "broker-a", http.MethodPost, "/api/v1/persons/"+id+"/entitlement_triggers", map[string]string{"entitlement_id": entitlement})
			opening = append(opening, id)
		} else {
			v.must(200, "operator", http.MethodPost, "/admin/v1/persons/"+id+"/erase", `{"reason":"as was asked"}`)
			erased = append(erased, id)
		}
		if n > 0 { // both are away at some moment
			c.node(1 + n%2).kill()
			c.again(1 + n%2)
		}
	}
	for _, id := range opening {
		code := strings.ReplaceAll(id, "-", "")
		waitFor(t, "the account "+code, func() bool {
			return strings.Contains(string(v.must(200, "broker-a", http.MethodGet, "/v1/customers?page_size=100", nil).Body), `"customer_code":"`+code+`","name":null,"broker":"alpha"`)
		})
	}
	for _, id := range erased {
		waitFor(t, "the end of the key of "+id, func() bool {
			return v.must(200, "operator", http.MethodGet, "/admin/v1/persons/"+id+"/erasure", nil).get("key_id") != ""
		})
	}
	opened, destroyed := v.records("trading", "--type", "customer.registered"), v.records("onboarding", "--type", "owner.key_destroyed")
	if len(opened) != len(opening) || len(destroyed) != len(erased) {
		t.Errorf("%d accounts were opened and %d keys destroyed:\n%s\n%s", len(opened), len(destroyed), opened, destroyed)
	}
	for _, record := range opened {
		if !strings.Contains(record, `"source":{"journal":"onboarding","sequence":`) {
			t.Errorf("an account was opened by itself: %s", record)
		}
	}
}
