// Package candles is the read model of candles: for each instrument, kind of price and interval, a row for every
// interval with a price of that kind. An interval without a price has no row; readers fill the gap with the previous
// close.
//
// Trades make the candles of trade prices, except takeovers and deleveraging, which do not move the price. Index inputs
// make the candles of index and mark prices. A row of a longer interval sums up the rows of the shorter one. The
// projector writes the rows of all intervals, so reading a page is an index scan of that many rows.
package candles

import (
	"math/big"
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection maintains the table candles.
var Projection = projections.NewProjection("candles", project, table.Name)

// Price is a kind of price.
type Price string

// The kinds of prices with candles.
const (
	Trade Price = "trade"
	Mark  Price = "mark"
	Index Price = "index"
)

// key identifies a candle.
type key struct {
	symbol  string
	price   Price
	seconds market.Interval
	start   scalar.Time
}

// candle is a candle, or the contribution of some entries to one.
type candle struct {
	key
	open, high, low, close fixed.Decimal
	volume                 sum // in contracts, with the decimals of the finest amount step
	turnover               sum // notional
	trades                 int64
}

type row = projections.Row[candle]

// Of two equal prices the first is kept, precision included. So a candle does not depend on how the entries are cut into
// batches.
var table = &projections.Table[candle]{
	Name: "candles", Journal: "trading",
	Columns: []c.Column[row]{
		c.Text("symbol", func(r *row) *string { return &r.Value.symbol }).Key(),
		c.Text("price", func(r *row) *Price { return &r.Value.price }).Key(),
		c.Small("seconds", func(r *row) *int { return (*int)(&r.Value.seconds) }).Key(),
		c.Time("start", func(r *row) *scalar.Time { return &r.Value.start }).Key(),
		c.Decimal("open", func(r *row) *fixed.Decimal { return &r.Value.open }).Fixed(),
		c.Decimal("high", func(r *row) *fixed.Decimal { return &r.Value.high }).Merged("CASE WHEN excluded.high > t.high THEN excluded.high ELSE t.high END"),
		c.Decimal("low", func(r *row) *fixed.Decimal { return &r.Value.low }).Merged("CASE WHEN excluded.low < t.low THEN excluded.low ELSE t.low END"),
		c.Decimal("close", func(r *row) *fixed.Decimal { return &r.Value.close }),
		c.Number("volume", func(r *row) string { return r.Value.volume.String() }).Merged("t.volume + excluded.volume"),
		c.Number("turnover", func(r *row) string { return r.Value.turnover.String() }).Merged("t.turnover + excluded.turnover"),
		c.Int("trades", func(r *row) *int64 { return &r.Value.trades }).Merged("t.trades + excluded.trades"),
	},
}

// project adds the contributions of the entries to the candles.
func project(entries []record.Entry, batch *projections.Batch) {
	var minutes changes
	for _, e := range entries {
		start := market.OneMinute.Start(e.Record.Time)
		for _, event := range e.Record.Events {
			switch event := event.(type) {
			case *trading.TradeExecuted:
				minutes.trade(start, event)
			case *trading.IndexUpdated:
				minutes.add(&candle{key: key{event.Symbol, Mark, market.OneMinute, start}}, event.MarkPrice)
				minutes.add(&candle{key: key{event.Symbol, Index, market.OneMinute, start}}, event.IndexPrice)
			}
		}
	}
	var all []row
	shorter := minutes.Rows()
	for _, interval := range market.Intervals() {
		shorter = longer(shorter, interval)
		all = append(all, shorter...)
	}
	table.Upsert(batch, all)
}

// changes holds the candles of one interval to which some entries contribute. The candles of a symbol and price are
// ordered by time.
type changes struct {
	projections.Latest[key, row]
}

// trade adds a trade, unless it does not move the last price.
func (l *changes) trade(start scalar.Time, t *trading.TradeExecuted) {
	if !t.MovesLastPrice() {
		return
	}
	added := candle{key: key{t.Symbol, Trade, market.OneMinute, start}, trades: 1}
	added.volume.add(t.Amount)
	added.turnover.add(t.Notional.Decimal())
	l.add(&added, t.Price)
}

// add adds a candle with a single price.
func (l *changes) add(one *candle, price fixed.Decimal) {
	if price.Sign() <= 0 {
		return // no price
	}
	one.open, one.high, one.low, one.close = price, price, price, price
	l.join(one)
}

// join merges a candle into the one with the same key. The candle must be later than everything already merged.
func (l *changes) join(later *candle) {
	r, known := l.Slot(later.key)
	if !known {
		r.Value.key = later.key
		r.Value.open, r.Value.high, r.Value.low = later.open, later.high, later.low
	}
	of := &r.Value
	if later.high.Cmp(of.high) > 0 {
		of.high = later.high
	}
	if later.low.Cmp(of.low) < 0 {
		of.low = later.low
	}
	of.close = later.close
	of.volume.plus(&later.volume)
	of.turnover.plus(&later.turnover)
	of.trades += later.trades
}

// longer merges candles into candles of a longer interval.
func longer(shorter []row, interval market.Interval) []row {
	if len(shorter) == 0 || shorter[0].Value.seconds == interval {
		return shorter
	}
	var out changes
	for i := range shorter {
		later := shorter[i].Value
		later.seconds, later.start = interval, interval.Start(later.start)
		out.join(&later)
	}
	return out.Rows()
}

// sum is an exact sum of decimals. It may exceed the range of a decimal. Its scale is the largest scale of the terms.
type sum struct {
	coef  big.Int
	scale uint8
}

func (s *sum) add(d fixed.Decimal) {
	var term sum
	term.coef.SetInt64(d.Coef)
	term.scale = d.Scale
	s.plus(&term)
}

// plus adds another sum, which is not changed.
func (s *sum) plus(o *sum) {
	if o.scale > s.scale {
		s.coef.Mul(&s.coef, big.NewInt(fixed.Pow10(int(o.scale-s.scale))))
		s.scale = o.scale
	}
	if o.scale == s.scale {
		s.coef.Add(&s.coef, &o.coef)
		return
	}
	var term big.Int
	s.coef.Add(&s.coef, term.Mul(&o.coef, big.NewInt(fixed.Pow10(int(s.scale-o.scale)))))
}

// String returns the coefficient with an exponent. Postgres reads it as a numeric with the same decimals.
func (s *sum) String() string { return s.coef.String() + "e-" + strconv.Itoa(int(s.scale)) }
