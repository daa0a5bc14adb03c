package customers

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// All returns a broker's customers, or with broker "" everybody's, in the order of their registration.
func All(ctx context.Context, db projections.DB, broker string) ([]Customer, int64, error) {
	l := registry(broker)
	l.Order = "sequence, ordinal"
	return l.All(ctx, db)
}

// Page returns a page of a broker's customers, or with broker "" of everybody's.
func Page(ctx context.Context, db projections.DB, broker string, p projections.Page) (projections.Paged[Customer], error) {
	l := registry(broker)
	return l.Page(ctx, db, p)
}

// ByCode returns a customer, if it is the broker's; broker "" stands for any.
func ByCode(ctx context.Context, db projections.DB, broker, code string) (v Customer, found bool, asOf int64, err error) {
	l := registry(broker)
	l.Where.And("customer_code = ?", code)
	return l.One(ctx, db)
}

func registry(broker string) projections.List[Customer] {
	l := projections.List[Customer]{Journal: "trading", From: "customers", Keys: []string{"sequence", "ordinal"},
		Columns: "customer_code, broker, name, created, sequence",
		Scan: func(row pgx.CollectableRow, v *Customer, key ...any) error {
			return row.Scan(append([]any{&v.CustomerCode, &v.Broker, &v.Name, c.IntoTime(&v.Created), &v.Sequence}, key...)...)
		}}
	l.Where.AndText("broker", broker)
	return l
}

// FeeProfile returns the fees that were set for a customer, by symbol. Where there is none, the instrument's apply.
func FeeProfile(ctx context.Context, db projections.DB, customer string) ([]Fees, int64, error) {
	l := projections.List[Fees]{Journal: "trading", From: "fee_profiles", Order: `symbol COLLATE "C"`,
		Columns: "customer_code, broker, symbol, maker_fee::text, taker_fee::text, sequence",
		Scan: func(row pgx.CollectableRow, v *Fees, key ...any) error {
			return row.Scan(append([]any{&v.CustomerCode, &v.Broker, &v.Symbol, c.IntoDecimal(&v.MakerFee), c.IntoDecimal(&v.TakerFee), &v.Sequence}, key...)...)
		}}
	l.Where.And("customer_code = ?", customer)
	return l.All(ctx, db)
}

// MarginProfile returns the default margins that were set for a customer, if any were.
func MarginProfile(ctx context.Context, db projections.DB, customer string) (m Margins, found bool, asOf int64, err error) {
	l := projections.List[Margins]{Journal: "trading", From: "margin_profiles",
		Columns: "customer_code, broker, leverage, initial_margin::text, maintenance_margin::text, sequence",
		Scan: func(row pgx.CollectableRow, v *Margins, key ...any) error {
			return row.Scan(append([]any{&v.CustomerCode, &v.Broker, &v.Leverage, c.IntoDecimal(&v.InitialMargin), c.IntoDecimal(&v.MaintenanceMargin), &v.Sequence}, key...)...)
		}}
	l.Where.And("customer_code = ?", customer)
	return l.One(ctx, db)
}

// Leverages returns a customer's overrides, by symbol.
func Leverages(ctx context.Context, db projections.DB, customer string) ([]Leverage, int64, error) {
	l := projections.List[Leverage]{Journal: "trading", From: "leverages", Order: `symbol COLLATE "C"`,
		Columns: "customer_code, broker, symbol, leverage, sequence",
		Scan: func(row pgx.CollectableRow, v *Leverage, key ...any) error {
			return row.Scan(append([]any{&v.CustomerCode, &v.Broker, &v.Symbol, &v.Leverage, &v.Sequence}, key...)...)
		}}
	l.Where.And("customer_code = ?", customer)
	return l.All(ctx, db)
}
