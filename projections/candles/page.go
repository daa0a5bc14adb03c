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

// Candle is a candle as it is shown. Numbers are texts in the precision in which they were traded. Of prices that are
// not trades Volume and Turnover are "".
type Candle struct {
	Start                  scalar.Time
	Open, High, Low, Close string
	Volume, Turnover       string // contracts, and notional without trailing zeros
	Trades                 int64
	Closed                 bool // nothing can change it any more
}

// Filter says which candles are wanted.
type Filter struct {
	Symbol   string
	Price    Price
	Interval market.Interval
	// From and To bound when candles begin: From inclusive, To exclusive. Zero leaves that end open.
	projections.Span
	// Limit is how many there are at most: without From the latest ones, else the first.
	Limit int
	// Clock is the time now, where it is later than the log's: with rows that hold the record Known it counts.
	Clock scalar.Time
	Known int64
}

//go:embed window.sql
var window string

// columns are what a candle is read from.
const columns = `SELECT n.start, n.open::text, n.high::text, n.low::text, n.close::text, n.volume::text, n.turnover::text, n.trades
	FROM candles n WHERE n.symbol = $1 AND n.price = $2 AND n.seconds = $3 AND n.start `

// Page returns candles, the oldest first, without a gap: where there was no price the close before is repeated. There is
// none from before the first price. The last one may still be open. It returns the sequence that they are as of.
//
// The log's time says what is open. No record has an earlier time than the one before it, so what ended by then is
// closed for good.
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

// collect reads rows. The texts of a row are parts of one string: a page has thousands of rows, and its time would go into
// making texts.
func (f *Filter) collect(into *[]Candle) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		found := make([]Candle, 0, f.Limit)
		var k Candle
		var texts [6]pgtype.DriverBytes // which the next row overwrites
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

// trimmed returns a decimal without trailing zeros.
func trimmed(text string) string {
	if strings.IndexByte(text, '.') < 0 {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// filled returns the candles from first to last, exclusive: the rows, and where there is none a candle that repeats the
// close before. Those from opened on are open.
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
			start = rows[0].Start - step // nothing comes before the first price
			continue
		default:
			return out
		}
		out[len(out)-1].Closed = start < opened
	}
	return slices.Clip(out)
}

// repeated returns the candle of an interval in which there was no price, of which the last was this one's close.
func (k *Candle) repeated(start scalar.Time) Candle {
	quiet := Candle{Start: start, Open: k.Close, High: k.Close, Low: k.Close, Close: k.Close}
	if k.Volume != "" {
		quiet.Volume, quiet.Turnover = "0", "0"
	}
	return quiet
}
