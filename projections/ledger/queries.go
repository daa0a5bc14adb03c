package ledger

import (
	"context"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
)

// Filter limits a list. Empty fields have no effect.
type Filter struct {
	projections.Scope
	Symbol    string
	OrderCode scalar.ID
	Currency  string
	Types     []ledger.Type
	Statuses  []ledger.Status
	projections.Span
}

// Transactions returns a page of customers' transactions. A withdrawal is listed at the position where it was requested.
func Transactions(ctx context.Context, db projections.DB, f Filter, p projections.Page) (projections.Paged[Transaction], error) {
	l := transactions.In(f.Scope)
	l.Where.AndText("symbol", f.Symbol)
	l.OfOrder(f.OrderCode)
	l.Where.AndText("currency", f.Currency)
	projections.AndAnyOf(&l.Where, "type", f.Types)
	if len(f.Types) > 0 && !slices.ContainsFunc(f.Types, func(t ledger.Type) bool { return t != ledger.Deposit && t != ledger.Withdrawal }) {
		l.Where.And("reference_id IS NOT NULL") // these are few and have a separate index
	}
	projections.AndAnyOf(&l.Where, "status", f.Statuses)
	l.During(f.Span)
	return l.Page(ctx, db, p)
}

// Balances returns the table of customers' balances.
func Balances() *projections.Table[Balance] { return balances }

// VenueBalances returns the table of the balances of the venue's own accounts.
func VenueBalances() *projections.Table[Balance] { return venueBalances }

// Positions returns the table of positions.
func Positions() *projections.Table[Position] { return positions }
