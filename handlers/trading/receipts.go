package trading

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/proofs"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// maxSequence is the largest sequence that a query may name: numbers in JSON are exact up to 2^53.
const maxSequence = 1<<53 - 1

// orderReceipt responds with the receipt of a record that changed an order: the named one, or else the last one.
func (h *Handler) orderReceipt(c echo.Context) error {
	code, wrong := orderCode(rest.RequestOf(c))
	query := rest.Query(c)
	sequence := query.OptionalInteger(sequenceParam, 0, maxSequence)
	w, err := h.wanted(c, query, unknownOrder())
	switch {
	case err != nil:
		return err
	case wrong != nil:
		return wrong
	}
	if w.Sequence = sequence.Value; sequence.Pointer() == nil {
		if w.Sequence, err = h.lastChange(c, code); err != nil {
			return err
		}
		w.AsOf = max(w.AsOf, w.Sequence) // rows may be ahead of the fold
	}
	customer := rest.Param(c, customerCode)
	w.Concerns = func(e record.Entry) bool { return changesOrder(e, customer, code) }
	return h.receipts.Show(c, w)
}

const sequenceParam = "sequence"

// lastChange returns the sequence of the record that last changed an order of the customer in the route.
func (h *Handler) lastChange(c echo.Context, code scalar.ID) (sequence int64, err error) {
	var found bool
	err = h.rows.Find(c, h.venue, func(ctx context.Context, db projections.DB) (_ bool, asOf int64, err error) {
		var o orders.Order
		o, found, asOf, err = orders.ByCode(ctx, db, orders.Scope{CustomerCode: rest.Param(c, customerCode)}, code)
		sequence = o.Sequence
		return found, asOf, err
	})
	if err == nil && !found {
		err = unknownOrder()
	}
	return sequence, err
}

// changesOrder reports whether a record has an event about an order of a customer.
func changesOrder(e record.Entry, customer string, code scalar.ID) bool {
	var triggered domain.Triggered
	for _, event := range e.Record.Events {
		if o := triggered.Order(event, e.Record.Time); o != nil && o.Code == code && o.CustomerCode == customer {
			return true
		}
	}
	return false
}

// tradeReceipt responds with the receipt of a customer's side of a trade.
func (h *Handler) tradeReceipt(c echo.Context) error {
	return h.receiptOf(c, "trade_code", problem.NotFound("UNKNOWN_TRADE", "There is no such trade in this record."),
		func(e record.Entry, customer string, code scalar.ID) bool {
			for i, event := range e.Record.Events {
				if t, ok := event.(*domain.TradeExecuted); ok {
					taker, maker := t.Sides(e.Stamp(), i)
					if t.Code == code && (taker.CustomerCode == customer || maker.CustomerCode == customer) {
						return true
					}
				}
			}
			return false
		})
}

// transactionReceipt responds with the receipt of a record that made or changed a transaction.
func (h *Handler) transactionReceipt(c echo.Context) error {
	return h.receiptOf(c, "transaction_code", problem.NotFound("UNKNOWN_TRANSACTION", "There is no such transaction in this record."),
		func(e record.Entry, customer string, code scalar.ID) (found bool) {
			for _, event := range e.Record.Events {
				ledger.Rows(e.Stamp(), event, func(r *ledger.Row) {
					found = found || r.CustomerCode == customer && (r.Code == code || r.ID() == code)
				})
			}
			return found
		})
}

// receiptOf responds with the receipt of the record that the query names, if it concerns the object that the route names.
func (h *Handler) receiptOf(c echo.Context, parameter string, missing error, concerns func(e record.Entry, customer string, code scalar.ID) bool) error {
	query := rest.Query(c)
	sequence := query.Integer(sequenceParam, 0, maxSequence)
	w, err := h.wanted(c, query, missing)
	if err != nil {
		return err
	}
	code, err := scalar.ParseID(rest.Param(c, parameter))
	if err != nil {
		return missing
	}
	customer := rest.Param(c, customerCode)
	w.Sequence, w.Concerns = sequence, func(e record.Entry) bool { return concerns(e, customer, code) }
	return h.receipts.Show(c, w)
}

// wanted returns a request for a receipt for the customer in the route, whom the principal must see. A token of the whole broker
// also gets what belongs to the broker, which is the command that it sent.
func (h *Handler) wanted(c echo.Context, query *input.Form, missing error) (w proofs.Wanted, err error) {
	if err := query.Done(); err != nil {
		return w, err
	}
	customer := rest.Param(c, customerCode)
	w = proofs.Wanted{Journal: journalName, Parties: []string{"customer/" + customer}, Missing: missing}
	return w, h.viewAt(c, func(s *domain.State, sequence int64) error {
		w.AsOf = sequence
		if broker, known := s.CustomerBroker(customer); known && rest.PrincipalOf(c).Customer == "" {
			w.Parties = append(w.Parties, "broker/"+broker)
		}
		return sees(c, s, customer)
	})
}
