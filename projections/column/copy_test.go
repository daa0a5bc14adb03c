package column_test

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

// copied sends rows of one numeric column and returns how Postgres prints them.
func copied(t *testing.T, conn *pgx.Conn, rows *column.Rows) []string {
	t.Helper()
	ctx := t.Context()
	if _, err := conn.Exec(ctx, "CREATE TEMPORARY TABLE n (i serial, v numeric)"); err != nil {
		t.Fatal(err)
	}
	tag, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(rows.Data()), "COPY n (v) FROM STDIN (FORMAT binary)")
	if err != nil || tag.RowsAffected() != int64(rows.Len()) {
		t.Fatal(tag, err)
	}
	found, err := conn.Query(ctx, "SELECT v::text FROM n ORDER BY i")
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), projectiontest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Numbers arrive with the very digits that they print with, whatever their size and decimals.
func TestNumericsKeepTheirDigits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	coefs := []int64{0, 1, 9, 10, 9999, 10_000, 10_001, 99_990_000, 1e18 - 1, 1e18, math.MaxInt64}
	for range 300 {
		coefs = append(coefs, random.Int64()>>random.IntN(63))
	}
	var rows column.Rows
	var want []string
	for _, c := range coefs {
		for scale := uint8(0); scale <= 18; scale++ {
			for _, d := range []fixed.Decimal{{Coef: c, Scale: scale}, {Coef: -c, Scale: scale}} {
				rows.Begin(1)
				rows.Decimal(d)
				want = append(want, d.String())
			}
		}
		rows.Begin(1)
		rows.Money(fixed.Money(c))
		want = append(want, fixed.Money(c).String())
	}
	for i, got := range copied(t, connect(t), &rows) {
		if got != want[i] {
			t.Fatalf("%s arrived as %s", want[i], got)
		}
	}
}

// Every other kind of field, and what is NULL.
func TestFieldsArrive(t *testing.T) {
	ctx, conn := t.Context(), connect(t)
	_, err := conn.Exec(ctx, `CREATE TEMPORARY TABLE fields (a text, b text, c uuid, d uuid, e timestamptz, f timestamptz,
		g bigint, h integer, i boolean, j bytea, k numeric, l text)`)
	if err != nil {
		t.Fatal(err)
	}
	at, err := scalar.ParseTime("2026-03-31T08:00:00.123456Z")
	if err != nil {
		t.Fatal(err)
	}
	var rows column.Rows
	for range 2 { // what Reset leaves does not show
		rows.Reset()
		rows.Begin(12)
		rows.Text("größe\x00\xff")
		rows.NullText("")
		rows.ID(scalar.ID{1, 2})
		rows.ID(scalar.ID{})
		rows.Time(at)
		rows.Time(0)
		rows.Int(math.MinInt64)
		rows.Small(math.MaxInt64)
		rows.Bool(true)
		rows.Bytes([]byte{0, 1})
		rows.NullDecimal(fixed.Decimal{Scale: 3})
		rows.NullText("x")
	}
	if _, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(rows.Data()), "COPY fields FROM STDIN (FORMAT binary)"); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := conn.QueryRow(ctx, "SELECT fields::text FROM fields, set_config('timezone', 'UTC', false)").Scan(&got); err != nil {
		t.Fatal(err)
	}
	const want = `(größe��,,01020000-0000-0000-0000-000000000000,,"2026-03-31 08:00:00.123456+00",,-9223372036854775808,2147483647,t,"\\x0001",,x)`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	rows.Reset()
	rows.Begin(11)
	if _, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(rows.Data()), "COPY fields FROM STDIN (FORMAT binary)"); err == nil {
		t.Error("a row of another length is taken")
	}
}

// Whole numbers of any size arrive with their digits.
func TestWholeNumbersKeepTheirDigits(t *testing.T) {
	want := []string{"0", "1", "-1", "9999", "10000", "-10000", "100000000", "99990000", "340282366920938463463374607431768211455", "-9223372036854775808"}
	for n := 1; n < 39; n++ {
		want = append(want, "1"+strings.Repeat("0", n), strings.Repeat("9", n), "-12"+strings.Repeat("0", n)+"3")
	}
	var rows column.Rows
	for _, digits := range want {
		rows.Begin(1)
		rows.Whole(digits)
	}
	if got := copied(t, connect(t), &rows); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
