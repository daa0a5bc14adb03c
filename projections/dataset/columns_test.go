package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// cells are the values of a row by column. A column that is NULL is missing.
type cells map[string]string

// key returns the values of some columns.
func (c cells) key(columns []string) string {
	var values []string
	for _, name := range columns {
		values = append(values, c[name])
	}
	return strings.Join(values, " ")
}

// readModel says where the rows of a table are in Postgres.
type readModel struct {
	query string   // of one JSON object for each row, with the columns of the files
	key   []string // columns that identify a row. Of several such rows in the files, only the last one is compared
	lacks []string // columns that Postgres does not have
}

var byPlace = []string{"sequence", "ordinal"}

var readModelOf = map[string]readModel{
	"orders": {`SELECT to_jsonb(o) FROM orders o UNION ALL
		SELECT to_jsonb(o) || to_jsonb(h) || jsonb_build_object('sequence', h.since) FROM order_history h JOIN orders o USING (code)`,
		[]string{"code", "sequence"}, []string{"ordinal", "event", "time"}},
	"trades":       {`SELECT to_jsonb(t) FROM trades t`, byPlace, nil},
	"liquidations": {`SELECT to_jsonb(t) || to_jsonb(l) FROM trades t JOIN analytics.liquidations l USING (sequence, ordinal)`, byPlace, nil},
	"postings":     {`SELECT to_jsonb(l) FROM analytics.statement_lines l UNION ALL SELECT to_jsonb(v) FROM venue_postings v`, byPlace, nil},
	"funding":      {`SELECT to_jsonb(t) FROM transactions t WHERE type = 'funding'`, byPlace, []string{"time"}},
	// The time of a row in Postgres is the funding instant.
	"funding_rates": {`SELECT to_jsonb(f) || jsonb_build_object('instant', f.time) FROM funding_rates f`, byPlace, []string{"time"}},
	"positions": {`SELECT to_jsonb(p) FROM positions p UNION ALL
		SELECT to_jsonb(p) || to_jsonb(h) || jsonb_build_object('sequence', h.since) FROM position_history h JOIN positions p USING (customer_code, symbol)`,
		[]string{"customer_code", "symbol", "sequence"}, []string{"ordinal", "time"}},
	"triggers": {`SELECT to_jsonb(v) || COALESCE((SELECT jsonb_build_object('entitlement_id', t.entitlement_id, 'tenant', t.tenant) FROM triggers t
		WHERE t.created_sequence = v.sequence AND t.created_ordinal = v.ordinal), '{}') FROM trigger_events v WHERE status IS NOT NULL`, byPlace, nil},
	"responses": {`SELECT to_jsonb(r) FROM responses r`, byPlace, []string{"time"}},
}

// columns compares every column of every row with the read models, and of prices with the events. It compares places and times with the log.
func (v *venue) columns(t *testing.T, pool *pgxpool.Pool) {
	for _, of := range tables() {
		entries := v.trading
		if of.journal == "onboarding" {
			entries = v.onboarding
		}
		rows := fileRows(t, v.dir, of)
		compareWithLog(t, of, rows, entries)
		if of.name == "prices" || of.name == booksTable {
			continue
		}
		model := readModelOf[of.name]
		want := readRows(t, pool, of, model.query)
		switch of.name {
		case "postings", "funding":
			rankPostings(rows)
			rankPostings(want)
		case "orders":
			carryTriggered(rows)
		}
		compareRows(t, of, model, rows, want)
	}
}

// compareWithLog checks that places are unique and in order, and that times, events, and prices are those of the log.
func compareWithLog(t *testing.T, of table, rows []cells, entries []record.Entry) {
	t.Helper()
	before := [2]int64{-1, -1}
	for _, row := range rows {
		at := [2]int64{number64(t, row["sequence"]), number64(t, row["ordinal"])}
		if slices.Compare(at[:], before[:]) <= 0 {
			t.Errorf("%s: the row at %v follows the one at %v", of.name, at, before)
		}
		before = at
		r := entries[at[0]].Record
		if want := strconv.FormatInt(r.Time.Std().UnixMicro(), 10); row["time"] != want {
			t.Errorf("%s: the row at %v has the time %s, and its record %s", of.name, at, row["time"], want)
		}
		switch of.name {
		case "orders":
			if got := row["event"]; got != r.Events[at[1]].EventType() {
				t.Errorf("the order at %v has the event %s", at, got)
			}
		case "prices":
			compareWithEvent(t, of, row, r.Events[at[1]])
		}
	}
}

// compareWithEvent compares the columns of a row with the JSON form of its event, except those that only the record has.
func compareWithEvent(t *testing.T, of table, row cells, event decide.Event) {
	t.Helper()
	text, err := json.Marshal(event)
	must(t, err)
	schema := schemaOf(t, of)
	want := decodeCells(t, text, schema)
	for _, c := range schema.Fields() {
		name := c.Name()
		if !slices.Contains([]string{"sequence", "ordinal", "time", "event"}, name) && row[name] != want[name] {
			t.Errorf("%s: %s of the row %s is %q, and %q in its event", of.name, name, row.key(byPlace), row[name], want[name])
		}
	}
}

// setAll gives each field of a struct another value.
func setAll(v reflect.Value) {
	for i := range v.NumField() {
		n := int64(i) + 1
		switch f := v.Field(i); x := f.Addr().Interface().(type) {
		case *fixed.Decimal:
			*x = fixed.Decimal{Coef: n, Scale: 1}
		case *scalar.ID:
			*x = scalar.ID{15: byte(n)}
		default:
			switch f.Kind() {
			case reflect.String:
				f.SetString(fmt.Sprint("text ", n))
			case reflect.Bool:
				f.SetBool(n%2 == 1)
			default:
				f.SetInt(n)
			}
		}
	}
}

// TestFullRows compares the columns that a random venue leaves empty. It writes an order and a change of an application with another value
// in each field.
func TestFullRows(t *testing.T) {
	opened := &trading.OrderOpened{}
	setAll(reflect.ValueOf(&opened.Order).Elem())
	moved := &onboarding.TriggerMoved{ID: scalar.ID{1}, Status: "status", Request: &entitlement.Request{ID: scalar.ID{2}}, Outcome: onboarding.Passed}
	for journal, event := range map[string]decide.Event{"trading": opened, "onboarding": moved} {
		cfg := Config{Dir: t.TempDir(), Journal: journal, Range: short}
		mustWrite(t, cfg, []record.Entry{{Record: &record.Record{Events: []decide.Event{event}}}})
		of := tablesOf(journal)[0]
		rows := fileRows(t, cfg.Dir, of)
		if len(rows) != 1 {
			t.Fatalf("%d rows of %s", len(rows), of.name)
		}
		if journal == "trading" {
			compareWithEvent(t, of, rows[0], event)
			continue
		}
		if rows[0]["request_id"] != moved.Request.ID.String() || rows[0]["outcome"] != string(moved.Outcome) {
			t.Errorf("the change is %v", rows[0])
		}
	}
}

// rankPostings replaces the ordinals of postings by their place among those of the record to customers, or to the venue. Postgres counts
// both separately, and counts changes of transfers among those of customers.
func rankPostings(rows []cells) {
	slices.SortStableFunc(rows, func(a, b cells) int {
		x, _ := strconv.ParseInt(a["ordinal"], 10, 64)
		y, _ := strconv.ParseInt(b["ordinal"], 10, 64)
		return cmp.Compare(x, y)
	})
	counts := map[string]int{}
	for _, row := range rows {
		side := "customer"
		if row["account"] != "" {
			side = "venue"
			delete(row, "code") // Postgres has none
		}
		counts[side+row["sequence"]]++
		row["ordinal"] = fmt.Sprint(side, counts[side+row["sequence"]])
	}
}

// carryTriggered adds the time at which an order was triggered to its later rows. Under rules 1 they have none.
func carryTriggered(rows []cells) {
	last := map[string]string{}
	for _, row := range rows {
		if at := row["triggered"]; at != "" {
			last[row["code"]] = at
		} else if at := last[row["code"]]; at != "" {
			row["triggered"] = at
		}
	}
}

// TestNullBetweenValues writes rows of one record with and without a value.
func TestNullBetweenValues(t *testing.T) {
	r := &record.Record{}
	for _, price := range []int64{0, 1, 0} {
		r.Events = append(r.Events, &trading.OrderOpened{Order: order.Order{LimitPrice: fixed.Decimal{Coef: price}}})
	}
	cfg := Config{Dir: t.TempDir(), Journal: "trading", Range: short}
	mustWrite(t, cfg, []record.Entry{{Record: r}})
	var prices []string
	for _, row := range fileRows(t, cfg.Dir, tablesOf("trading")[0]) {
		prices = append(prices, row["limit_price"])
	}
	if !slices.Equal(prices, []string{"", "1", ""}) {
		t.Errorf("the limit prices are %q", prices)
	}
}

// compareRows compares the rows of a table in the files with those in Postgres.
func compareRows(t *testing.T, of table, model readModel, rows, want []cells) {
	t.Helper()
	got := map[string]cells{}
	for _, row := range rows {
		got[row.key(model.key)] = row
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d rows in the files, and %d in Postgres", of.name, len(got), len(want))
	}
	for _, c := range schemaOf(t, of).Fields() {
		name := c.Name()
		if slices.Contains(model.lacks, name) {
			continue
		}
		for _, row := range want {
			key := row.key(model.key)
			if got[key][name] != row[name] {
				t.Errorf("%s: %s of the row %s is %q in the files, and %q in Postgres", of.name, name, key, got[key][name], row[name])
				break
			}
		}
	}
}

// fileRows reads all rows of a table in the order of the files.
func fileRows(t *testing.T, dir string, of table) (all []cells) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, of.name, "*"+suffix))
	must(t, err)
	fields := schemaOf(t, of).Fields()
	for _, path := range paths {
		f, err := os.Open(path)
		must(t, err)
		r := parquet.NewReader(f)
		some := make([]parquet.Row, 64)
		for done := false; !done; {
			n, err := r.ReadRows(some)
			if done = errors.Is(err, io.EOF); !done {
				must(t, err)
			}
			for _, row := range some[:n] {
				read := cells{}
				for _, v := range row {
					if c := fields[v.Column()]; !v.IsNull() {
						read[c.Name()] = cellOf(c, v)
					}
				}
				all = append(all, read)
			}
		}
		must(t, errors.Join(r.Close(), f.Close()))
	}
	return all
}

// cellOf returns the text of a value in a file.
func cellOf(c parquet.Field, v parquet.Value) string {
	switch kind := c.Type().String(); {
	case strings.HasPrefix(kind, "DECIMAL"):
		return rational(number(v.ByteArray())).RatString()
	case kind == "UUID":
		return scalar.ID(v.ByteArray()).String()
	}
	return v.String()
}

// readRows reads the rows of a query for JSON objects.
func readRows(t *testing.T, pool *pgxpool.Pool, of table, query string) (all []cells) {
	t.Helper()
	rows, err := pool.Query(t.Context(), "SELECT x::text FROM ("+query+") AS rows (x)")
	must(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	for _, text := range texts {
		all = append(all, decodeCells(t, []byte(text), schemaOf(t, of)))
	}
	return all
}

// decodeCells returns the texts that fileRows has for the members of a JSON object with the columns of a table.
func decodeCells(t *testing.T, object []byte, schema *parquet.Schema) cells {
	t.Helper()
	var members map[string]jsontext.Value
	must(t, json.Unmarshal(object, &members))
	row := cells{}
	for _, c := range schema.Fields() {
		value, ok := members[c.Name()]
		if !ok || value.Kind() == 'n' {
			continue
		}
		said := string(value)
		if value.Kind() == '"' {
			must(t, json.Unmarshal(value, &said))
		}
		switch kind := c.Type().String(); {
		case strings.HasPrefix(kind, "DECIMAL"):
			said = text(t, said).RatString()
		case strings.HasPrefix(kind, "TIMESTAMP"):
			at, err := time.Parse(time.RFC3339Nano, said)
			must(t, err)
			said = strconv.FormatInt(at.UnixMicro(), 10)
		}
		row[c.Name()] = said
	}
	return row
}

func number64(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	must(t, err)
	return n
}
