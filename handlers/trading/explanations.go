package trading

import (
	"context"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/trading/explain"
	"github.com/perpetua-exchange/perpetua/handlers/web/explanations"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/trades"
	"github.com/perpetua-exchange/perpetua/streams/past"
)

// maxLaterTrades is the maximum number of trades in the explanation of an order.
const maxLaterTrades = 100

// explainedOrder is the explanation of the record that placed or rejected an order, with the later changes of the order.
type explainedOrder struct {
	explain.Explanation
	// Now is the order after the last record that changed it.
	Now wire.Order `json:"now"`
	// Later are the first 100 trades of the order in later records, oldest first.
	Later []wire.Trade `json:"later"`
}

// explainRecord explains a record to a customer.
func (h *Handler) explainRecord(c echo.Context) error {
	of, err := h.whose(c, rest.Query(c))
	if err != nil {
		return err
	}
	sequence, ok := input.Number(rest.Param(c, "sequence"))
	if !ok {
		return unknownRecord()
	}
	x, err := h.explanation(c, of.customer, sequence)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, x)
}

// explainOrder explains the record that placed or rejected an order.
func (h *Handler) explainOrder(c echo.Context) error {
	code, wrong := orderCode(rest.RequestOf(c))
	of, err := h.whose(c, rest.Query(c))
	if err == nil {
		err = wrong
	}
	if err != nil {
		return err
	}
	scope := projections.Scope{CustomerCode: of.customer}
	var placed projections.Paged[orders.Order]
	var later projections.Paged[trades.Trade]
	err = h.rows.Find(c, h.venue, func(ctx context.Context, db projections.DB) (found bool, asOf int64, err error) {
		if placed, err = orders.History(ctx, db, orders.Filter{Scope: scope, Code: code}, projections.Page{Size: 1}); err != nil || len(placed.Rows) == 0 {
			return false, placed.AsOf, err
		}
		after := projections.Key{Sequence: placed.Rows[0].Key.Sequence + 1, Ordinal: -1}
		later, err = trades.Page(ctx, db, trades.Filter{Scope: scope, OrderCode: code}, projections.Page{Size: maxLaterTrades, After: &after})
		// The trades may be of a later snapshot than the order.
		later.Rows = slices.DeleteFunc(later.Rows, func(r projections.Row[trades.Trade]) bool { return r.Key.Sequence > placed.AsOf })
		return true, placed.AsOf, err
	})
	switch {
	case err != nil:
		return err
	case len(placed.Rows) == 0:
		return unknownOrder()
	}
	sequence := placed.Rows[0].Key.Sequence
	waiting, cancel := context.WithTimeout(c.Request().Context(), figuresLimit)
	defer cancel()
	if err := h.venue.Wait(waiting, sequence); err != nil { // the rows may be ahead of the fold
		return problem.SourceFailed(err)
	}
	x, err := h.explanation(c, of.customer, sequence)
	if err != nil {
		return err
	}
	out := explainedOrder{Explanation: *x, Now: showOrder(&placed.Rows[0].Value), Later: []wire.Trade{}}
	for i := range later.Rows {
		out.Later = append(out.Later, wire.NewTrade(&later.Rows[i].Value))
	}
	return c.JSON(http.StatusOK, out)
}

// explanation explains a record to a customer that the principal may see.
func (h *Handler) explanation(c echo.Context, customer string, sequence int64) (x *explain.Explanation, err error) {
	confined := rest.PrincipalOf(c).Customer != ""
	err = h.explained().Deciding(c.Request().Context(), sequence, func(met past.Met) (err error) {
		x, err = explain.New(met, customer, confined)
		return err
	})
	return x, err
}

// explained finds the decisions of the trading journal.
func (h *Handler) explained() explanations.Source {
	return explanations.Source{Past: h.past.decisions, Journal: journalName, Rules: domain.Rules(), Unknown: unknownRecord}
}

func unknownRecord() *problem.Problem {
	return problem.NotFound("UNKNOWN_RECORD", "There is no such record, or it changes no order, position, leverage, or money of the customer.")
}
