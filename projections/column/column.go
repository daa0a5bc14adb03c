// Package column describes the columns of tables. A Column states the name and type of a column and the location of the
// value in a Go row. The encoding for COPY, the array parameters of set-based statements, and the scan targets of
// queries are derived from it.
//
// New rows are written with COPY. A statement that changes rows takes one array parameter for each column and unnests
// the arrays in parallel, so a batch of any size is one statement with one plan. Decimals and money are sent as binary
// numerics in COPY and as text elsewhere. Both forms keep the printed precision of a number.
package column

import (
	"encoding"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Column is a column of a table with rows of type T.
type Column[T any] struct {
	Definition
	at    func(row *T) any  // a pointer to the value in the row
	there func(row *T) bool // false if the column is NULL; nil for all other columns
}

// Definition is the part of a Column that does not depend on the type of the rows.
type Definition struct {
	Name string

	role     role
	once     bool   // an existing value is kept
	merge    string // the expression for an existing row, if not the new value
	element  string // element type of the array parameter
	from, as string // expressions: from an element to the value, and for selecting the value

	// The functions take a value as Column.at returns it, or nil for NULL.
	encode func(to *Rows, value any)              // for COPY
	values func(n int, value func(i int) any) any // the array parameter with n values
	into   func(value any) any                    // the Scan target; nil for a column that is not read
}

// role says how a column behaves when its row is updated.
type role uint8

const (
	changes role = iota
	fixedOnce
	identifies
)

// Key returns the column marked as part of the key by which updates find the row.
func (c Column[T]) Key() Column[T] { c.role = identifies; return c }

// Fixed returns the column marked as immutable after the insertion of the row.
func (c Column[T]) Fixed() Column[T] { c.role = fixedOnce; return c }

// Once returns the column marked to keep its first value that is not NULL.
func (c Column[T]) Once() Column[T] { c.once = true; return c }

// Merged returns the column with an expression for existing rows in an upsert. It may refer to the existing row t and
// the new row excluded.
func (c Column[T]) Merged(expression string) Column[T] { c.merge = expression; return c }

// Renamed returns the column with another name.
func (c Column[T]) Renamed(name string) Column[T] { c.Name = name; return c }

// Within returns the column for a table with rows V. Each V contains a row T, which inner locates.
func Within[V, T any](c Column[T], inner func(*V) *T) Column[V] {
	w := Column[V]{Definition: c.Definition, at: func(row *V) any { return c.at(inner(row)) }}
	if c.there != nil {
		w.there = func(row *V) bool { return c.there(inner(row)) }
	}
	return w
}

// IsOnce reports whether the column keeps its first value that is not NULL.
func (d *Definition) IsOnce() bool { return d.once }

// IsKey reports whether the column is part of the key.
func (d *Definition) IsKey() bool { return d.role == identifies }

// IsFixed reports whether the column is immutable without being part of the key.
func (d *Definition) IsFixed() bool { return d.role == fixedOnce }

// Quoted returns the quoted name for SQL.
func (d *Definition) Quoted() string { return `"` + d.Name + `"` }

// Element returns the type of the column's array parameter.
func (d *Definition) Element() string { return d.element + "[]" }

// Value returns the expression for the column's value in the unnested row n.
func (d *Definition) Value() string { return strings.ReplaceAll(d.from, "?", "n."+d.Quoted()) }

// Assigned returns the expression that updates the column of an existing row t from the unnested row n.
func (d *Definition) Assigned() string {
	if d.once {
		return "COALESCE(t." + d.Quoted() + ", " + d.Value() + ")"
	}
	return d.Value()
}

// Merge returns the expression for the column of an existing row in an upsert.
func (d *Definition) Merge() string {
	if d.merge != "" {
		return d.merge
	}
	return "excluded." + d.Quoted()
}

// IsRead reports whether queries read the column.
func (d *Definition) IsRead() bool { return d.into != nil }

// Selected returns the select expression for Into, or "" if queries do not read the column.
func (d *Definition) Selected() string {
	if !d.IsRead() {
		return ""
	}
	return strings.ReplaceAll(d.as, "?", d.Quoted())
}

// Into returns the Scan target for the column in a row.
func (c *Column[T]) Into(row *T) any { return c.into(c.at(row)) }

// Encode appends the column's value of a row to a COPY.
func (c *Column[T]) Encode(to *Rows, row *T) { c.encode(to, c.value(row)) }

// Values returns the array parameter with the column's values of the rows.
func (c *Column[T]) Values(rows []T) any {
	return c.values(len(rows), func(i int) any { return c.value(&rows[i]) })
}

func (c *Column[T]) value(row *T) any {
	if c.there != nil && !c.there(row) {
		return nil
	}
	return c.at(row)
}

// define makes a column from accessors: field locates the value in a row, encode writes it for COPY, as converts it for
// the array parameter, and into returns the Scan target.
func define[T, V, E any](name, element string, field func(*T) *V, encode func(*Rows, V), as func(V) E, into func(*V) any) Column[T] {
	return Column[T]{Definition: definition(name, element, encode, as, into), at: func(row *T) any { return field(row) }}
}

// definition returns the Definition of a column. It is not inlined, because then its functions would be compiled for each table.
//
//go:noinline
func definition[V, E any](name, element string, encode func(*Rows, V), as func(V) E, into func(*V) any) Definition {
	return Definition{
		Name: name, element: element, from: "?", as: "?",
		encode: func(to *Rows, value any) {
			if value == nil {
				to.Null()
				return
			}
			encode(to, *value.(*V))
		},
		values: func(n int, value func(i int) any) any {
			values := make([]E, n)
			for i := range values {
				if v := value(i); v != nil {
					values[i] = as(*v.(*V))
				}
			}
			return values
		},
		into: func(value any) any { return into(value.(*V)) },
	}
}

// numeric converts a column with text elements to type numeric.
func numeric[T any](c Column[T]) Column[T] {
	c.from, c.as = "?::numeric", "?::text"
	return c
}

func same[V any](v V) V { return v }

// Text is a column of type text.
func Text[T any, S ~string](name string, field func(*T) *S) Column[T] {
	return define(name, "text", field, func(to *Rows, s S) { to.Text(string(s)) }, func(s S) string { return clean(string(s)) }, IntoText[S])
}

// NullText is a column of type text. "" is stored as NULL.
func NullText[T any, S ~string](name string, field func(*T) *S) Column[T] {
	return define(name, "text", field, func(to *Rows, s S) { to.NullText(string(s)) },
		func(s S) pgtype.Text { return pgtype.Text{String: clean(string(s)), Valid: s != ""} }, IntoText[S])
}

// Words is a column of type text[] for words without spaces.
func Words[T any](name string, field func(*T) *[]string) Column[T] {
	c := define(name, "text", field, func(to *Rows, words []string) { to.Words(words) },
		func(words []string) string { return clean(strings.Join(words, " ")) }, func(words *[]string) any { return words })
	c.from = "string_to_array(?, ' ')"
	return c
}

// JSON is a column of type json, read as text.
func JSON[T any](name string, field func(*T) *string) Column[T] {
	c := Text(name, field)
	c.from, c.as = "?::json", "?::text"
	return c
}

// ID is a column of type uuid. The zero ID is stored as NULL.
func ID[T any](name string, field func(*T) *scalar.ID) Column[T] {
	return define(name, "uuid", field, (*Rows).ID, UUID, IntoID)
}

// IDs is a column of type uuid[].
func IDs[T any](name string, field func(*T) *[]scalar.ID) Column[T] {
	c := define(name, "text", field, (*Rows).IDs, func(ids []scalar.ID) string {
		words := make([]string, len(ids))
		for i, id := range ids {
			words[i] = id.String()
		}
		return strings.Join(words, " ")
	}, func(ids *[]scalar.ID) any { return (*idsTarget)(ids) })
	c.from, c.as = "string_to_array(?, ' ')::uuid[]", "array_to_string(?, ' ')"
	return c
}

// Time is a column of type timestamptz. The zero Time is stored as NULL.
func Time[T any](name string, field func(*T) *scalar.Time) Column[T] {
	return define(name, "timestamptz", field, (*Rows).Time, Timestamp, IntoTime)
}

// Int is a column of type bigint.
func Int[T any](name string, field func(*T) *int64) Column[T] {
	return define(name, "bigint", field, (*Rows).Int, same[int64], func(n *int64) any { return n })
}

// NullInt is a column of type bigint. 0 is stored as NULL.
func NullInt[T any](name string, field func(*T) *int64) Column[T] {
	return define(name, "bigint", field, func(to *Rows, n int64) {
		if n == 0 {
			to.Null()
			return
		}
		to.Int(n)
	}, func(n int64) pgtype.Int8 { return pgtype.Int8{Int64: n, Valid: n != 0} }, IntoInt)
}

// Small is a column of type integer. Values out of range are clamped.
func Small[T any, N int | int64](name string, field func(*T) *N) Column[T] {
	return define(name, "integer", field, func(to *Rows, n N) { to.Small(int64(n)) }, func(n N) int32 { return small(int64(n)) },
		func(n *N) any { return n })
}

// NullSmall is a column of type integer. 0 is stored as NULL.
func NullSmall[T any](name string, field func(*T) *int) Column[T] {
	return define(name, "integer", field, func(to *Rows, n int) {
		if n == 0 {
			to.Null()
			return
		}
		to.Small(int64(n))
	}, func(n int) pgtype.Int4 { return pgtype.Int4{Int32: small(int64(n)), Valid: n != 0} }, func(n *int) any { return (*smallTarget)(n) })
}

func small(n int64) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// Bool is a column of type boolean.
func Bool[T any](name string, field func(*T) *bool) Column[T] {
	return define(name, "boolean", field, (*Rows).Bool, same[bool], func(b *bool) any { return b })
}

// Whether is a column of type boolean that is derived from the row. Queries do not read it.
func Whether[T any](name string, value func(*T) bool) Column[T] {
	c := Bool(name, func(row *T) *bool { b := value(row); return &b })
	c.into = nil
	return c
}

// Hash is a column of type bytea for 32 bytes.
func Hash[T any, H ~[32]byte](name string, field func(*T) *H) Column[T] {
	return define(name, "bytea", field, func(to *Rows, h H) { b := [32]byte(h); to.Bytes(b[:]) },
		func(h H) []byte { b := [32]byte(h); return b[:] }, func(h *H) any { return hashInto[H]{h} })
}

// Bytes is a column of type bytea. An empty slice is stored as NULL.
func Bytes[T any, B ~[]byte](name string, field func(*T) *B) Column[T] {
	return define(name, "bytea", field, func(to *Rows, b B) {
		if len(b) == 0 {
			to.Null()
			return
		}
		to.Bytes(b)
	}, func(b B) []byte {
		if len(b) == 0 {
			return nil
		}
		return b
	}, func(b *B) any { return bytesInto[B]{b} })
}

// Decimal is a column of type numeric that is never NULL.
func Decimal[T any](name string, field func(*T) *fixed.Decimal) Column[T] {
	return numeric(define(name, "text", field, (*Rows).Decimal, fixed.Decimal.String, IntoDecimal))
}

// NullDecimal is a column of type numeric. Zero is stored as NULL.
func NullDecimal[T any](name string, field func(*T) *fixed.Decimal) Column[T] {
	return numeric(define(name, "text", field, (*Rows).NullDecimal, func(d fixed.Decimal) pgtype.Text {
		if d.IsZero() {
			return pgtype.Text{}
		}
		return pgtype.Text{String: d.String(), Valid: true}
	}, IntoDecimal))
}

// Money is a column of type numeric that is never NULL.
func Money[T any](name string, field func(*T) *fixed.Money) Column[T] {
	return numeric(define(name, "text", field, (*Rows).Money, fixed.Money.String, IntoMoney))
}

// MoneyWhere is a column of type numeric. It is NULL in rows for which there returns false.
func MoneyWhere[T any](name string, there func(*T) bool, field func(*T) *fixed.Money) Column[T] {
	c := numeric(define(name, "text", field, (*Rows).Money,
		func(m fixed.Money) pgtype.Text { return pgtype.Text{String: m.String(), Valid: true} }, IntoMoney))
	c.there = there
	return c
}

// Number is a column of type numeric with values given as text, of any number of digits. Queries do not read it, and its
// table cannot be written with COPY.
func Number[T any](name string, text func(*T) string) Column[T] {
	c := numeric(Text(name, func(row *T) *string { s := text(row); return &s }))
	c.encode, c.into = nil, nil // COPY would need the binary digits
	return c
}

// Whole is a column of type numeric for a whole number of any size, in text its decimal digits.
func Whole[T any, V encoding.TextMarshaler, P interface {
	*V
	encoding.TextUnmarshaler
}](name string, field func(*T) *V) Column[T] {
	text := func(v V) string {
		b, _ := v.MarshalText() // numbers have one
		return string(b)
	}
	return numeric(define(name, "text", field, func(to *Rows, v V) { to.Whole(text(v)) }, text, func(v *V) any { return wholeInto{P(v)} }))
}

// clean replaces bytes that a Postgres text cannot contain. No accepted command contains such text, but if one did, it
// must not stop a runner.
func clean(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// The range of years that both a timestamptz and the text form of a Time support.
var (
	earliest = scalar.TimeOf(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))
	latest   = scalar.TimeOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC))
)

// Timestamp returns a parameter of type timestamptz. The zero Time is NULL.
func Timestamp(t scalar.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: min(max(t, earliest), latest).Std(), Valid: !t.IsZero()}
}

// UUID returns a parameter of type uuid. The zero ID is NULL.
func UUID(id scalar.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: !id.IsZero()} }
