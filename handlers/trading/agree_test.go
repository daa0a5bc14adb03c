package trading_test

import (
	"net/http"
	"net/url"
	"testing"
)

// TestTheDescriptionAgrees: what the description allows is taken, and what it does not is refused as not valid. (That
// whatever is taken is allowed holds for every request of every test here: Send looks.)
func TestTheDescriptionAgrees(t *testing.T) {
	v := funded(t)
	const deposits, brokers = "/admin/v1/customers/A-1/deposits", "/admin/v1/brokers"
	fees, operated := a1+"/fee-profile/"+btc, "/admin/v1/customers/A-1/fee-profile/"+btc
	transfer := func(amount, reference string) string {
		return `{"currency":"USDC","amount":"` + amount + `","reference_id":"` + reference + `"}`
	}
	for _, tt := range []struct {
		user, method, path, body string
		header                   string // X-Min-Log-Position
		ok                       bool
	}{
		{"operator", "PUT", operated, `{"maker_fee":"-0","taker_fee":"5"}`, "", false},
		{"operator", "PUT", operated, `{"maker_fee":"-0.0","taker_fee":"5"}`, "", false},
		{"operator", "PUT", operated, `{"maker_fee":"-0.5","taker_fee":"5"}`, "", true},
		{"operator", "PUT", operated, `{"maker_fee":"0.00001","taker_fee":"5"}`, "", false},
		{"broker-a", "PUT", fees, `{"maker_fee":"-0","taker_fee":"5"}`, "", false},
		{"broker-a", "PUT", fees, `{"maker_fee":"-1","taker_fee":"5"}`, "", false},
		{"broker-a", "PUT", fees, `{"maker_fee":"0","taker_fee":"100.0000"}`, "", true},
		{"operator", "POST", deposits, transfer("1.00000001", "m-1"), "", true},
		{"operator", "POST", deposits, transfer("1.000000001", "m-2"), "", false},
		{"operator", "POST", deposits, transfer("1.000000000", "m-3"), "", false},
		{"operator", "POST", deposits, transfer("0.00", "m-4"), "", false},
		{"operator", "POST", "/admin/v1/customers/A-1/withdrawals", transfer("1.000000001", "m-5"), "", false},
		{"operator", "POST", brokers, `{"broker":"gamma","name":"a\u0007b"}`, "", false},
		{"operator", "POST", brokers, `{"broker":"gamma","name":"a\u0085b"}`, "", false},
		{"operator", "POST", brokers, `{"broker":"gamma","name":"a b ü 😀"}`, "", true},
		{"broker-a", "POST", "/v1/customers", `{"name":"a\u0000b"}`, "", false},
		{"broker-a", "POST", "/v1/customers", `{"name":""}`, "", false},
		{"broker-a", "GET", a1 + "/trades?after=0", "", "", false},
		{"broker-a", "GET", a1 + "/trades?after=", "", "", false},
		{"broker-a", "GET", a1 + "/trades?after=MTowLjA", "", "", true}, // 1:0.0
		{"broker-a", "GET", a1 + "/trades?before=2026-03-31T08:00:00Z", "", "", false},
		{"broker-a", "GET", a1 + "/trades/history?from=0&to=1774944000000&before=2026-03-31T08:00:00Z", "", "", true},
		{"broker-a", "GET", a1 + "/trades/history?from=0&to=1774944000000&before=0", "", "", true},
		{"broker-a", "GET", a1 + "/trades/history?from=-1&to=1774944000000", "", "", false},
		{"broker-a", "GET", a1 + "/trades/history?from=0&to=4133980800000", "", "", false},
		{"broker-a", "GET", a1 + "/trades/history?from=2026-03-31T08:00:00.0000001Z&to=4000000000000", "", "", false},
		{"broker-a", "GET", a1 + "/positions", "", "trading/0@-1", true},
		{"broker-a", "GET", a1 + "/positions", "", "trading/0@-2", false},
		{"broker-a", "GET", a1 + "/positions", "", "trading/00@1", false},
		{"broker-a", "GET", a1 + "/positions", "", "trading/0@01", false},
		{"broker-a", "GET", a1 + "/positions", "", "trading", false},
		{"broker-a", "GET", "/v1/orders?status=open%7Cpartially_filled", "", "", true},
		{"broker-a", "GET", "/v1/orders?status=filled", "", "", false},
		{"operator", "GET", "/admin/v1/journals/trading/records?after=0", "", "", true},
		{"operator", "GET", "/admin/v1/journals/trading/records?after=-1", "", "", false},
	} {
		header := http.Header{}
		if tt.header != "" {
			header.Set("X-Min-Log-Position", tt.header)
		}
		target, err := url.Parse(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		described := v.OpenAPI().Request(tt.method, target, header, []byte(tt.body))
		if (described == nil) != tt.ok {
			t.Errorf("%s %s %s %s: the description says %v", tt.method, tt.path, tt.body, tt.header, described)
		}
		headers := []string{}
		if tt.header != "" {
			headers = append(headers, "X-Min-Log-Position", tt.header)
		}
		reply := v.Send(tt.user, tt.method, tt.path, tt.body, headers...)
		if (reply.Status < 300) != tt.ok || !tt.ok && reply.Text("code") != "VALIDATION_FAILED" {
			t.Errorf("%s %s %s %s: %d %s", tt.method, tt.path, tt.body, tt.header, reply.Status, reply.Body)
		}
	}
	if err := v.OpenAPI().Request("GET", &url.URL{Path: a1 + "/positions"}, http.Header{"X-Min-Log-Position": {""}}, nil); err != nil {
		t.Errorf("an empty position: %v", err)
	}
	v.Send("broker-a", "GET", a1+"/positions", "", "X-Min-Log-Position", "").Want(200)
}
