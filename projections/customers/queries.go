package customers

import (
	"context"

	"github.com/perpetua-exchange/perpetua/projections"
)

// Page returns a page of a broker's customers, or of all customers if broker is "".
func Page(ctx context.Context, db projections.DB, broker string, p projections.Page) (projections.Paged[Customer], error) {
	l := projections.List[Customer]{Table: registry}
	l.Where.AndText("broker", broker)
	return l.Page(ctx, db, p)
}

// PageAsOf is Page as of a sequence. Accounts are never changed or removed. It returns projections.ErrAhead if the rows have not
// reached the sequence.
func PageAsOf(ctx context.Context, db projections.DB, broker string, p projections.Page, sequence int64) (projections.Paged[Customer], error) {
	l := projections.List[Customer]{Table: registry}
	l.Where.AndText("broker", broker)
	l.Where.And("sequence <= ?", sequence)
	found, err := l.Page(ctx, db, p)
	if err == nil && found.AsOf < sequence {
		err = projections.ErrAhead
	}
	return found, err
}

// Registry returns the table of accounts.
func Registry() *projections.Table[Customer] { return registry }

// FeeProfiles returns the table of customers' own fees. A customer without a row pays the instrument's fees.
func FeeProfiles() *projections.Table[Fees] { return feeProfiles }

// Leverages returns the table of customers' leverages.
func Leverages() *projections.Table[Leverage] { return leverages }

// Born returns a statement that reads the sequence of the record that registered a customer, or -1 if none did.
func Born(into *int64, code string) projections.Statement {
	return projections.Number(into, "SELECT sequence FROM customers WHERE customer_code = $1", code)
}
