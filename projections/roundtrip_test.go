package projections_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// kept are what a row may hold.
type kept struct {
	n               int64
	decimal, absent fixed.Decimal
	money, part     fixed.Money
	there           bool // the part
	id              scalar.ID
	time            scalar.Time
	text, name      string
	words           string // joined
	list            []string
	hash            [32]byte
	count           int64
	small, few      int
	ids             []scalar.ID
	bytes           []byte
}

func columnsOfKept() []column.Column[kept] {
	return []column.Column[kept]{
		column.Int("n", func(k *kept) *int64 { return &k.n }),
		column.Decimal("decimal", func(k *kept) *fixed.Decimal { return &k.decimal }),
		column.NullDecimal("absent", func(k *kept) *fixed.Decimal { return &k.absent }),
		column.Money("money", func(k *kept) *fixed.Money { return &k.money }),
		column.MoneyWhere("part", func(k *kept) bool { return k.there }, func(k *kept) *fixed.Money { return &k.part }),
		column.Bool("there", func(k *kept) *bool { return &k.there }),
		column.ID("id", func(k *kept) *scalar.ID { return &k.id }),
		column.Time("time", func(k *kept) *scalar.Time { return &k.time }),
		column.NullText("text", func(k *kept) *string { return &k.text }),
		column.Text("name", func(k *kept) *string { return &k.name }),
		column.Words("list", func(k *kept) *[]string { return &k.list }),
		column.Hash("hash", func(k *kept) *[32]byte { return &k.hash }),
		column.NullInt("count", func(k *kept) *int64 { return &k.count }),
		column.Small("small", func(k *kept) *int { return &k.small }),
		column.NullSmall("few", func(k *kept) *int { return &k.few }),
		column.IDs("ids", func(k *kept) *[]scalar.ID { return &k.ids }),
		column.Bytes("bytes", func(k *kept) *[]byte { return &k.bytes }),
		column.JSON("document", func(k *kept) *string { return &k.words }),
	}
}

// TestColumnsRoundTrip holds that every value comes back from its column as it went in, by COPY and as a parameter, the
// printed precision of decimals included.
func TestColumnsRoundTrip(t *testing.T) {
	pool := projectiontest.Database(t)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE kept (n bigint, decimal numeric NOT NULL, absent numeric, money numeric NOT NULL,
		part numeric, there boolean NOT NULL, id uuid, time timestamptz, text text, name text NOT NULL, list text[] NOT NULL,
		hash bytea NOT NULL, count bigint, small integer NOT NULL, few integer, ids uuid[] NOT NULL, bytes bytea,
		document json NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	decimals := rapid.Custom(func(t *rapid.T) fixed.Decimal {
		return fixed.Decimal{Coef: rapid.Int64Range(-999_999_999_999_999_999, 999_999_999_999_999_999).Draw(t, "coef"),
			Scale: rapid.Uint8Range(0, 17).Draw(t, "scale")}
	})
	money := rapid.Custom(func(t *rapid.T) fixed.Money { return fixed.Money(rapid.Int64Range(-1e18+1, 1e18-1).Draw(t, "money")) })
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) kept {
			v := kept{decimal: decimals.Draw(r, "decimal"), absent: decimals.Draw(r, "absent"), money: money.Draw(r, "money"),
				text: rapid.String().Draw(r, "text"), name: rapid.String().Draw(r, "name"),
				time:  scalar.Time(rapid.Int64Range(-30_000_000_000_000_000, 200_000_000_000_000_000).Draw(r, "time")),
				list:  rapid.SliceOfN(rapid.StringMatching(`[a-z-]{1,9}`), 1, 4).Draw(r, "list"),
				count: rapid.Int64().Draw(r, "count"), small: int(rapid.Int32().Draw(r, "small")), words: `["a", {}]`}
			if v.there = rapid.Bool().Draw(r, "there"); v.there {
				v.part = money.Draw(r, "part")
			}
			v.few, v.bytes = rapid.IntRange(-2, 2).Draw(r, "few"), rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(r, "bytes")
			v.ids = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) scalar.ID {
				return scalar.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "one"))
			}).Filter(func(id scalar.ID) bool { return !id.IsZero() }), 0, 3).Draw(r, "ids")
			copy(v.id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "id"))
			copy(v.hash[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(r, "hash"))
			return v
		}), 1, 20).Draw(r, "rows")
		rows = append(rows, kept{decimal: fixed.Decimal{Scale: 3}, absent: fixed.Decimal{Scale: 2}, there: true, list: []string{"x"}, words: "{}"}) // 0.000, and none
		for i := range rows {
			rows[i].n = int64(i)
		}
		for how, write := range map[string]func(*pgxpool.Pool, []kept) error{"COPY": copyKept, "parameters": insertKept} {
			if err := write(pool, rows); err != nil {
				r.Fatal(how, err)
			}
			readKept(r, pool, how, rows)
		}
	})
}

func copyKept(pool *pgxpool.Pool, rows []kept) error {
	var to column.Rows
	var names []string
	columns := columnsOfKept()
	for i := range rows {
		to.Begin(len(columns))
		for c := range columns {
			columns[c].Encode(&to, &rows[i])
		}
	}
	for c := range columns {
		names = append(names, columns[c].Quoted())
	}
	return pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), "DELETE FROM kept"); err != nil {
			return err
		}
		_, err := tx.Conn().PgConn().CopyFrom(context.Background(), bytes.NewReader(to.Data()), "COPY kept ("+strings.Join(names, ", ")+") FROM STDIN (FORMAT binary)")
		return err
	})
}

func insertKept(pool *pgxpool.Pool, rows []kept) error {
	var args []any
	var names, values, parameters []string
	for i, c := range columnsOfKept() {
		names, values = append(names, c.Quoted()), append(values, c.Value())
		parameters = append(parameters, fmt.Sprintf("$%d::%s", i+1, c.Element()))
		args = append(args, c.Values(rows))
	}
	_, err := pool.Exec(context.Background(), "WITH emptied AS (DELETE FROM kept) INSERT INTO kept ("+strings.Join(names, ", ")+") SELECT "+
		strings.Join(values, ", ")+" FROM unnest("+strings.Join(parameters, ", ")+") AS n ("+strings.Join(names, ", ")+")", args...)
	return err
}

func readKept(r *rapid.T, pool *pgxpool.Pool, how string, rows []kept) {
	var selected []string
	columns := columnsOfKept()
	for _, c := range columns {
		selected = append(selected, c.Selected())
	}
	back, err := pool.Query(context.Background(), "SELECT "+strings.Join(selected, ", ")+" FROM kept k ORDER BY k.n")
	if err != nil {
		r.Fatal(err)
	}
	defer back.Close()
	for i := range rows {
		want := rows[i]
		if want.absent.IsZero() {
			want.absent = fixed.Decimal{}
		}
		for _, text := range []*string{&want.text, &want.name} {
			*text = strings.ReplaceAll(*text, "\x00", "\uFFFD") // a Postgres text has no NUL
		}
		var got kept
		if !back.Next() {
			r.Fatalf("%s: %d rows, want %d", how, i, len(rows))
		}
		into := make([]any, len(columns))
		for c := range columns {
			into[c] = columns[c].Into(&got)
		}
		if err := back.Scan(into...); err != nil {
			r.Fatal(err)
		}
		if joined := strings.Join(got.list, " "); joined != strings.Join(want.list, " ") {
			r.Fatalf("%s: %q came back as %q", how, want.list, got.list)
		}
		got.list, want.list = nil, nil
		if len(want.bytes) == 0 {
			want.bytes = nil // none are NULL
		}
		if !equal(got, want) {
			r.Fatalf("%s: %+v came back as %+v", how, want, got)
		}
	}
}

func equal(a, b kept) bool {
	return a.n == b.n && a.decimal == b.decimal && a.absent == b.absent && a.money == b.money && a.part == b.part && a.there == b.there &&
		a.id == b.id && a.time == b.time && a.text == b.text && a.name == b.name && a.words == b.words && a.hash == b.hash &&
		a.count == b.count && a.small == b.small &&
		a.few == b.few && slices.Equal(a.ids, b.ids) && slices.Equal(a.bytes, b.bytes) && (b.bytes == nil || len(b.bytes) > 0)
}

// TestNothingStopsARunner puts what no accepted command should carry into rows: it must be stored as something.
func TestNothingStopsARunner(t *testing.T) {
	pool := projectiontest.Database(t)
	type hostile struct {
		text   string
		time   scalar.Time
		number int64
	}
	rows := []hostile{{"\x00", math.MaxInt64, math.MaxInt64}, {"\xff\xfe", math.MinInt64, math.MinInt64}, {"a\x00\xc3(", -1, 1 << 40}, {"\"{},\\NULL", 1, -1}}
	text := column.Text("a", func(h *hostile) *string { return &h.text })
	time := column.Time("b", func(h *hostile) *scalar.Time { return &h.time })
	number := column.Small("c", func(h *hostile) *int64 { return &h.number })
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM unnest($1::text[], $2::timestamptz[], $3::integer[]) AS v (a, b, c) WHERE a || b || c IS NOT NULL",
		text.Values(rows), time.Values(rows), number.Values(rows)).Scan(&n); err != nil || n != len(rows) {
		t.Errorf("%d rows, %v", n, err)
	}
}
