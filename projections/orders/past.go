package orders

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/projections/customers"
)

// OpenAsOf is Open as of a sequence, for the customer that the filter must name. born is the sequence of the record that
// registered the customer. Errors are those of projections.ReadAsOf.
func OpenAsOf(ctx context.Context, db projections.DB, f Filter, sequence int64) (found []Order, born int64, err error) {
	l := projections.List[Order]{Table: table, Order: table.OldestFirst()}
	history.AsOf(&l, sequence, func(and func(string, ...any)) {
		and("h.live")
		and(shifted("h.since", "h.until")+" @> (((hashtextextended(?, 0) & 4194303) << 40) + ?::bigint)", f.CustomerCode, sequence)
	})
	l.Where.AndText("customer_code", f.CustomerCode)
	l.Where.AndText("broker", f.Broker)
	l.Where.AndText("symbol", f.Symbol)
	projections.AndAnyOf(&l.Where, "status", f.Statuses)
	live(&l, f)
	err = projections.ReadAsOf(ctx, db, table.Journal, sequence, customers.Born(&born, f.CustomerCode), l.Statement(&found))
	return found, born, err
}

// Arrivals returns indexes in a list of orders, in the order in which the orders were made. It returns projections.ErrAhead if the
// rows have not reached the sequence.
func Arrivals(ctx context.Context, db projections.DB, codes []scalar.ID, sequence int64) (arrivals []int, err error) {
	ids := make([]pgtype.UUID, len(codes))
	for i, code := range codes {
		ids[i] = c.UUID(code)
	}
	asOf, err := projections.Read(ctx, db, table.Journal, projections.Statement{SQL: `SELECT n.place - 1 FROM unnest($1::uuid[]) WITH ORDINALITY n (code, place)
		JOIN orders o ON o.code = n.code ORDER BY o.created_sequence, o.created_ordinal`, Args: []any{ids},
		Collect: func(rows pgx.Rows) (err error) {
			arrivals, err = pgx.CollectRows(rows, pgx.RowTo[int])
			return err
		}})
	switch {
	case err != nil:
		return nil, err
	case asOf < sequence:
		return nil, projections.ErrAhead
	case len(arrivals) != len(codes):
		return nil, fmt.Errorf("orders: %d of %d orders have a row", len(arrivals), len(codes))
	}
	return arrivals, nil
}

// shifted is the indexed expression of 00041_history.sql.
func shifted(since, until string) string {
	const base = "((hashtextextended(h.customer_code, 0) & 4194303) << 40) + "
	return "int8range((" + base + since + "), (" + base + until + "))"
}

// ByCodeAsOf is ByCode as of a sequence. born is the sequence of the record that made the order, or -1 if no record did.
// Errors are those of projections.ReadAsOf.
func ByCodeAsOf(ctx context.Context, db projections.DB, s Scope, code scalar.ID, sequence int64) (o Order, born int64, err error) {
	var found []Order
	l := projections.List[Order]{Table: table, Limit: 1}
	history.AsOf(&l, sequence, nil)
	l.Where.AndText("broker", s.Broker)
	l.Where.AndText("customer_code", s.CustomerCode)
	l.Where.And("code = ?", c.UUID(code))
	err = projections.ReadAsOf(ctx, db, table.Journal, sequence, l.Statement(&found), projections.Number(&born,
		"SELECT created_sequence FROM orders WHERE code = $1 AND customer_code = $2", c.UUID(code), s.CustomerCode))
	if err == nil && len(found) > 0 {
		o = found[0]
	}
	return o, born, err
}

// ByReferenceAsOf is ByReference as of a sequence: the latest order with the reference among those made up to the sequence. born is the
// sequence of the record that made it, or of the one that made the first such order if it came later, or -1 if there is
// none.
func ByReferenceAsOf(ctx context.Context, db projections.DB, s Scope, reference string, sequence int64) (o Order, born int64, err error) {
	var latest, earliest []Order
	l := named(s, reference)
	l.Limit, l.Order = 1, table.OldestFirst()
	firstOf := l.Statement(&earliest)
	l = named(s, reference)
	l.Where.And("created_sequence <= ?", sequence)
	l.Limit, l.Order = 1, table.NewestFirst()
	if err := projections.ReadAsOf(ctx, db, table.Journal, sequence, firstOf, l.Statement(&latest)); err != nil {
		return o, -1, err
	}
	switch {
	case len(latest) > 0:
		return ByCodeAsOf(ctx, db, s, latest[0].Code, sequence)
	case len(earliest) > 0:
		_, born, err = ByCodeAsOf(ctx, db, s, earliest[0].Code, sequence)
		return o, born, err
	}
	return o, -1, nil
}
