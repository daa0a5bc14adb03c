package candles

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"

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

// Each calls do for every candle of a page without gaps, oldest first, and returns the sequence that they are as of. It
// calls do while the database still sends later rows, so do should be quick. After an error the page is incomplete.
//
// A candle without a price repeats the previous close. The page begins no earlier than the first price. The last candle
// may be open. The time of the log determines which candles are open. Record times never decrease, so a candle that
// ended before that time cannot change.
func Each(ctx context.Context, db projections.DB, f Filter, do func(k *Candle)) (asOf int64, err error) {
	step := f.Interval.Span()
	up := func(t scalar.Time) scalar.Time { return (t + step - 1) / step * step } // the first start at t or later
	args := []any{f.Symbol, string(f.Price), int(f.Interval), c.Timestamp(up(f.From)), c.Timestamp(up(f.To)), f.Limit, c.Timestamp(f.Clock), f.Known}
	p := filling{step: step, do: do}
	return projections.Read(ctx, db, "trading",
		projections.Statement{SQL: window + "SELECT opened, first, last FROM span", Args: args, Collect: func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{c.IntoTime(&p.opened), c.IntoTime(&p.next), c.IntoTime(&p.end)}, func() error { return nil })
			return err
		}},
		projections.Statement{SQL: window + columns + "< (SELECT first FROM span) ORDER BY n.start DESC LIMIT 1", Args: args,
			Collect: f.collect(func(k *Candle) { p.previous = *k })},
		projections.Statement{SQL: window + columns + ">= (SELECT first FROM span) AND n.start < (SELECT last FROM span) ORDER BY n.start", Args: args,
			Collect: func(rows pgx.Rows) error {
				err := f.collect(p.add)(rows)
				if err == nil {
					p.repeat(p.end)
				}
				return err
			}})
}

// collect reads rows. A page has thousands of them, so it takes the texts from the connection's memory, where the next row
// overwrites them, and allocates one string for those of a row.
func (f *Filter) collect(do func(k *Candle)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		defer rows.Close()
		var k Candle
		targets := []any{c.IntoTime(&k.Start), nil, nil, nil, nil, nil, nil, &k.Trades}
		var joined []byte
		for rows.Next() {
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			texts := rows.RawValues()[1:7] // the same bytes in both formats
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
			do(&k)
		}
		return rows.Err()
	}
}

// trimmed removes trailing zeros from a decimal.
func trimmed(text string) string {
	if strings.IndexByte(text, '.') < 0 {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// filling passes the candles with start times from next to end, exclusive, on to do. It fills the start times without a
// row. Candles from opened on are open.
type filling struct {
	next, end, opened, step scalar.Time
	previous                Candle // zero before the first price
	do                      func(k *Candle)
}

// add passes a row on, after the candles before it.
func (p *filling) add(k *Candle) {
	if p.previous.Start.IsZero() {
		p.next = k.Start // there are no candles before the first price
	}
	p.repeat(k.Start)
	p.previous = *k
	p.pass(k)
}

// repeat passes on the candles before a start time. They repeat the previous close.
func (p *filling) repeat(until scalar.Time) {
	for !p.previous.Start.IsZero() && p.next < until {
		quiet := p.previous.repeated(p.next)
		p.pass(&quiet)
	}
}

// pass passes on the candle with the next start time.
func (p *filling) pass(k *Candle) {
	k.Closed = k.Start < p.opened
	p.do(k)
	p.next += p.step
}

// repeated returns the candle of an interval without a price that follows this candle.
func (k *Candle) repeated(start scalar.Time) Candle {
	quiet := Candle{Start: start, Open: k.Close, High: k.Close, Low: k.Close, Close: k.Close}
	if k.Volume != "" {
		quiet.Volume, quiet.Turnover = "0", "0"
	}
	return quiet
}
