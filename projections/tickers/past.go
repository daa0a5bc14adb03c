package tickers

import (
	"context"
	_ "embed"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

//go:embed until.sql
var until string

// AsOf returns the figures of the day before a record as of that record, which has the given sequence and time. It returns
// projections.ErrAhead if the rows have not reached the record.
//
// Times never decrease along the sequence. So the candles of earlier minutes have no later trade. The trades in the minute of the
// record are added up from their rows, by the database, because there may be very many.
func AsOf(ctx context.Context, db projections.DB, sequence int64, at scalar.Time) (figures []Figures, err error) {
	minute, end := DayBefore(at), market.OneMinute.Start(at)
	hour, last := minute+(scalar.Hour-minute%scalar.Hour)%scalar.Hour, end-end%scalar.Hour
	before, err := projections.MomentOf(ctx, db, "trading", end-1)
	if err != nil {
		return nil, err
	}
	asOf, err := projections.Read(ctx, db, "trading", projections.Statement{SQL: until,
		Args:    []any{c.Timestamp(minute), c.Timestamp(hour), c.Timestamp(last), c.Timestamp(end), sequence, before.Sequence + 1},
		Collect: func(rows pgx.Rows) error { return collect(rows, &figures) }})
	switch {
	case err != nil:
		return nil, err
	case asOf < sequence:
		return nil, projections.ErrAhead
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
