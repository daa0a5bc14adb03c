package ledger

import (
	"context"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/customers"
)

// BalancesOf returns the balances of a customer, ordered by currency.
func BalancesOf(ctx context.Context, db projections.DB, s projections.Scope) ([]Balance, int64, error) {
	l := balances.In(s)
	l.Order = "currency"
	return l.All(ctx, db)
}

// BalancesAsOf is BalancesOf as of a sequence. born is the sequence of the record that registered the customer. Errors are
// those of projections.ReadAsOf.
func BalancesAsOf(ctx context.Context, db projections.DB, customer string, sequence int64) (found []Balance, born int64, err error) {
	l := projections.List[Balance]{Table: balances, Order: "currency"}
	balanceHistory.AsOf(&l, sequence, nil)
	l.Where.AndText("customer_code", customer)
	err = projections.ReadAsOf(ctx, db, balances.Journal, sequence, customers.Born(&born, customer), l.Statement(&found))
	return found, born, err
}

// PositionsAsOf returns the open positions of a customer as of a sequence, in the order of listing of their instruments.
// symbol limits them to an instrument unless it is empty. born is the sequence of the record that registered the customer.
// Errors are those of projections.ReadAsOf.
func PositionsAsOf(ctx context.Context, db projections.DB, customer, symbol string, sequence int64) (found []Position, born int64, err error) {
	l := projections.List[Position]{Table: positions,
		Order: "(SELECT i.listed_sequence FROM instruments i WHERE i.symbol = positions.symbol), symbol"}
	positionHistory.AsOf(&l, sequence, nil)
	l.Where.AndText("customer_code", customer)
	l.Where.AndText("symbol", symbol)
	l.Where.And("amount <> 0")
	err = projections.ReadAsOf(ctx, db, positions.Journal, sequence, customers.Born(&born, customer), l.Statement(&found))
	return found, born, err
}
