package trading

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// placeOrder enters an order. The first response is 201. A repeated reference_id gets 200 with the order as its last
// record left it. An order that the engine rejected gets 422 in both cases.
func (h *Handler) placeOrder(a operation.Request) (status int, _ operation.Appender, _ error) {
	payload := &domain.PlaceOrder{}
	if _, err := operation.Decode(a, domain.PlaceOrderForm(), payload); err != nil {
		return 0, nil, err
	}
	payload.CustomerCode = a.Param(customerCode)
	cmd, err := a.BareCommand(payload)
	if err != nil {
		return 0, nil, err
	}
	if cmd.Metadata.Key != "" || payload.ReferenceID != "" {
		cmd.Metadata.Fingerprint = orderFingerprint(payload)
	}
	x, err := h.journal.Submit(a, cmd)
	status, o, err := h.placed(x, err, payload)
	return status, &o, err
}

// placed returns the response to an order entry: the status and the order, or an error if the order was refused or
// rejected.
func (h *Handler) placed(x operation.Executed, err error, payload *domain.PlaceOrder) (status int, _ wire.Order, _ error) {
	if err != nil {
		return 0, wire.Order{}, h.allFaults(err, payload)
	}
	o := placedOrder(x.Entry, payload.CustomerCode, payload.ReferenceID)
	if o == nil {
		return 0, wire.Order{}, x.Unanswered()
	}
	shown := wire.NewOrder(o, x.Entry.Record.Sequence)
	switch {
	case o.Status == order.Rejected:
		return 0, shown, rejected(o, x.Entry.Record)
	case firstAnswer(x):
		return http.StatusCreated, shown, nil
	}
	return http.StatusOK, shown, nil
}

// orderFingerprint returns the fingerprint of an order entry.
func orderFingerprint(payload *domain.PlaceOrder) string {
	var room [768]byte
	return input.FingerprintText(domain.PlaceOrderForm().AppendCanonical(room[:0], payload))
}

// allFaults adds to the engine's error the other errors of the order on its instrument. It runs only after a refusal,
// because an accepted order must not be validated again when it is repeated.
func (h *Handler) allFaults(err error, payload *domain.PlaceOrder) error {
	var refusal *decide.Refusal
	if !errors.As(err, &refusal) || refusal.Kind != decide.Invalid {
		return err
	}
	p := problem.Refused(refusal)
	h.venue.View(func(s decide.State, _ record.Position) {
		state := s.(*domain.State)
		contract := state.Contract(payload.Symbol)
		if contract == nil {
			return
		}
		for _, f := range domain.CheckOrder(contract, payload, state.Time()) {
			if f.Path.String() != refusal.Field {
				p = p.With(f)
			}
		}
	})
	return p
}

func (h *Handler) amendOrder(a operation.Request) (status int, _ operation.Appender, _ error) {
	payload := &domain.AmendOrder{}
	raw, err := operation.Decode(a, domain.AmendOrderForm(), payload)
	if err != nil {
		return 0, nil, err
	}
	if payload.OrderCode, err = orderCode(a); err != nil {
		return 0, nil, err
	}
	return h.amend(a, payload, raw, oneOrder{code: payload.OrderCode})
}

// amendOrderByReference changes the live order with the given reference_id.
func (h *Handler) amendOrderByReference(a operation.Request) (status int, _ operation.Appender, _ error) {
	payload := &domain.AmendOrder{}
	raw, err := operation.Decode(a, domain.AmendOrderForm(), payload)
	if err != nil {
		return 0, nil, err
	}
	payload.ReferenceID = a.Param("reference_id")
	return h.amend(a, payload, raw, oneOrder{reference: payload.ReferenceID})
}

// amend submits an amendment with the given body and responds with the order.
func (h *Handler) amend(a operation.Request, payload *domain.AmendOrder, raw []byte, named oneOrder) (status int, _ operation.Appender, _ error) {
	payload.CustomerCode = a.Param(customerCode)
	cmd, err := a.BareCommand(payload)
	if err != nil {
		return 0, nil, err
	}
	if cmd.Metadata.Key != "" {
		cmd.Metadata.Fingerprint = a.BodyFingerprint(raw)
	}
	x, err := h.journal.SubmitKeyed(a, cmd, func() string { return a.BodyFingerprintAsSent(raw) })
	o, err := h.changed(a.Context(), a, x, err, named)
	return http.StatusOK, &o, err
}

func (h *Handler) cancelOrder(a operation.Request) (status int, _ operation.Appender, _ error) {
	if err := a.NoBody(); err != nil {
		return 0, nil, err
	}
	code, err := orderCode(a)
	if err != nil {
		return 0, nil, err
	}
	payload := &domain.CancelOrder{CustomerCode: a.Param(customerCode), OrderCode: code}
	return h.changeOrder(a, payload, oneOrder{code: code})
}

// cancelOrderByReference cancels the live order with the given reference_id.
func (h *Handler) cancelOrderByReference(a operation.Request) (status int, _ operation.Appender, _ error) {
	if err := a.NoBody(); err != nil {
		return 0, nil, err
	}
	reference := a.Param("reference_id")
	payload := &domain.CancelOrder{CustomerCode: a.Param(customerCode), ReferenceID: reference}
	return h.changeOrder(a, payload, oneOrder{reference: reference})
}

// oneOrder identifies an order by its code or by the client's reference_id.
type oneOrder struct {
	code      scalar.ID
	reference string
}

// is reports whether o is the identified order.
func (n oneOrder) is(o *order.Order) bool {
	if n.reference != "" {
		return o.ReferenceID == n.reference
	}
	return o.Code == n.code
}

// find reads the order from the read models.
func (n oneOrder) find(ctx context.Context, db projections.DB, s orders.Scope) (orders.Order, bool, int64, error) {
	if n.reference != "" {
		return orders.ByReference(ctx, db, s, n.reference)
	}
	return orders.ByCode(ctx, db, s, n.code)
}

// changeOrder submits a change of one order and responds with the order.
func (h *Handler) changeOrder(a operation.Request, payload decide.Payload, named oneOrder) (status int, _ operation.Appender, _ error) {
	x, err := h.journal.Execute(a, payload)
	o, err := h.changed(a.Context(), a, x, err, named)
	return http.StatusOK, &o, err
}

// changed returns the response to a change of one order: the order, or the error of a refused change.
func (h *Handler) changed(ctx context.Context, a operation.Request, x operation.Executed, err error, named oneOrder) (wire.Order, error) {
	if err != nil {
		return wire.Order{}, h.finishedLongAgo(ctx, a, err, named)
	}
	o := changedOrder(x.Entry.Record, named)
	if o == nil {
		return wire.Order{}, x.Unanswered()
	}
	return wire.NewOrder(o, x.Entry.Record.Sequence), nil
}

// lookLimit is how long a refused change waits for the rows.
const lookLimit = 2 * time.Second

// finishedLongAgo distinguishes an order that never existed from one that finished so long ago that the engine has
// dropped it. The read models contain the latter. If they cannot tell, the error is SOURCE_UNAVAILABLE.
func (h *Handler) finishedLongAgo(ctx context.Context, a operation.Request, err error, named oneOrder) error {
	var refused *submit.RefusedError
	if !errors.As(err, &refused) || refused.Refusal.Code != "UNKNOWN_ORDER" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	scope := orders.Scope{Broker: a.Principal().Broker, CustomerCode: a.Param(customerCode)}
	o, found, asOf, lookup := named.find(ctx, h.rows.DB, scope)
	finished := found && !o.Status.Live()
	if lookup == nil && !finished && asOf < refused.AsOf.Sequence {
		if lookup = h.rows.Wait(ctx, refused.AsOf.Sequence); lookup == nil {
			o, found, asOf, lookup = named.find(ctx, h.rows.DB, scope)
			finished = found && !o.Status.Live()
		}
	}
	switch {
	case a.Context().Err() != nil:
		return a.Context().Err()
	case lookup != nil:
		return problem.SourceFailed(lookup)
	case finished:
		return problem.Conflict("ORDER_NOT_LIVE", "The order is "+string(o.Status)+".")
	case asOf < refused.AsOf.Sequence: // Postgres has lost its last transactions
		return problem.SourceFailed(errors.New("the rows are behind the log"))
	}
	return err
}

// cancelOrders cancels all orders of a customer, or those on one instrument. It responds after the last step.
func (h *Handler) cancelOrders(a operation.Request) (status int, _ operation.Appender, _ error) {
	query := a.Query()
	symbol := symbolFilter(query)
	if err := query.Done(); err != nil {
		return 0, nil, err
	}
	if err := a.BodyAbsent(); err != nil {
		return 0, nil, err
	}
	payload := &domain.CancelAll{CustomerCode: a.Param(customerCode), Symbol: symbol}
	x, err := h.journal.Execute(a, payload, query)
	if err != nil {
		return 0, nil, err
	}
	finished, err := operation.Answer[*domain.WorkFinished](x)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, canceled(finished.Canceled), nil
}

// canceled is the number of canceled orders.
type canceled int

// AppendJSON appends the response as JSON.
func (n canceled) AppendJSON(b []byte) ([]byte, error) {
	return append(strconv.AppendInt(append(b, `{"canceled":`...), int64(n), 10), '}'), nil
}

// cancelAllAfter is the state of the dead man's switch.
type cancelAllAfter struct {
	TimeoutSeconds int                        `json:"timeout_seconds"`
	ExpiresAt      wire.Nullable[scalar.Time] `json:"expires_at"`
}

// maxTimeout is the maximum timeout of the dead man's switch in seconds.
const maxTimeout = 86400

func (h *Handler) setCancelAllAfter(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &domain.SetCancelAllAfter{CustomerCode: rest.Param(c, "customer_code"),
		TimeoutSeconds: int(body.Integer("timeout_seconds", 0, maxTimeout))}
	set, err := rest.Execute[*domain.CancelAllAfterSet](c, h.journal, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, cancelAllAfter{set.TimeoutSeconds, wire.NullIfZero(set.ExpiresAt)})
}

// orderCode reads the order code from the route. An invalid UUID names no order.
func orderCode(a operation.Request) (scalar.ID, error) {
	code, err := scalar.ParseID(a.Param("order_code"))
	if err != nil {
		return code, unknownOrder()
	}
	return code, nil
}
