package orders

import (
	"context"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Scope limits a query to the orders that the caller may see.
type Scope = projections.Scope

// Filter narrows a list. Empty fields narrow nothing.
type Filter struct {
	Scope
	Symbol           string
	Code             scalar.ID
	Statuses         []order.Status
	projections.Span // of the records that made the orders
}

// Open returns the live orders, in the order in which they were made. No matter its filter it holds no others.
func Open(ctx context.Context, db projections.DB, f Filter) ([]Order, int64, error) {
	l := list(f)
	live(&l, f)
	l.Order = table.OldestFirst()
	return l.All(ctx, db)
}

// History returns a page of all orders, live ones included unless the filter names statuses.
func History(ctx context.Context, db projections.DB, f Filter, p projections.Page) (projections.Paged[Order], error) {
	l := list(f)
	return l.Page(ctx, db, p)
}

// ByCode returns the order with the code, if it is in the scope.
func ByCode(ctx context.Context, db projections.DB, s Scope, code scalar.ID) (o Order, found bool, asOf int64, err error) {
	l := list(Filter{Scope: s})
	l.Where.And("code = ?", c.UUID(code))
	return l.One(ctx, db)
}

// ByReference returns the latest of a customer's orders with the reference_id.
func ByReference(ctx context.Context, db projections.DB, s Scope, reference string) (o Order, found bool, asOf int64, err error) {
	l := named(s, reference)
	l.Order = table.NewestFirst()
	return l.One(ctx, db)
}

// named returns the list of a customer's orders with the reference_id.
func named(s Scope, reference string) projections.List[Order] {
	l := list(Filter{Scope: s})
	if code, err := scalar.ParseID(reference); err != nil {
		l.Where.And("reference_id = ? AND reference_id <> code::text", reference)
	} else { // it may also be the code of an unnamed order
		l.Where.And(`code = ANY (ARRAY(SELECT n.code FROM orders n WHERE n.customer_code = ? AND n.reference_id = ?
				AND n.reference_id <> n.code::text) || ?::uuid)`,
			s.CustomerCode, reference, c.UUID(code))
		l.Where.And("reference_id = ?", reference)
	}
	return l
}

func list(f Filter) projections.List[Order] {
	l := table.In(f.Scope)
	l.Where.AndText("symbol", f.Symbol)
	if !f.Code.IsZero() {
		l.Where.And("code = ?", c.UUID(f.Code))
	}
	l.During(f.Span)
	projections.AndAnyOf(&l.Where, "status", f.Statuses)
	if len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, func(s order.Status) bool { return !s.Live() }) {
		live(&l, f)
	}
	return l
}

// live restricts a list to live orders. There are few of them, and they have a separate index by broker and customer.
func live(l *projections.List[Order], f Filter) {
	l.Where.And("live")
	if f.Broker == "" && f.CustomerCode != "" {
		l.Where.And("broker = (SELECT n.broker FROM customers n WHERE n.customer_code = ?)", f.CustomerCode)
	}
}
