package e2e

import (
	"net/http"
	"testing"
)

// fund gives BTCUSDC_PERP an index price and opens customers of broker-a with a balance.
func (v *venue) fund(amount string, customers ...string) {
	v.t.Helper()
	v.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/BTCUSDC_PERP", map[string]string{"price": "65000"})
	for _, c := range customers {
		v.must(201, "broker-a", http.MethodPost, "/v1/customers", map[string]string{"customer_code": c})
		v.must(201, "operator", http.MethodPost, "/admin/v1/customers/"+c+"/deposits",
			map[string]string{"currency": "USDC", "amount": amount, "reference_id": "deposit-" + c})
	}
}

// TestFirstTrade trades on a venue with everything as in production: an embedded Postgres, and passwords at full cost.
func TestFirstTrade(t *testing.T) {
	t.Parallel()
	v := newWholeVenue(t)
	v.costlyPasswords = true
	v.start()
	t.Cleanup(v.stop)
	v.fund("10000", "ANNA", "BEN")
	v.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders",
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.100","limit_price":"65000.0"}`)
	bought := v.must(201, "broker-a", http.MethodPost, "/v1/customers/BEN/orders",
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.050"}`)
	if got := bought.get("status"); got != "filled" {
		t.Errorf("the market order is %s", got)
	}
	if n := len(v.records("trading")); n < 10 {
		t.Errorf("%d records in the log", n)
	}
}
