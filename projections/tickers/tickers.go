// Package tickers computes ticker statistics since the start of a minute from the candles of hours and minutes. It
// maintains no tables.
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

// Figures are an instrument's trade statistics since a time. They exclude deleveraging, which does not move prices.
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

// DayBefore returns the start of the minute that contains the time 24 hours before a time. The figures of the day count
// from there.
func DayBefore(t scalar.Time) scalar.Time { return market.OneMinute.Start(t - scalar.Day) }

// Since returns the figures of every instrument that traded since the start of a minute, and the sequence up to which
// they are complete.
func Since(ctx context.Context, db projections.DB, minute scalar.Time) (figures []Figures, asOf int64, err error) {
	hour := minute + (scalar.Hour-minute%scalar.Hour)%scalar.Hour
	asOf, err = projections.Read(ctx, db, "trading", projections.Statement{SQL: since,
		Args:    []any{c.Timestamp(minute), c.Timestamp(hour)},
		Collect: func(rows pgx.Rows) error { return collect(rows, &figures) }})
	return figures, asOf, err
}

func collect(rows pgx.Rows, into *[]Figures) (err error) {
	*into, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Figures, err error) {
		return f, row.Scan(&f.Symbol, c.IntoDecimal(&f.Open), c.IntoDecimal(&f.High), c.IntoDecimal(&f.Low),
			c.IntoDecimal(&f.Close), &f.Volume, &f.Turnover)
	})
	return err
}
