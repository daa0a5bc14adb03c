package trading_test

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/projections"
)

// listed is a page of a list with cursors.
type listed struct {
	Records  []map[string]any `json:"records"`
	Metadata struct {
		HasNext     bool    `json:"has_next"`
		HasPrevious bool    `json:"has_previous"`
		StartCursor *string `json:"start_cursor"`
		EndCursor   *string `json:"end_cursor"`
	} `json:"response_metadata"`
}

// paged reads a whole list page by page, there and back again, and returns what the pages hold: one word for a record.
func paged(v *tradingtest.Venue, t *testing.T, user, list string, word func(map[string]any) string) []string {
	t.Helper()
	read := func(query string) listed {
		var p listed
		v.Send(user, "GET", list+query, "").Want(200).JSON(&p)
		return p
	}
	joined := "?"
	if strings.Contains(list, "?") {
		joined = "&"
	}
	words := []string{}
	p := read(joined + "page_size=2")
	if p.Metadata.HasPrevious {
		t.Errorf("%s: something comes before the first page", list)
	}
	for range 100 {
		for _, r := range p.Records {
			words = append(words, word(r))
		}
		if !p.Metadata.HasNext {
			break
		}
		p = read(joined + "page_size=2&after=" + *p.Metadata.EndCursor)
		if !p.Metadata.HasPrevious {
			t.Errorf("%s: nothing comes before a later page", list)
		}
	}
	back := []string{}
	for range 100 {
		for _, r := range slices.Backward(p.Records) {
			back = append(back, word(r))
		}
		if !p.Metadata.HasPrevious {
			break
		}
		p = read(joined + "page_size=2&before=" + *p.Metadata.StartCursor)
	}
	if slices.Reverse(back); !slices.Equal(words, back) {
		t.Errorf("%s: there %v, back %v", list, words, back)
	}
	return words
}

const eth = "ETHUSDC_PERP"

// TestBrokersReadAllTheirCustomers: a broker's reads without a customer cover all its customers and no others, page by
// page; an operator's and an auditor's cover everybody's.
func TestBrokersReadAllTheirCustomers(t *testing.T) {
	v := funded(t)
	for i, order := range []struct{ user, customer, symbol, action string }{
		{"broker-a", "A-1", btc, "buy"}, {"broker-b", "B-1", btc, "sell"}, {"broker-a", "A-2", btc, "sell"}, {"broker-a", "A-1", btc, "buy"},
		{"broker-b", "B-1", eth, "sell"}, {"broker-a", "A-1", eth, "buy"},
	} {
		if i == 4 {
			v.Send("operator", "POST", "/admin/v1/index-prices/"+eth, `{"price":"3000"}`).Want(200)
		}
		price := map[string]string{btc: "65000", eth: "3000"}[order.symbol]
		v.Send(order.user, "POST", "/v1/customers/"+order.customer+"/orders",
			fmt.Sprintf(`{"symbol":"%s","action":"%s","type":"limit","amount":"0.01","limit_price":"%s"}`, order.symbol, order.action, price)).Want(201)
	}
	position := func(r map[string]any) string {
		return fmt.Sprintf("%s %s %s", r["customer_code"], r["symbol"], r["amount"])
	}
	alpha := []string{"A-1 " + btc + " 0.020", "A-1 " + eth + " 0.010", "A-2 " + btc + " -0.010"}
	beta := []string{"B-1 " + btc + " -0.010", "B-1 " + eth + " -0.010"}
	for user, want := range map[string][]string{"broker-a": alpha, "client-a": alpha[:2], "broker-b": beta,
		"operator": slices.Concat(alpha, beta), "auditor": slices.Concat(alpha, beta)} {
		if got := paged(v, t, user, "/v1/positions", position); !slices.Equal(got, want) {
			t.Errorf("%s sees positions %v, want %v", user, got, want)
		}
	}
	if got := paged(v, t, "broker-a", "/v1/positions?sort=desc", position); !slices.Equal(got, []string{alpha[2], alpha[1], alpha[0]}) {
		t.Errorf("in reverse: %v", got)
	}
	if got := paged(v, t, "broker-a", "/v1/positions?symbol="+strings.ToLower(btc), position); !slices.Equal(got, []string{alpha[0], alpha[2]}) {
		t.Errorf("of one instrument: %v", got)
	}
	if got := paged(v, t, "operator", "/v1/positions?customer_code=B-1", position); !slices.Equal(got, beta) {
		t.Errorf("of one customer: %v", got)
	}

	customer := func(r map[string]any) string { return fmt.Sprint(r["customer_code"]) }
	for user, want := range map[string][]string{"broker-b": {"B-1"}, "client-a": {"A-1"}} {
		for _, list := range []string{"/v1/account-summaries", "/v1/trades", "/v1/transactions"} {
			if got := paged(v, t, user, list, customer); !slices.Equal(slices.Compact(got), want) {
				t.Errorf("%s: %s sees %v, want those of %v", list, user, got, want)
			}
		}
	}
	both := paged(v, t, "broker-a", "/v1/trades", customer)
	slices.Sort(both)
	if got := paged(v, t, "operator", "/v1/trades", customer); len(got) != len(both)+2 || !slices.Equal(slices.Compact(both), []string{"A-1", "A-2"}) {
		t.Errorf("the broker sees trades of %v, the operator %d", both, len(got))
	}
}

// TestFilters: a list narrowed by each of its filters holds what the whole list has of that kind.
func TestFilters(t *testing.T) {
	v := funded(t)
	for range 2 {
		v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"`+btc+`","action":"buy","type":"limit","amount":"0.01","limit_price":"65000"}`).Want(201)
		v.Advance(1_000_000)
		v.Send("broker-a", "POST", "/v1/customers/A-2/orders", `{"symbol":"`+btc+`","action":"sell","type":"limit","amount":"0.01","limit_price":"65000"}`).Want(201)
	}
	for _, list := range []string{a1 + "/transactions", a1 + "/trades", "/v1/transactions", "/v1/trades", a1 + "/orders/history"} {
		var all listed
		v.Send("broker-a", "GET", list, "").Want(200).JSON(&all)
		fields := map[string]string{"symbol": "symbol", "type": "type", "order_code": "order_code"}
		if strings.HasSuffix(list, "history") {
			fields = map[string]string{"symbol": "symbol", "order_code": "code"}
		}
		for filter, field := range fields {
			for _, r := range all.Records {
				value, is := r[field].(string)
				if !is {
					continue // of nothing
				}
				want := 0
				for _, o := range all.Records {
					if o[field] == value {
						want++
					}
				}
				var some listed
				v.Send("broker-a", "GET", list+"?"+filter+"="+value, "").Want(200).JSON(&some)
				if len(some.Records) != want || some.Records[0][field] != value {
					t.Errorf("%s?%s=%s: %d records, want %d", list, filter, value, len(some.Records), want)
				}
			}
		}
		at := all.Records[0]["timestamp"]
		if at == nil {
			at = all.Records[0]["created"]
		}
		var since, before listed
		v.Send("broker-a", "GET", list+"?from="+url.QueryEscape(fmt.Sprint(at)), "").Want(200).JSON(&since)
		v.Send("broker-a", "GET", list+"?from=0&to="+url.QueryEscape(fmt.Sprint(at)), "").Want(200).JSON(&before)
		if len(since.Records) == 0 || len(since.Records)+len(before.Records) != len(all.Records) {
			t.Errorf("%s: %d from %s on, %d before, %d in all", list, len(since.Records), at, len(before.Records), len(all.Records))
		}
	}
}

// TestHistoryBeforeATime: before may be a time, and is exclusive as a cursor is.
func TestHistoryBeforeATime(t *testing.T) {
	v := funded(t)
	for range 3 {
		v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"`+btc+`","action":"buy","type":"limit","amount":"0.01","limit_price":"65000"}`).Want(201)
		v.Send("broker-a", "POST", "/v1/customers/A-2/orders", `{"symbol":"`+btc+`","action":"sell","type":"limit","amount":"0.01","limit_price":"65000"}`).Want(201)
		v.Advance(1_000_000)
	}
	for _, list := range []string{a1 + "/trades/history", "/v1/market-trades/history"} {
		const span = "?from=0&to=4000000000000"
		var all, some listed
		v.Send("broker-a", "GET", list+span, "").Want(200).JSON(&all)
		if len(all.Records) != 3 {
			t.Fatalf("%s: %d trades", list, len(all.Records))
		}
		last := all.Records[2]
		v.Send("broker-a", "GET", list+span+"&page_size=1&before="+fmt.Sprint(last["timestamp"]), "").Want(200).JSON(&some)
		if len(some.Records) != 1 || some.Records[0]["code"] != all.Records[1]["code"] || !some.Metadata.HasPrevious || !some.Metadata.HasNext {
			t.Errorf("%s: before the last: %v", list, some)
		}
	}
}

// TestMarketTradesPageSize: limit is another name of page_size.
func TestMarketTradesPageSize(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("", "GET", "/v1/market-trades?page_size=1", "").Want(200)
	v.Send("", "GET", "/v1/market-trades?limit=1", "").Want(200)
	for query, want := range map[string]string{"limit=0": "limit OUT_OF_RANGE", "page_size=1001": "page_size OUT_OF_RANGE", "limit=1&page_size=1": "limit INVALID_VALUE", "limit=0&page_size=1": "limit OUT_OF_RANGE"} {
		if got := v.Send("", "GET", "/v1/market-trades?"+query, "").Want(400).Faults(); !slices.Contains(got, want) || slices.Contains(got, "page_size UNKNOWN_PARAMETER") {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
}

// TestFarCursors: a cursor beyond all rows is as good as any other, and one that can be of no row is the client's fault.
func TestFarCursors(t *testing.T) {
	v := funded(t)
	far := rows.Cursor(projections.Key{Sequence: math.MaxInt64, Ordinal: math.MaxInt32})
	none := rows.Cursor(projections.Key{Sequence: 5, Ordinal: math.MaxInt32 + 1})
	for _, list := range []string{"/v1/customers", "/v1/positions", "/v1/account-summaries", "/v1/trades", "/v1/transactions", a1 + "/orders/history"} {
		for _, side := range []string{"?after=", "?before="} {
			v.Send("broker-a", "GET", list+side+far, "").Want(200)
			if got := v.Send("broker-a", "GET", list+side+none, "").Want(400).Faults(); len(got) != 1 {
				t.Errorf("%s%s: %v", list, side, got)
			}
		}
	}
}

// TestCursorsTellNothingOfOtherBrokers: where a broker's first customer stands in a list is the same for every broker,
// however many customers others have registered before, and so is it where one customer is asked for.
func TestCursorsTellNothingOfOtherBrokers(t *testing.T) {
	v := funded(t)
	for _, order := range []struct{ user, customer, action string }{{"broker-a", "A-1", "buy"}, {"broker-b", "B-1", "sell"}} {
		v.Send(order.user, "POST", "/v1/customers/"+order.customer+"/orders",
			`{"symbol":"`+btc+`","action":"`+order.action+`","type":"limit","amount":"0.01","limit_price":"65000"}`).Want(201)
	}
	for _, list := range []string{"/v1/positions", "/v1/account-summaries"} {
		cursors := make(map[string]bool)
		for _, read := range []struct{ user, query string }{{"broker-a", "?page_size=1"}, {"broker-b", "?page_size=1"}, {"broker-b", "?customer_code=B-1"}} {
			var p listed
			v.Send(read.user, "GET", list+read.query, "").Want(200).JSON(&p)
			cursors[*p.Metadata.StartCursor] = true
		}
		if len(cursors) != 1 {
			t.Errorf("%s: the first are at %v", list, cursors)
		}
	}
}
