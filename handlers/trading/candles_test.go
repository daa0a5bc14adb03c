package trading_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// words returns each candle as "time open high low close [volume turnover trades] open|closed", times as minutes.
func words(r *tradingtest.Reply) []string {
	var list []map[string]any
	r.JSON(&list)
	out := []string{}
	for _, k := range list {
		at := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(k["time"]), "2026-03-31T"), ":00.000000Z")
		line := []string{at}
		for _, name := range []string{"open", "high", "low", "close"} {
			line = append(line, strings.TrimSuffix(k[name].(string), ".0"))
		}
		for _, name := range []string{"volume", "turnover", "trades"} {
			if v, there := k[name]; there {
				line = append(line, fmt.Sprint(v))
			}
		}
		out = append(out, strings.Join(append(line, map[any]string{true: "closed", false: "open"}[k["closed"]]), " "))
	}
	return out
}

// TestCandles: every member, the gaps, the open candle, the spans, and the three kinds of prices.
func TestCandles(t *testing.T) {
	v := funded(t)
	get := func(query string) []string {
		t.Helper()
		return words(v.Send("", "GET", "/v1/candles/"+btc+"?"+query, "").Want(200))
	}
	same := func(query string, want ...string) {
		t.Helper()
		if got := get(query); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	same("interval=1m") // before the first trade
	trade := func(price, amount string) {
		t.Helper()
		v.Send("broker-b", "POST", b1+"/orders", entry("sell", amount, price)).Want(201)
		v.Send("broker-a", "POST", a1+"/orders", entry("buy", amount, price)).Want(201)
	}
	trade("65000", "0.1")
	same("interval=1m", "08:00 65000 65000 65000 65000 0.100 6500 1 open")
	trade("65010", "0.2")
	v.Advance(20 * scalar.Second)
	trade("64990", "0.1")
	v.Advance(2 * scalar.Minute) // nothing happens at 08:01
	trade("65020", "0.3")
	same("interval=1m",
		"08:00 65000 65010 64990 64990 0.400 26001 3 closed",
		"08:01 64990 64990 64990 64990 0 0 0 closed",
		"08:02 65020 65020 65020 65020 0.300 19506 1 open")
	same("interval=5m", "08:00 65000 65020 64990 65020 0.700 45507 4 open")
	same("interval=1d&price=trade", "00:00 65000 65020 64990 65020 0.700 45507 4 open")
	// The venue is quiet: five seconds after its end a candle is closed, and not before.
	v.Advance(44 * scalar.Second)
	same("interval=1m&page_size=1", "08:02 65020 65020 65020 65020 0.300 19506 1 open")
	v.Advance(scalar.Second)
	same("interval=1m&page_size=2", "08:02 65020 65020 65020 65020 0.300 19506 1 closed", "08:03 65020 65020 65020 65020 0 0 0 open")
	// from and to bound when candles begin; without from they are the latest.
	same("interval=1m&to=2026-03-31T08:02:00Z&page_size=1", "08:01 64990 64990 64990 64990 0 0 0 closed")
	same("interval=1m&from=0&page_size=1", "08:00 65000 65010 64990 64990 0.400 26001 3 closed")
	same("interval=1m&from=2026-03-31T08:00:01Z&to=2026-03-31T08:02:00Z", "08:01 64990 64990 64990 64990 0 0 0 closed")
	same("interval=1m&from=2026-03-31T09:00:00Z")
	same("interval=1m&to=2026-03-31T08:00:00Z")
	// Mark and index prices have neither volume nor turnover nor trades.
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65100.25"}`).Want(200)
	same("interval=1m&price=index", "08:00 65000 65000 65000 65000 closed", "08:01 65000 65000 65000 65000 closed",
		"08:02 65000 65000 65000 65000 closed", "08:03 65100.25 65100.25 65100.25 65100.25 open")
	if got := get("interval=1m&price=mark"); len(got) != 4 || len(strings.Fields(got[0])) != 6 {
		t.Errorf("of the mark price: %v", got)
	}

	read := v.Send("", "GET", "/v1/candles/ETHUSDC_PERP?interval=1m&price=index", "").Want(200)
	v.Send("operator", "DELETE", "/admin/v1/instruments/ETHUSDC_PERP", "").Want(200)
	if after := v.Send("", "GET", "/v1/candles/ETHUSDC_PERP?interval=1m&price=index", "").Want(200); after.Body != read.Body {
		t.Errorf("candles of a withdrawn instrument: %s, before %s", after.Body, read.Body)
	}
	v.Send("", "GET", "/v1/candles/NOPE?interval=1m", "").Code(404, "UNKNOWN_SYMBOL")
	v.Send("", "GET", "/v1/candles/"+strings.ToLower(btc)+"?interval=1m", "").Code(404, "UNKNOWN_SYMBOL")
	for query, faults := range map[string]string{
		"": "interval REQUIRED", "interval=2m": "interval INVALID_VALUE", "interval=1m&price=last": "price INVALID_VALUE",
		"interval=1m&page_size=5001": "page_size OUT_OF_RANGE", "interval=1m&from=2&to=1": "to OUT_OF_RANGE", "interval=1m&limit=5": "limit UNKNOWN_PARAMETER",
	} {
		if got := v.Send("", "GET", "/v1/candles/"+btc+"?"+query, "").Code(400, "VALIDATION_FAILED").Faults(); strings.Join(got, ", ") != faults {
			t.Errorf("%q: %v, want %s", query, got, faults)
		}
	}
}

// TestCandlesWithoutLimitOfDepth: a page that is a month back is as easily had as the last one.
func TestCandlesWithoutLimitOfDepth(t *testing.T) {
	v := funded(t)
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.1", "65000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "65000")).Want(201)
	v.Advance(30 * scalar.Day)
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65000"}`).Want(200)
	var list []map[string]any
	v.Send("", "GET", "/v1/candles/"+btc+"?interval=1m&page_size=5000&from=2026-03-31T08:00:00Z", "").Want(200).JSON(&list)
	if len(list) != 5000 || list[0]["volume"] != "0.100" || list[4999]["volume"] != "0" || list[4999]["closed"] != true {
		t.Errorf("%d candles, the first %v, the last %v", len(list), list[0], list[len(list)-1])
	}
}
