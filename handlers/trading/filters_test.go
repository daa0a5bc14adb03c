package trading_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
)

// TestListFilters: each filter of trades, transactions and order history leaves what has the value that it names, and
// nothing else; two of them what has both.
func TestListFilters(t *testing.T) {
	v := busy(t)
	for _, list := range []struct {
		path, time string
		members    map[string]string // filter → member
	}{
		{a1 + "/trades", "timestamp", map[string]string{"symbol": "symbol", "type": "type", "order_code": "order_code"}},
		{"/v1/trades", "timestamp", map[string]string{"symbol": "symbol", "type": "type", "order_code": "order_code", "customer_code": "customer_code"}},
		{a1 + "/transactions", "timestamp", map[string]string{"symbol": "symbol", "type": "type", "order_code": "order_code", "currency": "currency"}},
		{"/v1/transactions", "timestamp", map[string]string{"symbol": "symbol", "type": "type", "order_code": "order_code", "customer_code": "customer_code"}},
		{a1 + "/orders/history", "created", map[string]string{"symbol": "symbol", "order_code": "code", "status": "status"}},
	} {
		read := func(query url.Values) []map[string]any {
			query.Set("page_size", "1000")
			var p listed
			v.Send("broker-a", "GET", list.path+"?"+query.Encode(), "").Want(200).JSON(&p)
			return p.Records
		}
		all := read(url.Values{})
		if len(all) < 6 {
			t.Fatalf("%s has %d records", list.path, len(all))
		}
		check := func(query url.Values, keeps func(map[string]any) bool) {
			t.Helper()
			want := 0
			for _, r := range all {
				if keeps(r) {
					want++
				}
			}
			got := read(query)
			if len(got) != want || slices.ContainsFunc(got, func(r map[string]any) bool { return !keeps(r) }) {
				t.Errorf("%s?%s: %d records, want %d", list.path, query.Encode(), len(got), want)
			}
		}
		at := func(r map[string]any) string { return r[list.time].(string) }
		middle := at(all[len(all)/2])
		check(url.Values{"from": {middle}}, func(r map[string]any) bool { return at(r) >= middle })
		check(url.Values{"to": {middle}}, func(r map[string]any) bool { return at(r) < middle })
		for filter, member := range list.members {
			for _, r := range all {
				value, ok := r[member].(string)
				if !ok {
					continue // null
				}
				is := func(r map[string]any) bool { return r[member] == value }
				check(url.Values{filter: {value}}, is)
				check(url.Values{filter: {value}, "from": {middle}}, func(r map[string]any) bool { return is(r) && at(r) >= middle })
			}
		}
		check(url.Values{"symbol": {"ethusdc_perp"}}, func(map[string]any) bool { return false })
		check(url.Values{"symbol": {"btcusdc_perp"}}, func(r map[string]any) bool { return fmt.Sprint(r["symbol"]) == btc })
	}
}
