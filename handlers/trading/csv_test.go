package trading_test

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/projections"
)

// lines reads CSV as records by the names of its columns.
func lines(t *testing.T, text string) (columns []string, out []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, line := range all[1:] {
		record := make(map[string]string)
		for i, name := range all[0] {
			record[name] = line[i]
		}
		out = append(out, record)
	}
	return all[0], out
}

// plainText is a member of a JSON record as a field of CSV.
func plainText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprint(v)
}

// busy is a venue with some orders, trades and transactions of two customers.
func busy(t *testing.T) *tradingtest.Venue {
	v := funded(t)
	for i := range 4 {
		price := fmt.Sprint(65000 + i)
		v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.2", price)).Want(201)
		v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", price, fmt.Sprintf(`"reference_id":"-r,%d"`, i))).Want(400)
		v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", price, fmt.Sprintf(`"reference_id":"-r:%d"`, i))).Want(201)
		v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"`+btc+`","action":"buy","type":"market","cash_amount":"700"}`).Want(201)
		v.Advance(scalar.Second)
	}
	v.Send("operator", "POST", "/admin/v1/customers/A-1/withdrawals", `{"currency":"USDC","amount":"5","reference_id":"w"}`).Want(201)
	return v
}

// TestCSV: each list as CSV has the rows of its JSON, all of them whatever the page, with every member under its name, by
// filters, in both orders, and for a broker's customers at once.
func TestCSV(t *testing.T) {
	v := busy(t)
	for _, list := range []string{a1 + "/transactions", a1 + "/transactions?type=trade_fee%7Cdeposit", "/v1/transactions?sort=asc", a1 + "/trades", "/v1/trades",
		a1 + "/trades?type=liquidation", a1 + "/trades/history?from=2026-03-31T08:00:01Z&to=2026-03-31T08:00:03Z", a1 + "/orders/history", a1 + "/orders/history?status=filled&sort=asc"} {
		for _, user := range []string{"broker-a", "operator"} {
			var page listed
			v.Send(user, "GET", list, "").Want(200).JSON(&page)
			reply := v.Send(user, "GET", list+joiner(list)+"page_size=1", "", "Accept", "text/csv").Want(200)
			if got := reply.Header.Get("Content-Type"); got != "text/csv; charset=utf-8; header=present" {
				t.Errorf("%s: %s", list, got)
			}
			if reply.Header.Get("X-Log-Position") != v.Trading.Tip().String() || !slices.Contains(reply.Header.Values("Vary"), "Accept") {
				t.Errorf("%s: %v", list, reply.Header)
			}
			columns, records := lines(t, reply.Body)
			if len(records) != len(page.Records) || len(records) == 0 && !strings.Contains(list, "liquidation") {
				t.Errorf("%s: %d lines for %d records", list, len(records), len(page.Records))
				continue
			}
			for i, record := range page.Records {
				for name, value := range record {
					if !slices.Contains(columns, name) || records[i][name] != plainText(value) {
						t.Errorf("%s, row %d: %s is %q, the record says %v", list, i, name, records[i][name], value)
					}
				}
				for name, text := range records[i] {
					if record[name] == nil && text != "" {
						t.Errorf("%s, row %d: %s is %q, the record has none", list, i, name, text)
					}
				}
			}
		}
	}
}

func joiner(list string) string {
	if strings.Contains(list, "?") {
		return "&"
	}
	return "?"
}

// TestCSVBetweenCursors: after and before bound the rows, in the order asked for, however many there are between.
func TestCSVBetweenCursors(t *testing.T) {
	v := busy(t)
	for _, sort := range []string{"asc", "desc"} {
		var all listed
		list := a1 + "/trades?sort=" + sort
		v.Send("broker-a", "GET", list, "").Want(200).JSON(&all)
		codes := func(query string) (codes []string) {
			_, records := lines(t, v.Send("broker-a", "GET", list+query, "", "Accept", "text/csv").Want(200).Body)
			for _, r := range records {
				codes = append(codes, r["code"])
			}
			return codes
		}
		want := codes("")
		if len(want) != len(all.Records) || len(want) < 6 {
			t.Fatalf("%d of %d", len(want), len(all.Records))
		}
		for i, r := range all.Records {
			cursor := rows.Cursor(projections.Key{Sequence: int64(r["sequence"].(float64)), Ordinal: 2 * int64(r["ordinal"].(float64))})
			if got := codes("&after=" + cursor); !slices.Equal(got, want[i+1:]) {
				t.Errorf("%s after %d: %v", sort, i, got)
			}
			if got := codes("&before=" + cursor); !slices.Equal(got, want[:i]) {
				t.Errorf("%s before %d: %v", sort, i, got)
			}
		}
	}
}

// TestCSVHasNoPageLimit: a list of more rows than a page may have is complete, compressed or not.
func TestCSVHasNoPageLimit(t *testing.T) {
	v := funded(t)
	const deposits = 2100
	for i := range deposits {
		v.Deposit("A-1", fmt.Sprint("many-", i))
	}
	list := a1 + "/transactions"
	plain := v.Send("broker-a", "GET", list, "", "Accept", "text/csv").Want(200)
	if _, records := lines(t, plain.Body); len(records) != deposits+1 || records[0]["reference_id"] != fmt.Sprint("many-", deposits-1) {
		t.Errorf("%d rows, the first %v", len(records), records[0])
	}
	packed := v.Send("broker-a", "GET", list, "", "Accept", "text/csv", "Accept-Encoding", "gzip").Want(200)
	z, err := gzip.NewReader(strings.NewReader(packed.Body))
	if err != nil || packed.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal(err, packed.Header)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != plain.Body {
		t.Errorf("compressed: %v, %d bytes, want %d", err, len(text), len(plain.Body))
	}
}

// TestWhoGetsCSV: only who asks for it by name, and above JSON.
func TestWhoGetsCSV(t *testing.T) {
	v := funded(t)
	for accept, want := range map[string]bool{"": false, "*/*": false, "application/json": false, "text/csv": true, "text/csv, */*;q=0.1": true,
		"application/json, text/csv": false, "application/json;q=0.5, text/csv": true, "text/csv;q=0": false, "text/csv;q=x": false, "TEXT/CSV": true, "text/*": false} {
		reply := v.Send("broker-a", "GET", a1+"/trades", "", "Accept", accept).Want(200)
		if got := strings.HasPrefix(reply.Header.Get("Content-Type"), "text/csv"); got != want {
			t.Errorf("Accept %q: %s", accept, reply.Header.Get("Content-Type"))
		}
	}
	// A problem is a problem, and other lists have no CSV.
	v.Send("broker-a", "GET", a1+"/trades?sort=up", "", "Accept", "text/csv").Code(400, "VALIDATION_FAILED")
	if reply := v.Send("broker-a", "GET", "/v1/customers", "", "Accept", "text/csv").Want(200); !strings.HasPrefix(reply.Header.Get("Content-Type"), "application/json") {
		t.Errorf("customers: %s", reply.Header.Get("Content-Type"))
	}
}

// TestCSVOfFunding: a funding row has what it follows from in columns of its own, which are empty on rows of other types.
func TestCSVOfFunding(t *testing.T) {
	v, _ := paid(t)
	for list, size := range map[string]string{a1 + "/transactions": "1.000", "/v1/transactions?customer_code=A-1": "1.000", b1 + "/transactions?type=funding": "-1.000"} {
		user := "broker-a"
		if strings.HasPrefix(list, b1) {
			user = "broker-b"
		}
		columns, rows := lines(t, v.Send(user, "GET", list, "", "Accept", "text/csv").Want(200).Body)
		terms, of := []string{"funding_rate", "position_amount", "mark_price"}, map[string][]string{}
		for _, row := range rows {
			var got []string
			for _, name := range terms {
				if !slices.Contains(columns, name) {
					t.Fatalf("%s: no column %s among %v", list, name, columns)
				}
				got = append(got, row[name])
			}
			of[row["type"]] = got
			if row["type"] != "funding" && strings.Join(got, "") != "" {
				t.Errorf("%s: a row of type %s has %v", list, row["type"], got)
			}
		}
		if want := []string{"0.00013010", size, "65000.0"}; !slices.Equal(of["funding"], want) {
			t.Errorf("%s: the funding row has %v, not %v", list, of["funding"], want)
		}
	}
}
