package trading

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/orders"
)

// asOf returns the source of answers as of past records.
func (h *Handler) asOf() asof.Source {
	return asof.Source{Rows: h.rows, Log: h.venue, Roots: h.roots, Now: h.now}
}

// openOrdersAsOf responds with the orders of a customer that were live as of a past record.
func (h *Handler) openOrdersAsOf(c echo.Context, q *asof.Question, f orders.Filter) error {
	if f.CustomerCode == "" {
		return problem.Invalid(validation.FieldError{Path: validation.At(asof.Parameter), In: validation.InQuery, Code: validation.InvalidValue,
			Message: "as_of needs a customer_code"})
	}
	var found []orders.Order
	var born int64
	err := q.Answer(c, h.asOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
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

// bornBy returns the error of a read of a customer's rows, or the error for a customer who was registered later.
func bornBy(err error, born, sequence int64) error {
	if err == nil && (born < 0 || born > sequence) {
		return asof.NotYet("The customer was not registered yet.")
	}
	return err
}

// orderAsOf responds with the version of an order as of a past record.
func (h *Handler) orderAsOf(c echo.Context, q *asof.Question, named oneOrder, s orders.Scope) error {
	var o orders.Order
	err := q.Answer(c, h.asOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
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
			return unknownOrder()
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
	err := q.Answer(c, h.asOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
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
		err = asOf.Answer(c, h.asOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
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
