package trading_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// BenchmarkOrderInside is an order entry that came over a socket, from the REST request made of it to the answer.
func BenchmarkOrderInside(b *testing.B) {
	e, token := interfaceUnderLoad(b)
	body := []byte(`{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.005","limit_price":"64999.5","time_in_force":"GTC"}`)
	b.ReportAllocs()
	for b.Loop() {
		call := rest.Call{Method: "POST", Route: "/v1/customers/:customer_code/orders", Params: []string{"BENCH-07"}, Body: body, Token: token, Address: "127.0.0.1"}
		if r := e.Do(b.Context(), &call); r.Status != 201 {
			b.Fatalf("%d %s", r.Status, r.Body)
		}
	}
}
