// Package customers is the read model of customer accounts: the registry, and what was set for an account beside the
// defaults: fees, margins and leverages.
package customers

import (
	_ "embed"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

//go:embed insert_customers.sql
var insertCustomers string

//go:embed upsert_fee_profiles.sql
var upsertFeeProfiles string

//go:embed upsert_margin_profiles.sql
var upsertMarginProfiles string

//go:embed upsert_leverages.sql
var upsertLeverages string

// Projection keeps the tables customers, fee_profiles, margin_profiles and leverages.
type Projection struct{}

// Name returns "customers".
func (Projection) Name() string { return "customers" }

// Tables returns the tables of customers and their settings.
func (Projection) Tables() []string {
	return []string{"customers", "fee_profiles", "margin_profiles", "leverages"}
}

// Customer is a registered account.
type Customer struct {
	CustomerCode string
	Broker       string
	Name         string
	Created      scalar.Time
	Sequence     int64
}

// Fees are what a customer pays on an instrument where it isn't the default, in basis points.
type Fees struct {
	CustomerCode string
	Broker       string
	Symbol       string
	MakerFee     fixed.Decimal
	TakerFee     fixed.Decimal
	Sequence     int64
}

// Margins are an account's default margins in percent, where they were set. Leverage is 0 where the percentages were
// given themselves.
type Margins struct {
	CustomerCode      string
	Broker            string
	Leverage          int
	InitialMargin     fixed.Decimal
	MaintenanceMargin fixed.Decimal
	Sequence          int64
}

// Leverage is a customer's override for an instrument.
type Leverage struct {
	CustomerCode string
	Broker       string
	Symbol       string
	Leverage     int
	Sequence     int64
}

// own names what a customer has of an instrument.
type own struct{ customer, symbol string }

// Project queues the accounts that the entries open, and the last of what they set.
func (Projection) Project(entries []journal.Entry, batch *projections.Batch) {
	var opened []projections.Row[Customer]
	var fees projections.Latest[own, Fees]
	var margins projections.Latest[string, Margins]
	var leverages projections.Latest[own, Leverage]
	for _, entry := range entries {
		at := entry.Record.Sequence
		for i, event := range entry.Record.Events {
			switch e := event.(type) {
			case *trading.CustomerRegistered:
				opened = append(opened, projections.Row[Customer]{Key: projections.Key{Sequence: at, Ordinal: int64(i)},
					Value: Customer{e.CustomerCode, e.Broker, e.Name, e.Created, at}})
			case *trading.FeeProfileSet:
				fees.Put(own{e.CustomerCode, e.Symbol}, Fees{e.CustomerCode, e.Broker, e.Symbol, e.MakerFee, e.TakerFee, at})
			case *trading.MarginProfileSet:
				margins.Put(e.CustomerCode, Margins{e.CustomerCode, e.Broker, e.Leverage, e.InitialMargin, e.MaintenanceMargin, at})
			case *trading.LeverageSet:
				leverages.Put(own{e.CustomerCode, e.Symbol}, Leverage{e.CustomerCode, e.Broker, e.Symbol, e.Leverage, at})
			}
		}
	}
	if len(opened) > 0 {
		batch.Queue(insertCustomers, c.Args(opened,
			c.Text(func(r *projections.Row[Customer]) string { return r.Value.CustomerCode }),
			c.Text(func(r *projections.Row[Customer]) string { return r.Value.Broker }),
			c.Text(func(r *projections.Row[Customer]) string { return r.Value.Name }),
			c.Time(func(r *projections.Row[Customer]) scalar.Time { return r.Value.Created }),
			c.Int(func(r *projections.Row[Customer]) int64 { return r.Key.Sequence }),
			c.Small(func(r *projections.Row[Customer]) int64 { return r.Key.Ordinal }))...)
	}
	if rows := fees.Rows(); len(rows) > 0 {
		batch.Queue(upsertFeeProfiles, c.Args(rows,
			c.Text(func(r *Fees) string { return r.CustomerCode }),
			c.Text(func(r *Fees) string { return r.Symbol }),
			c.Text(func(r *Fees) string { return r.Broker }),
			c.Decimal(func(r *Fees) fixed.Decimal { return r.MakerFee }),
			c.Decimal(func(r *Fees) fixed.Decimal { return r.TakerFee }),
			c.Int(func(r *Fees) int64 { return r.Sequence }))...)
	}
	if rows := margins.Rows(); len(rows) > 0 {
		batch.Queue(upsertMarginProfiles, c.Args(rows,
			c.Text(func(r *Margins) string { return r.CustomerCode }),
			c.Text(func(r *Margins) string { return r.Broker }),
			c.Small(func(r *Margins) int { return r.Leverage }),
			c.Decimal(func(r *Margins) fixed.Decimal { return r.InitialMargin }),
			c.Decimal(func(r *Margins) fixed.Decimal { return r.MaintenanceMargin }),
			c.Int(func(r *Margins) int64 { return r.Sequence }))...)
	}
	if rows := leverages.Rows(); len(rows) > 0 {
		batch.Queue(upsertLeverages, c.Args(rows,
			c.Text(func(r *Leverage) string { return r.CustomerCode }),
			c.Text(func(r *Leverage) string { return r.Symbol }),
			c.Text(func(r *Leverage) string { return r.Broker }),
			c.Small(func(r *Leverage) int { return r.Leverage }),
			c.Int(func(r *Leverage) int64 { return r.Sequence }))...)
	}
}
