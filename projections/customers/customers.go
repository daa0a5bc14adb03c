// Package customers is the read model of customer accounts: the registry, and the fees, margins and leverages that were
// set for individual accounts.
package customers

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection maintains the tables customers, fee_profiles, margin_profiles and leverages.
var Projection = projections.NewProjection("customers", project,
	registry.Name, feeProfiles.Name, marginProfiles.Name, leverages.Name)

// Customer is a registered account.
type Customer struct {
	CustomerCode string
	Broker       string
	Name         string
	Created      scalar.Time
	Sequence     int64
}

// Fees are a customer's fees on an instrument in basis points, if they differ from the instrument's.
type Fees struct {
	CustomerCode string
	Broker       string
	Symbol       string
	MakerFee     fixed.Decimal
	TakerFee     fixed.Decimal
	Sequence     int64
}

// Margins are an account's own default margins in percent. Leverage is 0 if the percentages were set directly.
type Margins struct {
	CustomerCode      string
	Broker            string
	Leverage          int
	InitialMargin     fixed.Decimal
	MaintenanceMargin fixed.Decimal
	Sequence          int64
}

// Leverage is a customer's leverage on an instrument, or 0 after it was reset.
type Leverage struct {
	CustomerCode string
	Broker       string
	Symbol       string
	Leverage     int
	Sequence     int64
}

type (
	customerRow = projections.Row[Customer] // the key is that of the registration
	feesRow     = projections.Row[Fees]
	marginsRow  = projections.Row[Margins]
	leverageRow = projections.Row[Leverage]
)

var registry = &projections.Table[Customer]{
	Name: "customers", Journal: "trading", Keys: []string{"sequence", "ordinal"},
	Columns: []c.Column[customerRow]{
		c.Text("customer_code", func(r *customerRow) *string { return &r.Value.CustomerCode }),
		c.Text("broker", func(r *customerRow) *string { return &r.Value.Broker }),
		c.Text("name", func(r *customerRow) *string { return &r.Value.Name }),
		c.Time("created", func(r *customerRow) *scalar.Time { return &r.Value.Created }),
		c.Int("sequence", func(r *customerRow) *int64 { return &r.Key.Sequence }),
		c.Small("ordinal", func(r *customerRow) *int64 { return &r.Key.Ordinal }),
	},
	Loaded: func(r *customerRow) error { r.Value.Sequence = r.Key.Sequence; return nil },
}

var feeProfiles = &projections.Table[Fees]{
	Name: "fee_profiles", Journal: "trading",
	Columns: []c.Column[feesRow]{
		c.Text("customer_code", func(r *feesRow) *string { return &r.Value.CustomerCode }).Key(),
		c.Text("symbol", func(r *feesRow) *string { return &r.Value.Symbol }).Key(),
		c.Text("broker", func(r *feesRow) *string { return &r.Value.Broker }).Fixed(),
		c.Decimal("maker_fee", func(r *feesRow) *fixed.Decimal { return &r.Value.MakerFee }),
		c.Decimal("taker_fee", func(r *feesRow) *fixed.Decimal { return &r.Value.TakerFee }),
		c.Int("sequence", func(r *feesRow) *int64 { return &r.Value.Sequence }),
	},
}

var marginProfiles = &projections.Table[Margins]{
	Name: "margin_profiles", Journal: "trading",
	Columns: []c.Column[marginsRow]{
		c.Text("customer_code", func(r *marginsRow) *string { return &r.Value.CustomerCode }).Key(),
		c.Text("broker", func(r *marginsRow) *string { return &r.Value.Broker }).Fixed(),
		c.Small("leverage", func(r *marginsRow) *int { return &r.Value.Leverage }),
		c.Decimal("initial_margin", func(r *marginsRow) *fixed.Decimal { return &r.Value.InitialMargin }),
		c.Decimal("maintenance_margin", func(r *marginsRow) *fixed.Decimal { return &r.Value.MaintenanceMargin }),
		c.Int("sequence", func(r *marginsRow) *int64 { return &r.Value.Sequence }),
	},
}

var leverages = &projections.Table[Leverage]{
	Name: "leverages", Journal: "trading",
	Columns: []c.Column[leverageRow]{
		c.Text("customer_code", func(r *leverageRow) *string { return &r.Value.CustomerCode }).Key(),
		c.Text("symbol", func(r *leverageRow) *string { return &r.Value.Symbol }).Key(),
		c.Text("broker", func(r *leverageRow) *string { return &r.Value.Broker }).Fixed(),
		c.Small("leverage", func(r *leverageRow) *int { return &r.Value.Leverage }),
		c.Int("sequence", func(r *leverageRow) *int64 { return &r.Value.Sequence }),
	},
}

// pair identifies a customer's setting on an instrument.
type pair struct{ customer, symbol string }

// project adds the accounts that the entries register, and the last settings of each account.
func project(entries []record.Entry, batch *projections.Batch) {
	opened := registry.Copy(batch)
	var fees projections.Latest[pair, feesRow]
	var margins projections.Latest[string, marginsRow]
	var overrides projections.Latest[pair, leverageRow]
	for _, entry := range entries {
		at := entry.Record.Sequence
		for i, event := range entry.Record.Events {
			switch e := event.(type) {
			case *trading.CustomerRegistered:
				opened.Add(&customerRow{Key: projections.Key{Sequence: at, Ordinal: int64(i)},
					Value: Customer{e.CustomerCode, e.Broker, e.Name, e.Created, at}})
			case *trading.FeeProfileSet:
				fees.Put(pair{e.CustomerCode, e.Symbol}, feesRow{Value: Fees{e.CustomerCode, e.Broker, e.Symbol, e.MakerFee, e.TakerFee, at}})
			case *trading.MarginProfileSet:
				margins.Put(e.CustomerCode, marginsRow{Value: Margins{e.CustomerCode, e.Broker, e.Leverage, e.InitialMargin, e.MaintenanceMargin, at}})
			case *trading.LeverageSet:
				overrides.Put(pair{e.CustomerCode, e.Symbol}, leverageRow{Value: Leverage{e.CustomerCode, e.Broker, e.Symbol, e.Leverage, at}})
			case *trading.LeverageChanged:
				overrides.Put(pair{e.CustomerCode, e.Symbol}, leverageRow{Value: Leverage{e.CustomerCode, e.Broker, e.Symbol, e.Leverage, at}})
			}
		}
	}
	feeProfiles.Upsert(batch, fees.Rows())
	marginProfiles.Upsert(batch, margins.Rows())
	leverages.Upsert(batch, overrides.Rows())
}
