package projections_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// values are what a row may hold.
type values struct {
	decimal, absent fixed.Decimal
	money           fixed.Money
	id              scalar.ID
	time            scalar.Time
	text            string
}

// TestColumnsRoundTrip holds that every value comes back from its column as it went in, the printed precision of
// decimals included.
func TestColumnsRoundTrip(t *testing.T) {
	pool := projectiontest.Database(t)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE kept (n bigint, decimal numeric NOT NULL, absent numeric, money numeric NOT NULL,
		id uuid, time timestamptz, text text)`); err != nil {
		t.Fatal(err)
	}
	decimals := rapid.Custom(func(t *rapid.T) fixed.Decimal {
		return fixed.Decimal{Coef: rapid.Int64Range(-999_999_999_999_999_999, 999_999_999_999_999_999).Draw(t, "coef"),
			Scale: rapid.Uint8Range(0, 17).Draw(t, "scale")}
	})
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) values {
			v := values{decimal: decimals.Draw(r, "decimal"), absent: decimals.Draw(r, "absent"),
				money: fixed.Money(rapid.Int64Range(-1e18+1, 1e18-1).Draw(r, "money")), text: rapid.String().Draw(r, "text"),
				time: scalar.Time(rapid.Int64Range(-30_000_000_000_000_000, 200_000_000_000_000_000).Draw(r, "time"))}
			copy(v.id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "id"))
			return v
		}), 1, 20).Draw(r, "rows")
		rows = append(rows, values{decimal: fixed.Decimal{Scale: 3}, absent: fixed.Decimal{Scale: 2}}) // 0.000, and none
		n := int64(0)
		args := column.Args(rows,
			column.Int(func(*values) int64 { n++; return n }),
			column.Decimal(func(v *values) fixed.Decimal { return v.decimal }),
			column.NullDecimal(func(v *values) fixed.Decimal { return v.absent }),
			column.Money(func(v *values) fixed.Money { return v.money }),
			column.ID(func(v *values) scalar.ID { return v.id }),
			column.Time(func(v *values) scalar.Time { return v.time }),
			column.NullText(func(v *values) string { return v.text }))
		if _, err := pool.Exec(t.Context(), `WITH emptied AS (DELETE FROM kept)
			INSERT INTO kept SELECT n, decimal::numeric, absent::numeric, money::numeric, id, time, text
			FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::timestamptz[], $7::text[])
			AS v (n, decimal, absent, money, id, time, text)`, args...); err != nil {
			r.Fatal(err)
		}
		back, err := pool.Query(t.Context(), `SELECT decimal::text, absent::text, money::text, id, time, text FROM kept ORDER BY n`)
		if err != nil {
			r.Fatal(err)
		}
		defer back.Close()
		for i := range rows {
			want := rows[i]
			if want.absent.IsZero() {
				want.absent = fixed.Decimal{}
			}
			want.text = strings.ReplaceAll(want.text, "\x00", "\uFFFD") // a Postgres text has no NUL
			var got values
			if !back.Next() {
				r.Fatalf("%d rows, want %d", i, len(rows))
			}
			if err := back.Scan(column.IntoDecimal(&got.decimal), column.IntoDecimal(&got.absent), column.IntoMoney(&got.money),
				column.IntoID(&got.id), column.IntoTime(&got.time), column.IntoText(&got.text)); err != nil {
				r.Fatal(err)
			}
			if got != want {
				r.Fatalf("%+v came back as %+v", want, got)
			}
		}
	})
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
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM unnest($1::text[], $2::timestamptz[], $3::integer[]) AS v (a, b, c) WHERE a || b || c IS NOT NULL",
		column.Args(rows, column.Text(func(h *hostile) string { return h.text }), column.Time(func(h *hostile) scalar.Time { return h.time }),
			column.Small(func(h *hostile) int64 { return h.number }))...).Scan(&n); err != nil || n != len(rows) {
		t.Errorf("%d rows, %v", n, err)
	}
}
