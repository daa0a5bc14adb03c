package trading_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestClientsSeeTheirOwnWrites: whatever is read right after a write holds it, without X-Min-Log-Position: an order, lists,
// its history, the account.
func TestClientsSeeTheirOwnWrites(t *testing.T) {
	v := funded(t)
	read := func(path string) string {
		t.Helper()
		return v.Send("broker-a", "GET", path, "", atOnce()...).Want(200).Body
	}
	for i := range 10 {
		reference := fmt.Sprintf("own-%d", i)
		placed := v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.1", "65010", fmt.Sprintf(`"reference_id":%q`, reference))).Want(201)
		code := placed.Text("code")
		if got := read(a1 + "/orders/" + code); got != placed.Body {
			t.Fatalf("the order is %s, placed as %s", got, placed.Body)
		}
		if got := strings.Count(read(a1+"/orders"), `"code"`); got != 1 {
			t.Fatalf("%d open orders are listed", got)
		}
		batch := v.Send("broker-a", "POST", a1+"/orders/batch", `{"orders":[`+entry("sell", "0.1", "65020")+`,`+entry("sell", "0.1", "65030")+`]}`).Want(200)
		if got := strings.Count(read("/v1/orders"), `"code"`); got != 3 {
			t.Fatalf("%d open orders are listed after the batch %s", got, batch.Body)
		}
		canceled := v.Send("broker-a", "DELETE", a1+"/orders/by-reference/"+reference, "").Want(200)
		if got := read(a1 + "/orders/by-reference/" + reference); got != canceled.Body {
			t.Fatalf("by reference the order is %s, canceled as %s", got, canceled.Body)
		}
		if history := read(a1 + "/orders/history?symbol=BTCUSDC_PERP"); !strings.Contains(history, code) {
			t.Fatalf("history: %s", history)
		}
		v.Send("broker-a", "DELETE", a1+"/orders", "").Want(200)
		if state := read(a1 + "/state"); !strings.Contains(state, `"open_orders":[]`) {
			t.Fatalf("state: %s", state)
		}
		v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.01", "65000")).Want(201)
		bought := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.01", "65000")).Want(201).Text("code")
		for _, path := range []string{"/trades", "/transactions"} {
			if got := read(a1 + path + "?page_size=1&order_code=" + bought); !strings.Contains(got, bought) {
				t.Fatalf("%s: %s", path, got)
			}
		}
		if positions := read(a1 + "/positions"); !strings.Contains(positions, fmt.Sprintf(`"amount":"0.0%d0"`, i+1)) && i < 9 {
			t.Fatalf("positions: %s", positions)
		}
	}
	// An operator's writes are its own, too.
	for i := range 10 {
		reference := fmt.Sprintf("d-%d", i)
		v.Send("operator", "POST", "/admin/v1/customers/A-1/deposits", fmt.Sprintf(`{"amount":"1","currency":"USDC","reference_id":%q}`, reference)).Want(201)
		if got := v.Send("operator", "GET", a1+"/transactions?page_size=1", "", atOnce()...).Want(200).Body; !strings.Contains(got, reference) {
			t.Fatalf("transactions: %s", got)
		}
	}
}
