// Package column turns rows of Go values into what COPY takes and into the array parameters of set-based SQL, and the
// columns of a result back.
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

// Of is one column of rows of type T: it makes the array parameter that holds the column's values.
type Of[T any] func(rows []T) any

// Args returns the parameters of a statement that unnests the columns, in their order.
func Args[T any](rows []T, columns ...Of[T]) []any {
	args := make([]any, len(columns))
	for i, c := range columns {
		args[i] = c(rows)
	}
	return args
}

// of makes a column from the function that turns a row into one element of the parameter.
func of[T, V any](value func(*T) V) Of[T] {
	return func(rows []T) any {
		values := make([]V, len(rows))
		for i := range rows {
			values[i] = value(&rows[i])
		}
		return values
	}
}

// Text is a column of type text.
func Text[T any](get func(*T) string) Of[T] {
	return of(func(r *T) string { return clean(get(r)) })
}

// NullText is a column of type text in which "" is NULL.
func NullText[T any](get func(*T) string) Of[T] {
	return of(func(r *T) pgtype.Text {
		s := get(r)
		return pgtype.Text{String: clean(s), Valid: s != ""}
	})
}

// clean replaces what a Postgres text can't hold. No accepted command carries such text, but were there ever one, it
// must not stop a runner.
func clean(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// ID is a column of type uuid in which the zero ID is NULL.
func ID[T any](get func(*T) scalar.ID) Of[T] {
	return of(func(r *T) pgtype.UUID {
		id := get(r)
		return pgtype.UUID{Bytes: id, Valid: !id.IsZero()}
	})
}

// Time is a column of type timestamptz in which the zero Time is NULL.
func Time[T any](get func(*T) scalar.Time) Of[T] {
	return of(func(r *T) pgtype.Timestamptz { return Timestamp(get(r)) })
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

// Int is a column of type bigint.
func Int[T any, N int | int32 | int64](get func(*T) N) Of[T] {
	return of(func(r *T) int64 { return int64(get(r)) })
}

// Small is a column of type integer. Values beyond it stop at its limits.
func Small[T any, N int | int32 | int64](get func(*T) N) Of[T] {
	return of(func(r *T) int32 { return small(int64(get(r))) })
}

func small(n int64) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// Bool is a column of type boolean.
func Bool[T any](get func(*T) bool) Of[T] { return of(get) }

// Bytes is a column of type bytea.
func Bytes[T any](get func(*T) []byte) Of[T] { return of(get) }

// Decimal is a column of type text[] for a numeric that is never NULL; the statement casts its elements.
func Decimal[T any](get func(*T) fixed.Decimal) Of[T] {
	return of(func(r *T) string { return get(r).String() })
}

// NullDecimal is a column like Decimal in which a number equal to zero is NULL.
func NullDecimal[T any](get func(*T) fixed.Decimal) Of[T] {
	return of(func(r *T) pgtype.Text {
		d := get(r)
		if d.IsZero() {
			return pgtype.Text{}
		}
		return pgtype.Text{String: d.String(), Valid: true}
	})
}

// Money is a column of type text[] for a numeric that is never NULL; the statement casts its elements.
func Money[T any](get func(*T) fixed.Money) Of[T] {
	return of(func(r *T) string { return get(r).String() })
}

// UUID returns one parameter of type uuid; the zero ID is NULL.
func UUID(id scalar.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: !id.IsZero()} }
