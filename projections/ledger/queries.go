package ledger

import (
	"context"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Filter limits a list. Empty fields have no effect.
type Filter struct {
	Broker       string // limits the list to the rows that the caller may see; "" for operators
	CustomerCode string
	Symbol       string
	OrderCode    scalar.ID
	Currency     string
	Types        []ledger.Type
	Statuses     []ledger.Status
	projections.Span
}

// Transactions returns a page of customers' transactions. A withdrawal is listed at the position where it was requested.
func Transactions(ctx context.Context, db projections.DB, f Filter, p projections.Page) (projections.Paged[Transaction], error) {
	l := projections.List[Transaction]{Table: transactions, EachBroker: f.Broker == "" && f.CustomerCode == ""}
	l.Where.AndText("broker", f.Broker)
	l.Where.AndText("customer_code", f.CustomerCode)
	l.Where.AndText("symbol", f.Symbol)
	if !f.OrderCode.IsZero() {
		// The transactions of an order lie between the record that created it and the one that last changed it.
		l.Where.And("order_code = ?", c.UUID(f.OrderCode))
		l.Where.And("sequence >= (SELECT o.created_sequence FROM orders o WHERE o.code = ?)", c.UUID(f.OrderCode))
		l.Where.And("sequence <= (SELECT o.sequence FROM orders o WHERE o.code = ?)", c.UUID(f.OrderCode))
	}
	l.Where.AndText("currency", f.Currency)
	l.Where.AndAnyOf("type", texts(f.Types))
	if len(f.Types) > 0 && !slices.ContainsFunc(f.Types, func(t ledger.Type) bool { return t != ledger.Deposit && t != ledger.Withdrawal }) {
		l.Where.And("reference_id IS NOT NULL") // these are few and have a separate index
	}
	l.Where.AndAnyOf("status", texts(f.Statuses))
	f.In(&l.Where, "trading", "sequence")
	return l.Page(ctx, db, p)
}

func texts[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// Balances returns the table of customers' balances.
func Balances() *projections.Table[Balance] { return balances }

// VenueBalances returns the table of the balances of the venue's own accounts.
func VenueBalances() *projections.Table[Balance] { return venueBalances }

// Positions returns the table of positions.
func Positions() *projections.Table[Position] { return positions }
