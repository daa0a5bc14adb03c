// Package column describes the columns of tables. A Column says once what a column is called, of which type it is, and
// where its value is in a row of Go values. From that follow its place in a COPY, in the array parameters of set-based
// SQL, and what a query reads it into.
//
// Rows that are new go in by COPY. A statement that changes rows takes one array for each column and unnests them side
// by side, so a batch of any size is one statement with one plan. Decimals and money travel as binary numerics in COPY
// and as text elsewhere: both keep a number's printed precision.
package column

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Column is a column of a table whose rows are Ts.
type Column[T any] struct {
	Name string

	role     role
	once     bool                   // a value that is there stays
	merge    string                 // what a row that is there becomes, if not the new value
	element  string                 // the type of the parameter's elements
	from, as string                 // around an element to make the value, and around the value to read it
	encode   func(to *Rows, row *T) // for COPY
	values   func(rows []T) any     // the parameter
	into     func(row *T) any       // the target of Scan; nil for what is not read back
}

// role is what becomes of a column when its row changes.
type role uint8

const (
	changes role = iota
	fixedOnce
	identifies
)

// Key returns the column as one of those by which a row is found when it changes.
func (c Column[T]) Key() Column[T] { c.role = identifies; return c }

// Fixed returns the column as one that keeps the value that the row was made with.
func (c Column[T]) Fixed() Column[T] { c.role = fixedOnce; return c }

// Once returns the column as one that keeps its first value which is not NULL.
func (c Column[T]) Once() Column[T] { c.once = true; return c }

// Merged returns the column as one whose value, where the row is there already, is an expression over the row t and the
// new one, excluded.
func (c Column[T]) Merged(expression string) Column[T] { c.merge = expression; return c }

// IsKey and IsFixed report what Key and Fixed made of the column.
func (c *Column[T]) IsKey() bool { return c.role == identifies }

// IsFixed reports whether the column keeps its first value without being a key.
func (c *Column[T]) IsFixed() bool { return c.role == fixedOnce }

// Quoted returns the name as it stands in SQL.
func (c *Column[T]) Quoted() string { return `"` + c.Name + `"` }

// Element returns the type of the column's array parameter.
func (c *Column[T]) Element() string { return c.element + "[]" }

// Value returns the expression that makes the column's value of an element of its parameter, n being the unnested row.
func (c *Column[T]) Value() string { return strings.ReplaceAll(c.from, "?", "n."+c.Quoted()) }

// Assigned returns the expression that updates the column of an existing row t, n being the unnested row.
func (c *Column[T]) Assigned() string {
	if c.once {
		return "COALESCE(t." + c.Quoted() + ", " + c.Value() + ")"
	}
	return c.Value()
}

// Merge returns what the column of a row that is there becomes.
func (c *Column[T]) Merge() string {
	if c.merge != "" {
		return c.merge
	}
	return "excluded." + c.Quoted()
}

// IsRead reports whether the column is read back into rows.
func (c *Column[T]) IsRead() bool { return c.into != nil }

// Selected returns the column as Into reads it; "" if nothing does.
func (c *Column[T]) Selected() string {
	if !c.IsRead() {
		return ""
	}
	return strings.ReplaceAll(c.as, "?", c.Quoted())
}

// Into returns the target that reads the column into a row.
func (c *Column[T]) Into(row *T) any { return c.into(row) }

// Encode adds the column's field of a row to a COPY.
func (c *Column[T]) Encode(to *Rows, row *T) { c.encode(to, row) }

// Values returns the array parameter that holds the column of the rows.
func (c *Column[T]) Values(rows []T) any { return c.values(rows) }

// define makes a column from the place of its value, and from what becomes of the value.
func define[T, V, E any](name, element string, place func(*T) *V, encode func(*Rows, V), as func(V) E, into func(*V) any) Column[T] {
	return Column[T]{
		Name: name, element: element, from: "?", as: "?",
		encode: func(to *Rows, row *T) { encode(to, *place(row)) },
		values: func(rows []T) any {
			values := make([]E, len(rows))
			for i := range rows {
				values[i] = as(*place(&rows[i]))
			}
			return values
		},
		into: func(row *T) any { return into(place(row)) },
	}
}

// numeric makes a column of text elements one of numerics.
func numeric[T any](c Column[T]) Column[T] {
	c.from, c.as = "?::numeric", "?::text"
	return c
}

func same[V any](v V) V { return v }

// Text is a column of type text.
func Text[T any, S ~string](name string, place func(*T) *S) Column[T] {
	return define(name, "text", place, func(to *Rows, s S) { to.Text(string(s)) }, func(s S) string { return clean(string(s)) }, IntoText[S])
}

// NullText is a column of type text in which "" is NULL.
func NullText[T any, S ~string](name string, place func(*T) *S) Column[T] {
	return define(name, "text", place, func(to *Rows, s S) { to.NullText(string(s)) },
		func(s S) pgtype.Text { return pgtype.Text{String: clean(string(s)), Valid: s != ""} }, IntoText[S])
}

// Words is a column of type text[] for words without spaces.
func Words[T any](name string, place func(*T) *[]string) Column[T] {
	c := define(name, "text", place, func(to *Rows, words []string) { to.Words(words) },
		func(words []string) string { return clean(strings.Join(words, " ")) }, func(words *[]string) any { return words })
	c.from = "string_to_array(?, ' ')"
	return c
}

// JSON is a column of type json, read as its text.
func JSON[T any](name string, place func(*T) *string) Column[T] {
	c := Text(name, place)
	c.from, c.as = "?::json", "?::text"
	return c
}

// ID is a column of type uuid in which the zero ID is NULL.
func ID[T any](name string, place func(*T) *scalar.ID) Column[T] {
	return define(name, "uuid", place, (*Rows).ID, UUID, IntoID)
}

// IDs is a column of type uuid[].
func IDs[T any](name string, place func(*T) *[]scalar.ID) Column[T] {
	c := define(name, "text", place, (*Rows).IDs, func(ids []scalar.ID) string {
		words := make([]string, len(ids))
		for i, id := range ids {
			words[i] = id.String()
		}
		return strings.Join(words, " ")
	}, func(ids *[]scalar.ID) any { return (*idsTarget)(ids) })
	c.from, c.as = "string_to_array(?, ' ')::uuid[]", "array_to_string(?, ' ')"
	return c
}

// Time is a column of type timestamptz in which the zero Time is NULL.
func Time[T any](name string, place func(*T) *scalar.Time) Column[T] {
	return define(name, "timestamptz", place, (*Rows).Time, Timestamp, IntoTime)
}

// Int is a column of type bigint.
func Int[T any](name string, place func(*T) *int64) Column[T] {
	return define(name, "bigint", place, (*Rows).Int, same[int64], func(n *int64) any { return n })
}

// NullInt is a column of type bigint in which 0 is NULL.
func NullInt[T any](name string, place func(*T) *int64) Column[T] {
	return define(name, "bigint", place, func(to *Rows, n int64) {
		if n == 0 {
			to.Null()
			return
		}
		to.Int(n)
	}, func(n int64) pgtype.Int8 { return pgtype.Int8{Int64: n, Valid: n != 0} }, IntoInt)
}

// Small is a column of type integer. Values beyond it stop at its limits.
func Small[T any, N int | int64](name string, place func(*T) *N) Column[T] {
	return define(name, "integer", place, func(to *Rows, n N) { to.Small(int64(n)) }, func(n N) int32 { return small(int64(n)) },
		func(n *N) any { return n })
}

// NullSmall is a column of type integer in which 0 is NULL.
func NullSmall[T any](name string, place func(*T) *int) Column[T] {
	return define(name, "integer", place, func(to *Rows, n int) {
		if n == 0 {
			to.Null()
			return
		}
		to.Small(int64(n))
	}, func(n int) pgtype.Int4 { return pgtype.Int4{Int32: small(int64(n)), Valid: n != 0} }, func(n *int) any { return (*smallTarget)(n) })
}

func small(n int64) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// Bool is a column of type boolean.
func Bool[T any](name string, place func(*T) *bool) Column[T] {
	return define(name, "boolean", place, (*Rows).Bool, same[bool], func(b *bool) any { return b })
}

// Whether is a column of type boolean that follows from others, and is not read back.
func Whether[T any](name string, value func(*T) bool) Column[T] {
	c := Bool(name, func(row *T) *bool { b := value(row); return &b })
	c.into = nil
	return c
}

// Hash is a column of type bytea for 32 bytes.
func Hash[T any, H ~[32]byte](name string, place func(*T) *H) Column[T] {
	return define(name, "bytea", place, func(to *Rows, h H) { b := [32]byte(h); to.Bytes(b[:]) },
		func(h H) []byte { b := [32]byte(h); return b[:] }, func(h *H) any { return hashInto[H]{h} })
}

// Bytes is a column of type bytea in which no bytes are NULL.
func Bytes[T any, B ~[]byte](name string, place func(*T) *B) Column[T] {
	return define(name, "bytea", place, func(to *Rows, b B) {
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
func Decimal[T any](name string, place func(*T) *fixed.Decimal) Column[T] {
	return numeric(define(name, "text", place, (*Rows).Decimal, fixed.Decimal.String, IntoDecimal))
}

// NullDecimal is a column of type numeric in which a number equal to zero is NULL.
func NullDecimal[T any](name string, place func(*T) *fixed.Decimal) Column[T] {
	return numeric(define(name, "text", place, (*Rows).NullDecimal, func(d fixed.Decimal) pgtype.Text {
		if d.IsZero() {
			return pgtype.Text{}
		}
		return pgtype.Text{String: d.String(), Valid: true}
	}, IntoDecimal))
}

// Money is a column of type numeric that is never NULL.
func Money[T any](name string, place func(*T) *fixed.Money) Column[T] {
	return numeric(define(name, "text", place, (*Rows).Money, fixed.Money.String, IntoMoney))
}

// MoneyWhere is a column of type numeric that is NULL in rows of which there is no such amount.
func MoneyWhere[T any](name string, there func(*T) bool, place func(*T) *fixed.Money) Column[T] {
	c := Money(name, place)
	encode := c.encode
	c.encode = func(to *Rows, row *T) {
		if !there(row) {
			to.Null()
			return
		}
		encode(to, row)
	}
	c.values = func(rows []T) any {
		values := make([]pgtype.Text, len(rows))
		for i := range rows {
			if there(&rows[i]) {
				values[i] = pgtype.Text{String: place(&rows[i]).String(), Valid: true}
			}
		}
		return values
	}
	return c
}

// Number is a column of type numeric whose rows have it as a text, of any number of digits. It is not read back.
func Number[T any](name string, text func(*T) string) Column[T] {
	c := numeric(Text(name, func(row *T) *string { s := text(row); return &s }))
	c.encode, c.into = nil, nil // a COPY would need its digits
	return c
}

// clean replaces what a Postgres text can't hold. No accepted command carries such text, but were there ever one, it
// must not stop a runner.
func clean(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// The span of years that a timestamptz and the text form of a Time both hold.
var (
	earliest = scalar.TimeOf(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))
	latest   = scalar.TimeOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC))
)

// Timestamp returns one parameter of type timestamptz; the zero Time is NULL.
func Timestamp(t scalar.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: min(max(t, earliest), latest).Std(), Valid: !t.IsZero()}
}

// UUID returns one parameter of type uuid; the zero ID is NULL.
func UUID(id scalar.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: !id.IsZero()} }
