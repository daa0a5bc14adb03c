package dataset

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	events "github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// overDays stretches the times of entries to about four days from a noon on. The first record of each day is exactly at midnight, and the
// fourth day has no records.
func overDays(entries []record.Entry) (all []record.Entry) {
	first, last := entries[0].Record.Time, entries[len(entries)-1].Record.Time
	begins := first - first%scalar.Day + scalar.Day/2
	for _, e := range entries {
		r := *e.Record
		r.Time = begins + (r.Time-first)*(4*scalar.Day/(last-first))
		if r.Time-begins >= 2*scalar.Day+scalar.Day/2 {
			r.Time += scalar.Day
		}
		if n := len(all); n > 0 && DateOf(all[n-1].Record.Time) != DateOf(r.Time) {
			r.Time -= r.Time % scalar.Day
		}
		e.Record = &r
		all = append(all, e)
	}
	return all
}

// daily makes the files of all days but the last one, by day and table. Between two days the books are saved and loaded if anew is true.
func daily(t testing.TB, entries []record.Entry, anew bool) map[string]map[string]string {
	t.Helper()
	all, books := map[string]map[string]string{}, NewBooks()
	var d *Day
	var to map[string]*bytes.Buffer
	for i := range entries {
		e := &entries[i]
		if d == nil || d.Date() != DateOf(e.Record.Time) {
			if d != nil {
				must(t, d.Close())
				all[d.Date()] = map[string]string{}
				for table, content := range to {
					all[d.Date()][table] = content.String()
				}
			}
			if anew {
				saved, err := books.Save()
				must(t, err)
				books, err = LoadBooks(saved)
				must(t, err)
			}
			to = map[string]*bytes.Buffer{}
			var err error
			d, err = NewDay(e, books, func(table string) (io.Writer, error) {
				to[table] = new(bytes.Buffer)
				return to[table], nil
			})
			must(t, err)
		}
		must(t, d.Add(e))
	}
	return all
}

func rowsIn[T any](t testing.TB, content string) []T {
	t.Helper()
	rows, err := parquet.Read[T](strings.NewReader(content), int64(len(content)))
	must(t, err)
	return rows
}

// TestDays compares the daily files with the files of ranges, which have the same rows and more, and makes them twice.
func TestDays(t *testing.T) {
	entries := overDays(market(t, 7))
	all := daily(t, entries, false)
	again := daily(t, entries, true)
	if len(all) < 4 {
		t.Fatalf("the days are %v", slices.Sorted(maps.Keys(all)))
	}
	dates := slices.Sorted(maps.Keys(all))
	first, err := parseDay(dates[0])
	must(t, err)
	if _, there := all[DateOf(first+3*scalar.Day)]; there {
		t.Errorf("the days %v have one without records", dates)
	}
	dir := t.TempDir()
	mustWrite(t, Config{Dir: dir, Journal: "trading", Range: int64(len(entries))}, entries)
	var trades []publicTradeRow
	var prices []priceRow
	var rates []fundingRateRow
	var books []PriceLevel
	for _, date := range dates {
		if !maps.Equal(all[date], again[date]) || len(all[date]) != len(PublicTables()) {
			t.Errorf("the files of %s differ when they are made again from saved books", date)
		}
		trades = append(trades, rowsIn[publicTradeRow](t, all[date]["trades"])...)
		prices = append(prices, rowsIn[priceRow](t, all[date]["prices"])...)
		rates = append(rates, rowsIn[fundingRateRow](t, all[date]["funding_rates"])...)
		for _, r := range rowsIn[publicTradeRow](t, all[date]["trades"]) {
			if DateOf(r.Time) != date {
				t.Errorf("a trade of %v is in the file of %s", r.Time, date)
			}
		}
		books = append(books, rowsIn[PriceLevel](t, all[date][booksTable])...)
	}
	over := func(at scalar.Time) bool { return DateOf(at) > dates[len(dates)-1] }
	var wantTrades []publicTradeRow
	for _, r := range rowsOf[tradeRow](t, dir, "trades") {
		if r.Ordinal%2 == 0 && !over(r.Time) {
			wantTrades = append(wantTrades, publicTradeRow{Origin{r.Sequence, r.Ordinal / 2, r.Time}, r.Code, r.Symbol, r.Action, r.Price, r.Amount, r.Type})
		}
	}
	sameRows(t, "trades", trades, wantTrades)
	sameRows(t, "prices", prices, slices.DeleteFunc(rowsOf[priceRow](t, dir, "prices"), func(r priceRow) bool { return over(r.Time) }))
	sameRows(t, "funding_rates", rates, slices.DeleteFunc(rowsOf[fundingRateRow](t, dir, "funding_rates"), func(r fundingRateRow) bool { return over(r.Time) }))
	wantBooks := map[string]string{} // by symbol and second, from the ranges
	for _, r := range rowsOf[bookRow](t, dir, booksTable) {
		if !over(r.Time) {
			wantBooks[fmt.Sprint(r.Symbol, r.Second)] += fmt.Sprintln(r.content())
		}
	}
	seen, last := map[string]string{}, map[string]string{}
	for _, r := range books {
		seen[fmt.Sprint(r.Symbol, r.Second)] += fmt.Sprintln(r.content())
	}
	opening := 0
	for _, r := range books {
		key := fmt.Sprint(r.Symbol, r.Second)
		want, ok := wantBooks[key]
		if !ok { // the book did not change in the first second of a day
			want, ok = last[r.Symbol], true
			opening++
		}
		if seen[key] != want || !ok {
			t.Fatalf("the book of %s at %v is\n%sin the file of the day, and\n%s", r.Symbol, r.Second, seen[key], want)
		}
		last[r.Symbol] = seen[key]
		delete(wantBooks, key)
		wantBooks[key] = want
	}
	for key := range wantBooks {
		if seen[key] == "" {
			t.Errorf("the files of days lack the book %s", key)
		}
	}
	if opening == 0 || len(trades) == 0 || len(prices) == 0 || len(rates) == 0 {
		t.Errorf("%d rows of opening books, %d trades, %d prices, %d funding rates", opening, len(trades), len(prices), len(rates))
	}
}

func parseDay(date string) (scalar.Time, error) { return scalar.ParseTime(date + "T00:00:00.000000Z") }

// content is a row without its place.
func (r PriceLevel) content() [4]any { return [4]any{r.Side, r.Level, r.Price, r.Amount} }

// sameRows compares rows by their text: a premium is a pointer.
func sameRows[T any](t testing.TB, what string, got, want []T) {
	t.Helper()
	text := func(rows []T) (all []string) {
		for _, r := range rows {
			b, err := json.Marshal(r)
			must(t, err)
			all = append(all, string(b))
		}
		return all
	}
	if g, w := text(got), text(want); !slices.Equal(g, w) {
		t.Errorf("%s: %d rows in the files of days, %d in those of ranges", what, len(g), len(w))
	}
}

// TestADayTakesItsRecords adds records of another day, and a gap.
func TestADayTakesItsRecords(t *testing.T) {
	entries := overDays(played(t, 3))
	next := slices.IndexFunc(entries, func(e record.Entry) bool { return DateOf(e.Record.Time) != DateOf(entries[0].Record.Time) })
	for _, c := range []struct{ upTo, add int }{{next, next}, {5, 6}, {5, 4}} {
		d, err := NewDay(&entries[0], NewBooks(), func(string) (io.Writer, error) { return io.Discard, nil })
		must(t, err)
		for i := range c.upTo {
			must(t, d.Add(&entries[i]))
		}
		if err := d.Add(&entries[c.add]); err == nil {
			t.Errorf("a day with %d records took record %d", c.upTo, c.add)
		}
	}
	if at := entries[next].Record.Time; at%scalar.Day != 0 {
		t.Errorf("the first record of the next day is at %v", at)
	}
	if _, err := NewDay(&entries[5], NewBooks(), nil); err == nil {
		t.Error("a day began without its books")
	}
}

// publicIDs are the columns of the daily tables in the order of their field ids, which never change.
var publicIDs = map[string]string{
	"trades":        "sequence ordinal time code symbol action price amount type",
	"funding_rates": fieldIDs["funding_rates"],
	"prices":        fieldIDs["prices"],
	"books":         "sequence ordinal time second symbol side level price amount",
}

// TestDailyColumns compares the columns with the list. A column that is not there is a new PublicVersion.
func TestDailyColumns(t *testing.T) {
	for _, of := range publicTables() {
		var names []string
		for i, c := range of.columns {
			if names = append(names, c.Name); c.ID != i+1 {
				t.Errorf("%s.%s has the field id %d", of.name, c.Name, c.ID)
			}
		}
		if got := strings.Join(names, " "); got != publicIDs[of.name] {
			t.Errorf("%s has the columns %s", of.name, got)
		}
	}
}

// TestOnlyPublicMembers splits the records of a market by the disclosure classes of the schemas. Every value in a daily file is a value of a
// public unit of its record. Rows of books are sums over orders: TestDays compares them with the books, and TestDailyColumns has their
// columns.
func TestOnlyPublicMembers(t *testing.T) {
	policy, err := disclose.Compile(events.Events())
	must(t, err)
	split, err := policy.Splitter("trading")
	must(t, err)
	entries := market(t, 11)
	public := map[int64]map[string]bool{} // values by sequence
	at := record.Hash{}
	for i := range entries {
		r := *entries[i].Record
		r.Prev = at
		value, err := record.Encode(nil, &r)
		must(t, err)
		at = sha256.Sum256(value)
		units, err := split.Split(value, func(b []byte) [32]byte { return sha256.Sum256(b) })
		must(t, err)
		found := map[string]bool{}
		for _, u := range units {
			if u.Class == disclose.Public {
				var v any
				must(t, json.Unmarshal(u.Bytes, &v))
				collect(v, found)
			}
		}
		public[r.Sequence] = found
	}
	checked := map[string]int{}
	for _, files := range daily(t, overDays(entries), false) {
		for _, of := range publicTables() {
			if of.name == booksTable {
				continue
			}
			for _, row := range contentRows(t, files[of.name], of) {
				for _, c := range of.columns[3:] {
					value, there := row[c.Name]
					if !there {
						continue
					}
					if !public[number64(t, row["sequence"])][value] {
						t.Errorf("%s.%s has %s, which no public unit of record %s has", of.name, c.Name, value, row["sequence"])
					}
					checked[of.name+"."+c.Name]++
				}
			}
		}
	}
	for _, of := range publicTables() {
		for _, c := range of.columns[3:] {
			if of.name != booksTable && checked[of.name+"."+c.Name] == 0 {
				t.Errorf("no row has a value in %s.%s", of.name, c.Name)
			}
		}
	}
}

// collect adds the values of JSON, numbers in the normal form of canonical.
func collect(v any, to map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			collect(member, to)
		}
	case []any:
		for _, item := range v {
			collect(item, to)
		}
	default:
		to[canonical(fmt.Sprint(v))] = true
	}
}

// canonical returns a number without what does not matter, and other texts as they are.
func canonical(text string) string {
	if r, ok := new(big.Rat).SetString(text); ok {
		return r.RatString()
	}
	return text
}

// contentRows returns the rows of a file in memory, with their values in the form of canonical.
func contentRows(t testing.TB, content string, of table) (all []cells) {
	t.Helper()
	f, err := parquet.OpenFile(strings.NewReader(content), int64(len(content)))
	must(t, err)
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		buffer := make([]parquet.Row, 1)
		for {
			n, err := rows.ReadRows(buffer)
			if n == 1 {
				row := cells{}
				for i, c := range of.columns {
					for _, v := range buffer[0] {
						if v.Column() == i && !v.IsNull() {
							row[c.Name] = valueText(c, v)
						}
					}
				}
				all = append(all, row)
			}
			if err != nil {
				break
			}
		}
		must(t, rows.Close())
	}
	return all
}

func valueText(c Column, v parquet.Value) string {
	switch c.Type {
	case timeType:
		return scalar.Time(v.Int64()).String()
	case decimalType:
		return rational(number(v.ByteArray())).RatString()
	case idType:
		return scalar.ID(v.ByteArray()).String()
	case intType:
		return fmt.Sprint(v.Int64())
	case boolType:
		return fmt.Sprint(v.Boolean())
	}
	return string(v.ByteArray())
}
