package trading_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// verified reads a receipt and verifies it.
func verified(t *testing.T, v *tradingtest.Venue, user, path string) *receipt.Verified {
	t.Helper()
	got, err := receipt.Verify([]byte(v.Send(user, "GET", path, "").Want(200).Body), v.Receipts["trading"].Policy)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return got
}

// TestReceipts gives both sides of a trade their receipts, which have nothing of the other side.
func TestReceipts(t *testing.T) {
	v := funded(t)
	sold := v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"`+btc+`","action":"sell","type":"limit","amount":"2","limit_price":"65000","reference_id":"secret-a"}`).Want(201)
	bought := v.Send("broker-b", "POST", b1+"/orders", `{"symbol":"`+btc+`","action":"buy","type":"market","amount":"1","reference_id":"secret-b"}`).Want(201)
	sequence := bought.Text("sequence")
	trade := v.Send("broker-b", "GET", b1+"/trades", "").Records()[0]
	of := func(customer, what, code string) string {
		return customer + "/" + what + "/" + code + "/receipt?sequence=" + sequence
	}
	for path, user := range map[string]string{
		of(a1, "orders", sold.Text("code")):  "client-a",
		of(a1, "trades", trade.Text("code")): "broker-a",
		of(b1, "trades", trade.Text("code")): "broker-b",
	} {
		got := verified(t, v, user, path)
		own, others := []string{`"secret-a"`, "A-1"}, []string{"secret-b", "B-1", "beta", bought.Text("code")}
		if strings.HasPrefix(path, b1) {
			own, others = []string{`"secret-b"`, "B-1"}, []string{"secret-a", "A-1", "alpha", sold.Text("code")}
		}
		units := strings.Join(got.Units, "")
		for _, text := range append(own, trade.Text("code"), `"price":"65000.0"`) {
			if !strings.Contains(units, text) {
				t.Errorf("%s lacks %s: %s", path, text, units)
			}
		}
		for _, text := range others {
			if strings.Contains(units, text) {
				t.Errorf("%s has %s: %s", path, text, units)
			}
		}
		if got.Command != "order.place" || got.Outcome != "accepted" {
			t.Errorf("%s: %+v", path, got.Head)
		}
	}
	// The one who sent the command also gets it.
	if got := verified(t, v, "broker-b", b1+"/orders/"+bought.Text("code")+"/receipt"); !slices.Equal(got.Owners, []string{"broker/beta", "customer/B-1"}) {
		t.Errorf("%v", got.Owners)
	}
	if got := verified(t, v, "client-a", a1+"/orders/"+sold.Text("code")+"/receipt"); !slices.Equal(got.Owners, []string{"customer/A-1"}) {
		t.Errorf("%v", got.Owners)
	}
	for _, row := range v.Send("broker-b", "GET", b1+"/transactions", "").Records() {
		for _, code := range []string{row.Text("code"), row.Text("id")} {
			got := verified(t, v, "broker-b", b1+"/transactions/"+code+"/receipt?sequence="+row.Text("sequence"))
			if !strings.Contains(strings.Join(got.Units, ""), `"balance":"`+row.Text("balance")+`"`) {
				t.Errorf("%s: %v", row.Body, got.Units)
			}
		}
	}
}

// TestNoReceipt refuses receipts of what is another's, of another record, and of records that are not to be had.
func TestNoReceipt(t *testing.T) {
	v := funded(t)
	o := v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"`+btc+`","action":"sell","type":"limit","amount":"2","limit_price":"65000"}`).Want(201)
	v.Send("broker-b", "POST", b1+"/orders", `{"symbol":"`+btc+`","action":"buy","type":"market","amount":"1"}`).Want(201)
	trade := v.Send("broker-a", "GET", a1+"/trades", "").Records()[0]
	order, code, sequence := a1+"/orders/"+o.Text("code")+"/receipt", trade.Text("code"), trade.Text("sequence")
	for _, c := range []struct {
		user, path string
		status     int
		code       string
	}{
		{"broker-b", order, 404, "UNKNOWN_CUSTOMER"},
		{"broker-a", "/v1/customers/A-2/orders/" + o.Text("code") + "/receipt", 404, "UNKNOWN_ORDER"},
		{"broker-a", "/v1/customers/A-2/orders/" + o.Text("code") + "/receipt?sequence=" + sequence, 404, "UNKNOWN_ORDER"},
		{"broker-a", order + "?sequence=1", 404, "UNKNOWN_ORDER"},
		{"broker-a", order + "?sequence=100000", 404, "UNKNOWN_ORDER"},
		{"broker-a", order + "?sequence=-1", 400, "VALIDATION_FAILED"},
		{"broker-a", order + "?sequenc=1", 400, "VALIDATION_FAILED"},
		{"broker-a", a1 + "/orders/nonsense/receipt", 404, "UNKNOWN_ORDER"},
		{"broker-a", a1 + "/trades/" + code + "/receipt", 400, "VALIDATION_FAILED"},
		{"broker-a", a1 + "/trades/nonsense/receipt?sequence=" + sequence, 404, "UNKNOWN_TRADE"},
		{"broker-a", "/v1/customers/A-2/trades/" + code + "/receipt?sequence=" + sequence, 404, "UNKNOWN_TRADE"},
		{"broker-a", a1 + "/transactions/" + o.Text("code") + "/receipt?sequence=" + sequence, 404, "UNKNOWN_TRANSACTION"},
		{"trader-a", order, 403, "FORBIDDEN"},
	} {
		v.Send(c.user, "GET", c.path, "").Code(c.status, c.code)
	}
	r := v.Receipts["trading"]
	r.NoProof = receipt.ErrNotSigned
	if after := v.Send("broker-a", "GET", order, "").Code(503, "RECEIPT_NOT_READY").Header.Get("Retry-After"); after != "5" {
		t.Errorf("Retry-After is %q", after)
	}
	r.NoRecord = &record.TrimmedError{Base: record.Base{Sequence: 100}}
	v.Send("broker-a", "GET", order, "").Code(409, "RECORD_ARCHIVED")
}
