// Package tickers reads the figures of tickers, what was traded since a minute began, out of the candles of hours and
// minutes. It keeps no rows of its own.
package tickers

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

//go:embed since.sql
var since string

// Figures are what was traded of an instrument since a time. Deleveraging moves no prices and is left out.
type Figures struct {
	Symbol   string
	Open     fixed.Decimal // price of the first trade
	High     fixed.Decimal
	Low      fixed.Decimal
	Close    fixed.Decimal   // price of the last trade
	Volume   decimal.Decimal // contracts, at step precision; it may have more digits than a fixed.Decimal
	Turnover decimal.Decimal // notional
}

// VolumeText returns the volume with all decimals of the step.
func (f *Figures) VolumeText() string { return f.Volume.StringFixed(-f.Volume.Exponent()) }

// DayBefore returns when the minute began in which a time lay 24 hours ago: from there on the figures of the day at the
// time are counted.
func DayBefore(t scalar.Time) scalar.Time { return market.OneMinute.Start(t - scalar.Day) }

// Since returns the figures of every instrument that traded since a minute began, and the sequence that they are as of.
func Since(ctx context.Context, db projections.DB, minute scalar.Time) (figures []Figures, asOf int64, err error) {
	hour := minute + (scalar.Hour-minute%scalar.Hour)%scalar.Hour
	asOf, err = projections.Read(ctx, db, "trading", projections.Statement{SQL: since,
		Args: []any{c.Timestamp(minute), c.Timestamp(hour)},
		Collect: func(rows pgx.Rows) (err error) {
			figures, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Figures, err error) {
				return f, row.Scan(&f.Symbol, c.IntoDecimal(&f.Open), c.IntoDecimal(&f.High), c.IntoDecimal(&f.Low),
					c.IntoDecimal(&f.Close), &f.Volume, &f.Turnover)
			})
			return err
		}})
	return figures, asOf, err
}
