package e2e

import (
	"net/http"
	"testing"
)

// TestFourEyes proposes withdrawals as one operator and ends them as another, at a venue that is killed in between. An API key
// is the same person as its user. The verifiers agree with the log.
func TestFourEyes(t *testing.T) {
	t.Parallel()
	v := startVenue(t, "--demo=false")
	v.must(201, "operator", http.MethodPost, "/admin/v1/users", `{"username":"olga","password":"a good password","broker":"venue","scopes":["operator","read"]}`)
	v.tokens["olga"] = v.login("olga", "a good password")
	key := v.must(201, "operator", http.MethodPost, "/v1/api-keys", `{"name":"robot","scopes":["operator","read"]}`)
	v.tokens["robot"] = key.get("key")
	v.must(201, "broker-a", http.MethodPost, "/v1/customers", `{"customer_code":"EVA"}`)
	v.must(201, "operator", http.MethodPost, "/admin/v1/customers/EVA/deposits", `{"currency":"USDC","amount":"50000","reference_id":"in"}`)
	v.must(200, "operator", http.MethodPut, "/admin/v1/four-eyes/trading", `{"rules":[{"action":"withdrawal.request","threshold":"1000"}]}`)

	const withdrawals = "/admin/v1/customers/EVA/withdrawals"
	v.must(201, "operator", http.MethodPost, withdrawals, `{"currency":"USDC","amount":"999","reference_id":"small"}`)
	propose := func(reference string) string {
		return "/admin/v1/four-eyes/trading/proposals/" + v.must(202, "operator", http.MethodPost, withdrawals, `{"currency":"USDC","amount":"2000","reference_id":"`+reference+`"}`).get("id")
	}
	one, two := propose("one"), propose("two")
	v.kill()
	v.start()
	v.tokens["olga"] = v.login("olga", "a good password")
	v.tokens["robot"] = key.get("key")
	for _, self := range []string{"operator", "robot"} {
		if a := v.must(403, self, http.MethodPost, one+"/confirm", nil); a.code() != "SELF_APPROVAL" {
			t.Errorf("%s confirms its own proposal: %s", self, a.Body)
		}
	}
	if a := v.must(200, "olga", http.MethodPost, one+"/confirm", nil); a.get("status") != "confirmed" {
		t.Errorf("the confirmed proposal is %s", a.Body)
	}
	if a := v.must(409, "olga", http.MethodPost, two+"/confirm", nil); a.code() != "EVIDENCE_CHANGED" {
		t.Errorf("the other one is %s", a.Body)
	}
	if a := v.must(200, "broker-a", http.MethodGet, "/v1/customers/EVA/account-summary", nil); len(a.Body) == 0 {
		t.Error("no summary")
	}
	v.kill()
	v.start()
	if a := v.must(200, "auditor", http.MethodGet, two, nil); a.get("status") != "voided" || a.get("ended_by") != "olga" {
		t.Errorf("after another start it is %s", a.Body)
	}
	var open, ended int
	db := v.database()
	waitFor(t, "the rows", func() bool {
		err := db.QueryRow(t.Context(), "SELECT count(*) FILTER (WHERE status = 'open'), count(*) FILTER (WHERE ended_by = 'olga') FROM proposals").Scan(&open, &ended)
		return err == nil && open == 0 && ended == 2
	})
	if out, err := v.command("audit", "verify", "--rules").CombinedOutput(); err != nil {
		t.Errorf("the log does not verify: %v\n%s", err, out)
	}
}
