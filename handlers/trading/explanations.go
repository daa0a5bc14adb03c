package trading

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/trading/explain"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/trades"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
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
	sequence, err := strconv.ParseInt(rest.Param(c, "sequence"), 10, 64)
	if err != nil || sequence < 0 {
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
	err = h.rows.Read(c, func(ctx context.Context, db projections.DB) (asOf int64, err error) {
		if placed, err = orders.History(ctx, db, orders.Filter{Scope: scope, Code: code}, projections.Page{Size: 1}); err != nil || len(placed.Rows) == 0 {
			return placed.AsOf, err
		}
		after := projections.Key{Sequence: placed.Rows[0].Key.Sequence + 1, Ordinal: -1}
		later, err = trades.Page(ctx, db, trades.Filter{Scope: scope, OrderCode: code}, projections.Page{Size: maxLaterTrades, After: &after})
		return placed.AsOf, err
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
	err = h.deciding(c.Request().Context(), sequence, func(met past.Met) (err error) {
		x, err = explain.New(met, customer, confined)
		return err
	})
	return x, err
}

// deciding calls look with a record and the state that it met. Its errors are problems, apart from unexpected ones.
func (h *Handler) deciding(ctx context.Context, sequence int64, look func(past.Met) error) error {
	if h.past == nil {
		return problem.Unavailable("EXPLANATIONS_UNAVAILABLE", "This node explains no records.", time.Minute)
	}
	err := h.past.Deciding(ctx, journalName, 0, sequence, look)
	var different *explain.DifferentError
	switch {
	case errors.Is(err, explain.ErrForeign), errors.Is(err, past.ErrBefore):
		return unknownRecord()
	case errors.As(err, &different):
		return rulesNotInBuild(different.Build).Because(err)
	}
	return pastFailed(err)
}

// pastFailed returns the problem for an error of a past state, or the error itself.
func pastFailed(err error) error {
	var after *past.AfterError
	var busy *past.BusyError
	var trimmed *record.TrimmedError
	var broken *record.BrokenRecordError
	switch {
	case errors.As(err, &after):
		return problem.Conflict("NOT_YET_DECIDED", "The last record is "+strconv.FormatInt(after.Tip.Sequence, 10)+".").RetryAfter(time.Second)
	case errors.As(err, &busy):
		return problem.Unavailable("TOO_MANY_PAST_STATES", "Too many past states are being computed.", busy.RetryAfter)
	case errors.As(err, &trimmed):
		return problem.Conflict(record.CodeTrimmed, "The records before "+strconv.FormatInt(trimmed.Base.Sequence, 10)+" are only in the archive.").Because(err)
	case errors.As(err, &broken):
		var foreign *past.ForeignError
		build := ""
		if errors.As(err, &foreign) {
			build = foreign.Build
		}
		return rulesNotInBuild(build).Because(err)
	}
	return err
}

// rulesNotInBuild is the error for a record that this build decides differently or can't apply. build is the one that made the
// record, or "".
func rulesNotInBuild(build string) *problem.Problem {
	if build == "" {
		build = "the one that served at that time"
	}
	return problem.Conflict("RULES_NOT_IN_BUILD", "This build (rules "+strconv.Itoa(domain.Rules().Newest())+") decides the record differently. The build that made it is "+build+".")
}

func unknownRecord() *problem.Problem {
	return problem.NotFound("UNKNOWN_RECORD", "There is no such record about the customer.")
}
