package trading

import (
	"context"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/streams/past"
)

// pasts holds the sources of answers about the past.
type pasts struct {
	decisions past.Decisions
	states    *asof.States
	roots     asof.Roots
}

// AsOf returns the source of answers as of past records of the trading journal.
func (h *Handler) AsOf() asof.Source {
	return asof.Source{Rows: h.rows, Log: h.venue, Roots: h.past.roots, Clock: h.clock, States: h.past.states, Failed: h.explained().Failed}
}

// viewThen is viewAt, or as of a past record if q is not nil. Answers as of past records never use the state of the node's own
// fold.
func (h *Handler) viewThen(c echo.Context, q *asof.Question, look func(s *domain.State, sequence int64) error) error {
	if q == nil {
		return h.viewAt(c, look)
	}
	return q.AnswerState(c, h.AsOf(), func(s decide.State, sequence int64) error { return look(s.(*domain.State), sequence) })
}

// unknownThen returns the error for an object that a state lacks and today's has: if q is not nil, it did not exist yet.
func unknownThen(q *asof.Question, unknown error, detail string) error {
	if q != nil {
		return asof.NotYet(detail)
	}
	return unknown
}

// unregistered is unknownThen for a customer.
func unregistered(q *asof.Question) error {
	return unknownThen(q, unknownCustomer(), "The customer was not registered yet.")
}

// openOrdersAsOf responds with the orders of the filter's customer, or of all customers if it names none, that were live as of a past record.
func (h *Handler) openOrdersAsOf(c echo.Context, q *asof.Question, f orders.Filter) error {
	if f.CustomerCode == "" {
		return h.allOrdersAsOf(c, q, f)
	}
	var found []orders.Order
	var born int64
	err := q.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		found, born, err = orders.OpenAsOf(ctx, db, f, sequence)
		return bornBy(err, born, sequence)
	})
	if err != nil {
		return err
	}
	out := make(wire.Orders, 0, len(found))
	for i := range found {
		out = append(out, showOrder(&found[i]))
	}
	return rest.AnswerWith(c, http.StatusOK, out)
}

// allOrdersAsOf responds with the orders of all customers of the filter that were live as of a past record. No index finds these
// among the versions of all orders, so they come from the whole state.
func (h *Handler) allOrdersAsOf(c echo.Context, q *asof.Question, f orders.Filter) error {
	var found wire.Orders
	var codes []scalar.ID
	var at int64
	err := h.viewThen(c, q, func(s *domain.State, sequence int64) error {
		at = sequence
		for index := range s.Registered(f.Broker) {
			s.EachOpenOrder(s.CustomerAt(f.Broker, index).Code, func(o *order.Order, changed int64) {
				if (f.Symbol == "" || f.Symbol == o.Symbol) && (len(f.Statuses) == 0 || slices.Contains(f.Statuses, o.Status)) {
					found, codes = append(found, wire.NewOrder(o, changed)), append(codes, o.Code)
				}
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	out := make(wire.Orders, 0, len(found))
	err = h.AsOf().Read(c.Request().Context(), at, func(ctx context.Context, db projections.DB, sequence int64) error {
		arrivals, err := orders.Arrivals(ctx, db, codes, sequence)
		for _, i := range arrivals {
			out = append(out, found[i])
		}
		return err
	})
	if err != nil {
		return err
	}
	return rest.AnswerWith(c, http.StatusOK, out)
}

// bornBy returns the error of a read of a customer's rows, or the error for a customer who was registered later.
func bornBy(err error, born, sequence int64) error {
	return asof.BornBy(err, born, sequence, "The customer was not registered yet.")
}

// orderAsOf responds with the version of an order as of a past record.
func (h *Handler) orderAsOf(c echo.Context, q *asof.Question, named oneOrder, s orders.Scope) error {
	var o orders.Order
	err := q.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		var born int64
		if named.reference != "" {
			o, born, err = orders.ByReferenceAsOf(ctx, db, s, named.reference, sequence)
		} else {
			o, born, err = orders.ByCodeAsOf(ctx, db, s, named.code, sequence)
		}
		switch {
		case err != nil:
			return err
		case born < 0:
			return asof.Unknown(unknownOrder())
		case born > sequence:
			return asof.NotYet("The order was not placed yet.")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, showOrder(&o))
}

// positionsAsOf responds with the positions that a customer held as of a past record.
func (h *Handler) positionsAsOf(c echo.Context, q *asof.Question, customer, symbol string) error {
	var found []ledger.Position
	err := q.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		var born int64
		found, born, err = ledger.PositionsAsOf(ctx, db, customer, symbol, sequence)
		return bornBy(err, born, sequence)
	})
	if err != nil {
		return err
	}
	out := make([]wire.PositionHeld, len(found))
	for i, p := range found {
		out[i] = wire.PositionHeld{CustomerCode: p.CustomerCode, Symbol: p.Symbol, Amount: p.Amount, EntryPrice: p.EntryPrice, Cost: p.Cost,
			Updated: p.Updated, Sequence: p.Sequence}
	}
	return c.JSON(http.StatusOK, out)
}

// listBalances lists the balances of a customer, now or as of a past record.
func (h *Handler) listBalances(c echo.Context) error {
	query := rest.Query(c)
	asOf := asof.Read(query)
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	var found []ledger.Balance
	if asOf != nil {
		err = asOf.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
			var born int64
			found, born, err = ledger.BalancesAsOf(ctx, db, of.customer, sequence)
			return bornBy(err, born, sequence)
		})
	} else {
		err = h.rows.Read(c, func(ctx context.Context, db projections.DB) (at int64, err error) {
			found, at, err = ledger.BalancesOf(ctx, db, projections.Scope{CustomerCode: of.customer})
			return at, err
		})
	}
	if err != nil {
		return err
	}
	out := make([]wire.Balance, len(found))
	for i, b := range found {
		out[i] = wire.Balance{CustomerCode: b.CustomerCode, Currency: b.Currency, Balance: b.Balance, Updated: b.Updated, Sequence: b.Sequence}
	}
	return c.JSON(http.StatusOK, out)
}
