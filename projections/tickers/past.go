package tickers

import (
	"context"
	_ "embed"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/projections/trades"
)

//go:embed until.sql
var until string

// AsOf returns the figures of the day before a record as of that record, which has the given sequence and time. It returns
// projections.ErrAhead if the rows have not reached the record.
//
// Times never decrease along the sequence. So the candles of earlier minutes have no later trade. The trades in the minute of the
// record are added up from their rows.
func AsOf(ctx context.Context, db projections.DB, sequence int64, at scalar.Time) (figures []Figures, err error) {
	minute, end := DayBefore(at), market.OneMinute.Start(at)
	hour, last := minute+(scalar.Hour-minute%scalar.Hour)%scalar.Hour, end-end%scalar.Hour
	var latest []trades.Trade
	asOf, err := projections.Read(ctx, db, "trading", projections.Statement{SQL: until,
		Args:    []any{c.Timestamp(minute), c.Timestamp(hour), c.Timestamp(last), c.Timestamp(end)},
		Collect: func(rows pgx.Rows) error { return collect(rows, &figures) },
	}, trades.TakenSince(&latest, end, sequence))
	switch {
	case err != nil:
		return nil, err
	case asOf < sequence:
		return nil, projections.ErrAhead
	}
	for i := range latest {
		if t := &latest[i]; t.Type == trading.Trade || t.Type == trading.Liquidation && !t.OrderCode.IsZero() { // as TradeExecuted.MovesLastPrice
			figures = add(figures, &recentTrade{t.Sequence, t.Time, t.Symbol, t.Price, t.Amount, t.Notional})
		}
	}
	return figures, nil
}

// Of returns the figures of a symbol, or nil if it did not trade.
func Of(figures []Figures, symbol string) *Figures {
	if n := slices.IndexFunc(figures, func(f Figures) bool { return f.Symbol == symbol }); n >= 0 {
		return &figures[n]
	}
	return nil
}
