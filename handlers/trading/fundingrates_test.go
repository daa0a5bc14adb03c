package trading_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// paid is a venue of which A-1, who holds 1 BTC, has paid funding to B-1: at 09:00 by a premium of 100 on 64,900, and at
// 10:00 nothing. The times of day are those of the venue's clock, from the full hour that comes first.
func paid(t *testing.T) (*tradingtest.Venue, func(hours int) string) {
	t.Helper()
	v := funded(t)
	next, err := scalar.ParseTime(v.Send("", "GET", "/v1/tickers?symbol="+btc, "").Want(200).List()[0].Text("next_funding_time"))
	if err != nil || next%scalar.Hour != 0 {
		t.Fatalf("the next funding time is %s (%v)", next, err)
	}
	now, err := scalar.ParseTime(v.Send("", "GET", "/v1/time", "").Want(200).Text("time"))
	if err != nil {
		t.Fatal(err)
	}
	index := func(price string) {
		v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"`+price+`"}`).Want(200)
	}
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "1", "65000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "65000")).Want(201)
	v.Send("broker-a", "POST", "/v1/customers/A-2/orders", entry("buy", "1", "65000")).Want(201)
	v.Send("broker-a", "POST", "/v1/customers/A-2/orders", entry("sell", "1", "65200")).Want(201)
	v.Advance(next - scalar.Minute - now)
	index("64900")
	v.Advance(scalar.Minute)
	index("64900")
	v.Advance(scalar.Hour)
	index("64900")
	return v, func(hours int) string { return (next + scalar.Time(hours)*scalar.Hour).String() }
}

// TestFundingRates: what was fixed, with what it was fixed of, by pages and spans of the instants.
func TestFundingRates(t *testing.T) {
	v, at := paid(t)
	get := func(query string) *tradingtest.Reply { return v.Send("", "GET", "/v1/funding-rates?"+query, "") }
	all := get("symbol=" + strings.ToLower(btc)).Want(200).Records()
	if len(all) != 2 {
		t.Fatalf("%d rates", len(all))
	}
	// (100 ÷ 64900 − 0.0005) ÷ 8; the newest first.
	want(t, all[1], "symbol", btc, "funding_rate", "0.00013010", "index_price", "64900.0", "mark_price", "65000.0", "interval_seconds", "3600",
		"timestamp", at(0), "missed", "false")
	want(t, all[0], "timestamp", at(1), "missed", "false")
	for query, instants := range map[string][]string{
		"sort=asc":             {at(0), at(1)},
		"from=" + at(1):        {at(1)},
		"to=" + at(1):          {at(0)},
		"symbol=ETHUSDC_PERP":  {},
		"page_size=1":          {at(1)},
		"page_size=1&sort=asc": {at(0)},
		"from=" + at(0) + "&to=" + at(2) + "&symbol=" + btc: {at(1), at(0)},
	} {
		var got []string
		for _, r := range get(query).Want(200).Records() {
			got = append(got, r.Text("timestamp"))
		}
		if !slices.Equal(got, instants) && len(got)+len(instants) > 0 {
			t.Errorf("%s: %v, not %v", query, got, instants)
		}
	}
	cursor := get("page_size=1").Fields()["response_metadata"].(map[string]any)["end_cursor"].(string)
	if next := get("page_size=1&after=" + cursor).Want(200).Records(); len(next) != 1 || next[0].Text("timestamp") != at(0) {
		t.Errorf("the next page: %v", next)
	}
	if got := get("limit=1").Code(400, "VALIDATION_FAILED").Faults(); !slices.Equal(got, []string{"limit UNKNOWN_PARAMETER"}) {
		t.Errorf("%v", got)
	}
}

// TestFundingRows: what a customer paid and received, with what it follows from, and nothing of that on other rows.
func TestFundingRows(t *testing.T) {
	v, _ := paid(t)
	for user, path := range map[string]string{"broker-a": a1, "broker-b": b1} {
		rows := v.Send(user, "GET", path+"/transactions", "").Want(200).Records()
		funding := slices.IndexFunc(rows, func(r *tradingtest.Reply) bool { return r.Text("type") == "funding" })
		if funding < 0 {
			t.Fatalf("%s has no funding row", path)
		}
		amount, size := "-8.4565", "1.000"
		if path == b1 {
			amount, size = "8.4565", "-1.000"
		}
		want(t, rows[funding], "amount", amount, "funding_rate", "0.00013010", "position_amount", size, "mark_price", "65000.0", "symbol", btc, "status", "completed")
		for n, r := range rows {
			_, has := r.Fields()["funding_rate"]
			if n != funding && r.Text("type") != "funding" && (has || r.Text("mark_price") != "" || r.Text("position_amount") != "") {
				t.Errorf("a row of another type has figures of funding: %s", r.Body)
			}
		}
	}
}

// TestTickerFunding: what the interval that runs comes to so far, and when it ends.
func TestTickerFunding(t *testing.T) {
	v, at := paid(t)
	ticker := v.Send("", "GET", "/v1/tickers?symbol="+btc, "").Want(200).List()[0]
	want(t, ticker, "next_funding_time", at(2), "mark_price", "65000.0")
	// The last input was the first of its minute: its sample is all that there is.
	want(t, ticker, "funding_rate", "0.00013010")
	v.Send("operator", "POST", "/admin/v1/instruments", `{"symbol":"NEWUSDC_PERP","underlying":"NEW","price_tick":"0.1","amount_step":"0.001","max_amount":"10","init_margin_req":"5","maint_margin_req":"2.5"}`).Want(201)
	quiet := v.Send("", "GET", "/v1/tickers?symbol=NEWUSDC_PERP", "").Want(200).Body
	if !strings.Contains(quiet, `"funding_rate":null,"next_funding_time":null`) {
		t.Errorf("before the first index price: %s", quiet)
	}
}

// TestStaleIndexOverREST: the status in force, for everybody, and the operator's own for the operator.
func TestStaleIndexOverREST(t *testing.T) {
	v := funded(t)
	v.Send("operator", "PATCH", "/admin/v1/instruments/"+btc, `{"index_stale_seconds":10}`).Want(200)
	status := func() string {
		t.Helper()
		return v.Send("", "GET", "/v1/instruments?symbol="+btc, "").Want(200).List()[0].Text("status")
	}
	if s := status(); s != "open" {
		t.Errorf("fresh: %s", s)
	}
	v.Advance(10 * scalar.Second)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "64000")).Want(201)
	if s := status(); s != "post_only" {
		t.Errorf("stale: %s", s)
	}
	v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"`+btc+`","action":"buy","type":"market","amount":"1"}`).Want(422)
	v.Send("operator", "PATCH", "/admin/v1/instruments/"+btc, `{"taker_fee":"5"}`).Want(200)
	if s := v.Send("operator", "PATCH", "/admin/v1/instruments/"+btc, `{"taker_fee":"4"}`).Want(200).Text("status"); s != "open" {
		t.Errorf("the operator set %s", s)
	}
	uneven := v.Send("operator", "PATCH", "/admin/v1/instruments/"+btc, `{"funding_interval_seconds":25200}`).Want(400).Faults()
	if !slices.Equal(uneven, []string{"funding_interval_seconds INVALID_INSTRUMENT"}) {
		t.Errorf("an interval that does not divide a day: %v", uneven)
	}
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65000.12345678"}`).Want(200)
	if s := status(); s != "open" {
		t.Errorf("fresh again: %s", s)
	}
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65000.123456789"}`).Want(400)
}
