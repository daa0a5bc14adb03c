package trades

import (
	"math/big"
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// candleKey names a candle: what was traded of a symbol in so many seconds from a time on.
type candleKey struct {
	seconds int
	start   scalar.Time
	symbol  string
}

// candle is what some trades add to a candle.
type candle struct {
	candleKey
	open, high, low, close fixed.Decimal
	volume                 sum // contracts, at the most precise step that they were traded in
	turnover               sum // notional
	trades                 int64
}

// sum is an exact sum of decimals, which may become larger than any of them. It has as many decimals as the one that
// has most.
type sum struct {
	coef  big.Int
	scale uint8
}

func (s *sum) add(d fixed.Decimal) {
	var term big.Int
	term.SetInt64(d.Coef)
	if d.Scale > s.scale {
		s.coef.Mul(&s.coef, big.NewInt(fixed.Pow10(int(d.Scale-s.scale))))
		s.scale = d.Scale
	} else if d.Scale < s.scale {
		term.Mul(&term, big.NewInt(fixed.Pow10(int(s.scale-d.Scale))))
	}
	s.coef.Add(&s.coef, &term)
}

// String returns coefficient and exponent, a form that Postgres reads as the number with its decimals.
func (s *sum) String() string { return s.coef.String() + "e-" + strconv.Itoa(int(s.scale)) }

// candles are those that the trades of some entries change.
type candles struct {
	projections.Latest[candleKey, candleRow]
}

type candleRow = projections.Row[candle]

// Of two equal prices the first stays, so that a candle is the same however its trades are cut into batches.
var candleTable = &projections.Table[candle]{
	Name: "candles", Journal: "trading",
	Columns: []c.Column[candleRow]{
		c.Small("seconds", func(r *candleRow) *int { return &r.Value.seconds }).Key(),
		c.Time("start", func(r *candleRow) *scalar.Time { return &r.Value.start }).Key(),
		c.Text("symbol", func(r *candleRow) *string { return &r.Value.symbol }).Key(),
		c.Decimal("open", func(r *candleRow) *fixed.Decimal { return &r.Value.open }).Fixed(),
		c.Decimal("high", func(r *candleRow) *fixed.Decimal { return &r.Value.high }).Merged("CASE WHEN excluded.high > t.high THEN excluded.high ELSE t.high END"),
		c.Decimal("low", func(r *candleRow) *fixed.Decimal { return &r.Value.low }).Merged("CASE WHEN excluded.low < t.low THEN excluded.low ELSE t.low END"),
		c.Decimal("close", func(r *candleRow) *fixed.Decimal { return &r.Value.close }),
		c.Number("volume", func(r *candleRow) string { return r.Value.volume.String() }).Merged("t.volume + excluded.volume"),
		c.Number("turnover", func(r *candleRow) string { return r.Value.turnover.String() }).Merged("t.turnover + excluded.turnover"),
		c.Int("trades", func(r *candleRow) *int64 { return &r.Value.trades }).Merged("t.trades + excluded.trades"),
	},
}

// add adds a trade that moves the last price, and leaves the others out.
func (l *candles) add(at scalar.Time, t *trading.TradeExecuted) {
	if !t.MovesLastPrice() {
		return
	}
	for _, seconds := range [2]int{60, 3600} {
		span := scalar.Time(seconds) * scalar.Second
		r, known := l.Slot(candleKey{seconds, at - at%span, t.Symbol})
		row := &r.Value
		if !known {
			row.candleKey = candleKey{seconds, at - at%span, t.Symbol}
			row.open, row.high, row.low = t.Price, t.Price, t.Price
		}
		if t.Price.Cmp(row.high) > 0 {
			row.high = t.Price
		}
		if t.Price.Cmp(row.low) < 0 {
			row.low = t.Price
		}
		row.close = t.Price
		row.volume.add(t.Amount)
		row.turnover.add(t.Notional.Decimal())
		row.trades++
	}
}
