package candles

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Candle is a candle as the interface shows it. Numbers are texts in the traded precision. Volume and Turnover are ""
// for index and mark prices.
type Candle struct {
	Start                  scalar.Time
	Open, High, Low, Close string
	Volume, Turnover       string // in contracts; notional without trailing zeros
	Trades                 int64
	Closed                 bool // the candle cannot change any more
}

// Filter selects candles.
type Filter struct {
	Symbol   string
	Price    Price
	Interval market.Interval
	// From and To limit the start times of the candles: From inclusive, To exclusive. A zero Time leaves that end open.
	projections.Span
	// Limit is the greatest number of candles: the first ones from From on, or the latest ones if From is zero.
	Limit int
	// Clock is the current time. If it is later than the time of the log, it determines which candles are open, provided
	// that the rows include the record with sequence Known.
	Clock scalar.Time
	Known int64
}

//go:embed window.sql
var window string

// columns is the query for candles, without the condition on the start time.
const columns = `SELECT n.start, n.open::text, n.high::text, n.low::text, n.close::text, n.volume::text, n.turnover::text, n.trades
	FROM candles n WHERE n.symbol = $1 AND n.price = $2 AND n.seconds = $3 AND n.start `

// Page returns candles without gaps, oldest first, and the sequence that they are as of. A candle without a price
// repeats the previous close. The page begins no earlier than the first price. The last candle may be open.
//
// The time of the log determines which candles are open. Record times never decrease, so a candle that ended before that
// time cannot change.
func Page(ctx context.Context, db projections.DB, f Filter) (page []Candle, asOf int64, err error) {
	step := f.Interval.Span()
	up := func(t scalar.Time) scalar.Time { return (t + step - 1) / step * step } // the first start at t or later
	args := []any{f.Symbol, string(f.Price), int(f.Interval), c.Timestamp(up(f.From)), c.Timestamp(up(f.To)), f.Limit, c.Timestamp(f.Clock), f.Known}
	last := f
	last.Limit = 1
	var before, rows []Candle
	var span struct{ opened, first, last scalar.Time }
	asOf, err = projections.Read(ctx, db, "trading",
		projections.Statement{SQL: window + "SELECT opened, first, last FROM span", Args: args, Collect: func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{c.IntoTime(&span.opened), c.IntoTime(&span.first), c.IntoTime(&span.last)}, func() error { return nil })
			return err
		}},
		projections.Statement{SQL: window + columns + "< (SELECT first FROM span) ORDER BY n.start DESC LIMIT 1", Args: args, Collect: last.collect(&before)},
		projections.Statement{SQL: window + columns + ">= (SELECT first FROM span) AND n.start < (SELECT last FROM span) ORDER BY n.start", Args: args, Collect: f.collect(&rows)})
	if err != nil {
		return nil, asOf, err
	}
	return filled(before, rows, span.first, span.last, span.opened, step), asOf, nil
}

// collect reads rows. The texts of a row are substrings of one string: a page has thousands of rows, and allocating each
// text would dominate the time.
func (f *Filter) collect(into *[]Candle) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		found := make([]Candle, 0, f.Limit)
		var k Candle
		var texts [6]pgtype.DriverBytes // the next row overwrites them
		var joined []byte
		_, err := pgx.ForEachRow(rows, []any{c.IntoTime(&k.Start), &texts[0], &texts[1], &texts[2], &texts[3], &texts[4], &texts[5], &k.Trades}, func() error {
			joined = joined[:0]
			for _, text := range texts {
				joined = append(joined, text...)
			}
			rest := string(joined)
			for i, part := range [...]*string{&k.Open, &k.High, &k.Low, &k.Close, &k.Volume, &k.Turnover} {
				*part, rest = rest[:len(texts[i])], rest[len(texts[i]):]
			}
			if k.Turnover = trimmed(k.Turnover); f.Price != Trade {
				k.Volume, k.Turnover = "", ""
			}
			found = append(found, k)
			return nil
		})
		*into = found
		return err
	}
}

// trimmed removes trailing zeros from a decimal.
func trimmed(text string) string {
	if strings.IndexByte(text, '.') < 0 {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// filled returns the candles with start times from first to last, exclusive. A start time without a row gets a candle
// that repeats the previous close. Candles from opened on are open.
func filled(before, rows []Candle, first, last, opened, step scalar.Time) []Candle {
	out := make([]Candle, 0, max(0, last-first)/step)
	previous := before
	for start := first; start < last; start += step {
		switch {
		case len(rows) > 0 && rows[0].Start == start:
			previous, rows = rows[:1], rows[1:]
			out = append(out, previous[0])
		case len(previous) > 0:
			out = append(out, previous[0].repeated(start))
		case len(rows) > 0:
			start = rows[0].Start - step // there are no candles before the first price
			continue
		default:
			return out
		}
		out[len(out)-1].Closed = start < opened
	}
	return slices.Clip(out)
}

// repeated returns the candle of an interval without a price that follows this candle.
func (k *Candle) repeated(start scalar.Time) Candle {
	quiet := Candle{Start: start, Open: k.Close, High: k.Close, Low: k.Close, Close: k.Close}
	if k.Volume != "" {
		quiet.Volume, quiet.Turnover = "0", "0"
	}
	return quiet
}
