package trading_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// symbols returns the symbols of a list.
func symbols(r *tradingtest.Reply) string {
	var list []struct {
		Symbol string `json:"symbol"`
	}
	r.JSON(&list)
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = strings.TrimSuffix(item.Symbol, "USDC_PERP")
	}
	return strings.Join(out, " ")
}

func TestInstrumentFilters(t *testing.T) {
	v := tradingtest.New(t)
	for _, tt := range []struct{ query, found string }{
		{"", "BTC ETH"},
		{"symbol=BTCUSDC_PERP", "BTC"},
		{"symbol=btcusdc_perp", "BTC"},
		{"symbol=BTC", ""},
		{"symbol=BTC*", "BTC"},
		{"symbol=*_PERP", "BTC ETH"},
		{"symbol=*", "BTC ETH"},
		{"symbol=**", "BTC ETH"},
		{"symbol=*T*USDC*", "BTC ETH"},
		{"symbol=E*P", "ETH"},
		{"symbol=*USDC_PERPX", ""},
		{"symbol=nope|ethusdc_perp", "ETH"},
		{"symbol=ETHUSDC_PERP|BTC*", "BTC ETH"},
		{"symbol=.*", ""},
		{"underlying=btc", "BTC"},
		{"underlying=b*|e*", "BTC ETH"},
		{"quote_currency=usdc", "BTC ETH"},
		{"quote_currency=EUR", ""},
		{"symbol=BTC*&underlying=ETH", ""},
	} {
		for _, path := range []string{"/v1/instruments?", "/v1/tickers?"} {
			if got := symbols(v.Send("", "GET", path+strings.ReplaceAll(tt.query, "|", "%7C"), "").Want(200)); got != tt.found {
				t.Errorf("%s%s: %s, want %s", path, tt.query, got, tt.found)
			}
		}
	}
	// Before its first index price an instrument is post_only.
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65000"}`).Want(200)
	for query, found := range map[string]string{"open": "BTC", "post_only": "ETH", "open|post_only": "BTC ETH", "trade_halt": ""} {
		if got := symbols(v.Send("", "GET", "/v1/instruments?status="+url.QueryEscape(query), "").Want(200)); got != found {
			t.Errorf("status %s: %s, want %s", query, got, found)
		}
	}
	v.Send("", "GET", "/v1/instruments?status=settled", "").Code(400, "VALIDATION_FAILED")
	v.Send("", "GET", "/v1/instruments?status=withdrawn", "").Code(400, "VALIDATION_FAILED")
}

// TestInstrumentsAreCached: a client that has the list does not get it again, until it changes.
func TestInstrumentsAreCached(t *testing.T) {
	v := tradingtest.New(t)
	const list, file = "/v1/instruments", "/openapi.json"
	tag := v.Send("", "GET", list, "").Want(200).Header.Get("ETag")
	v.Send("", "GET", list, "", "If-None-Match", tag).Want(304)
	v.Send("operator", "PATCH", "/admin/v1/instruments/"+btc, `{"status":"trade_halt"}`).Want(200)
	v.Send("", "GET", list, "", "If-None-Match", tag).Want(200)
	v.Send("", "GET", file, "", "If-None-Match", v.Send("", "GET", file, "").Want(200).Header.Get("ETag")).Want(304)
}

func TestTickers(t *testing.T) {
	v := funded(t)
	quiet := v.Send("", "GET", "/v1/tickers?symbol="+btc, "").Want(200).Body
	for _, part := range []string{`"last_price":null`, `"mark_price":"65000`, `"best_bid":null`, `"open_24h":null`, `"change_24h":null`,
		`"volume_24h":"0.000"`, `"turnover_24h":"0"`, `"open_interest":"0.000"`, `"funding_rate":"0.00000000"`, `"next_funding_time":"20`} {
		if !strings.Contains(quiet, part) {
			t.Errorf("before any trade: %s is not in %s", part, quiet)
		}
	}
	trade := func(price, amount string) {
		t.Helper()
		v.Send("broker-b", "POST", b1+"/orders", entry("sell", amount, price)).Want(201)
		v.Send("broker-a", "POST", a1+"/orders", entry("buy", amount, price)).Want(201)
	}
	trade("60000", "0.1") // a day earlier, to the last minute
	v.Advance(scalar.Day + scalar.Minute)
	trade("65000", "0.1")
	trade("65650", "0.2")
	trade("64350", "0.1")
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.3", "65001")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.4", "64999")).Want(201)
	busy := v.Send("", "GET", "/v1/tickers?symbol="+btc, "").Want(200).Body
	for _, part := range []string{`"last_price":"64350.0"`, `"best_bid":"64999.0"`, `"best_bid_amount":"0.400"`, `"best_ask":"65001.0"`,
		`"best_ask_amount":"0.300"`, `"open_24h":"65000.0"`, `"high_24h":"65650.0"`, `"low_24h":"64350.0"`, `"change_24h":"-1.00"`,
		`"volume_24h":"0.400"`, `"turnover_24h":"26065"`, `"open_interest":"0.500"`} {
		if !strings.Contains(busy, part) {
			t.Errorf("%s is not in %s", part, busy)
		}
	}
	book := v.Send("", "GET", "/v1/orderbook/"+btc+"?depth=1", "").Want(200)
	want(t, book, "symbol", btc, "bids", `[{"amount":"0.400","price":"64999.0"}]`, "asks", `[{"amount":"0.300","price":"65001.0"}]`,
		"sequence", fmt.Sprint(v.Trading.Tip().Sequence))
	v.Send("", "GET", "/v1/orderbook/NOPE", "").Code(404, "UNKNOWN_SYMBOL")
	want(t, v.Send("", "GET", "/v1/time", "").Want(200), "time", "2026-04-01T08:01:00.000000Z")
	v.Advance(-2 * scalar.Day) // a clock behind the log changes nothing
	if got := v.Send("", "GET", "/v1/tickers?symbol="+btc, "").Want(200).Body; got != busy {
		t.Errorf("with a clock behind the log: %s, want %s", got, busy)
	}
	for _, path := range []string{"/v1/time", "/v1/status"} {
		want(t, v.Send("", "GET", path, "").Want(200), "time", "2026-04-01T08:01:00.000000Z")
	}
}

// page is a page of a list with cursors.
type page struct {
	Records []struct {
		Price  string `json:"price"`
		Type   string `json:"type"`
		Amount string `json:"amount"`
		Code   string `json:"code"`
	} `json:"records"`
	Metadata struct {
		HasNext     bool   `json:"has_next"`
		HasPrevious bool   `json:"has_previous"`
		Start       string `json:"start_cursor"`
		End         string `json:"end_cursor"`
	} `json:"response_metadata"`
}

func (p page) prices() string {
	var out []string
	for _, r := range p.Records {
		out = append(out, strings.TrimSuffix(r.Price, ".0"))
	}
	return strings.Join(out, " ")
}

// TestTradesAndPaging reads trades in every way there is, and pages through them in both directions.
func TestTradesAndPaging(t *testing.T) {
	v := funded(t)
	for i := range 5 {
		price := fmt.Sprint(65000 + i)
		v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.1", price)).Want(201)
		v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", price)).Want(201)
		v.Advance(scalar.Second)
	}
	get := func(path string) (p page) {
		t.Helper()
		v.Send("broker-a", "GET", path, "").Want(200).JSON(&p)
		return p
	}
	for path, prices := range map[string]string{
		a1 + "/trades":          "65004 65003 65002 65001 65000",
		a1 + "/trades?sort=asc": "65000 65001 65002 65003 65004",
		a1 + "/trades/history?from=2026-03-31T08:00:01.000000Z&to=2026-03-31T08:00:03.000000Z":           "65001 65002",
		a1 + "/trades/history?from=2026-03-31T08:00:01.000000Z&to=2026-03-31T08:00:03.000000Z&sort=desc": "65002 65001",
		"/v1/market-trades/history?from=2026-03-31T08:00:02.000000Z&to=2026-04-01T00:00:00.000000Z":      "65002 65003 65004",
		"/v1/market-trades/history?from=2026-04-02T08:00:02.000000Z&to=2026-04-03T00:00:00.000000Z":      "",
		a1 + "/trades?symbol=ETHUSDC_PERP": "",
	} {
		if got := get(path).prices(); got != prices {
			t.Errorf("%s: %s, want %s", path, got, prices)
		}
	}
	v.Send("broker-a", "GET", a1+"/trades/history?from=2026-03-31T08:00:01.000000Z&to=2026-03-31T08:00:00.000000Z", "").Want(400)

	first := get(a1 + "/trades?page_size=2&sort=asc")
	if first.prices() != "65000 65001" || !first.Metadata.HasNext || first.Metadata.HasPrevious {
		t.Errorf("first page: %+v", first)
	}
	second := get(a1 + "/trades?page_size=2&sort=asc&after=" + first.Metadata.End)
	if second.prices() != "65002 65003" || !second.Metadata.HasNext || !second.Metadata.HasPrevious {
		t.Errorf("second page: %+v", second)
	}
	last := get(a1 + "/trades?page_size=2&sort=asc&after=" + second.Metadata.End)
	if last.prices() != "65004" || last.Metadata.HasNext {
		t.Errorf("last page: %+v", last)
	}
	if back := get(a1 + "/trades?page_size=2&sort=asc&before=" + last.Metadata.Start); back.prices() != "65002 65003" {
		t.Errorf("back: %+v", back)
	}
	if before := get(a1 + "/trades/history?from=2026-03-31T00:00:00.000000Z&to=2026-04-01T00:00:00.000000Z&before=" + second.Metadata.Start); before.prices() != "65000 65001" {
		t.Errorf("before in history: %+v", before)
	}

	body := v.Send("", "GET", "/v1/market-trades?limit=2&symbol="+btc, "").Want(200).Body
	v.Send("", "GET", "/v1/market-trades?limit=2", "").Want(200)
	if strings.Count(body, `"action":"buy"`) != 2 || strings.Index(body, "65004") > strings.Index(body, "65003") || strings.Contains(body, "A-1") {
		t.Errorf("recent: %s", body)
	}
	v.Send("", "GET", "/v1/market-trades?limit=0", "").Want(400)
	v.Send("", "GET", "/v1/market-trades?limit=1001", "").Want(400)
}

// TestFiltersAreBounded: a filter of more than a thousand characters is refused, and so is one with nothing between pipes.
func TestFiltersAreBounded(t *testing.T) {
	v := tradingtest.New(t)
	for _, path := range []string{"/v1/instruments", "/v1/tickers"} {
		for _, name := range []string{"symbol", "underlying", "quote_currency"} {
			v.Send("", "GET", path+"?"+name+"="+strings.Repeat("*A", 500), "").Want(200)
			for text, fault := range map[string]string{strings.Repeat("*", 1001): "TOO_LONG", "BTC%7C": "INVALID_VALUE", "%7C": "INVALID_VALUE", "": "INVALID_VALUE"} {
				if got := v.Send("", "GET", path+"?"+name+"="+text, "").Code(400, "VALIDATION_FAILED").Faults(); len(got) != 1 || got[0] != name+" "+fault {
					t.Errorf("%s of %.10s: %v, want %s", name, text, got, fault)
				}
			}
		}
	}
}
