package trading

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// maxBatch is the maximum number of orders in a batch.
const maxBatch = 50

// batchItem is one order of a batch.
type batchItem struct {
	operation.Part
	fault error // error of the item, which is then not submitted
	// answer converts the result of the item to a status and an order, or an error. The context is for reading rows.
	answer func(ctx context.Context, x operation.Executed, err error) (int, wire.Order, error)
}

// placeOrders enters several orders of one customer. Each gets the same response as a separate order entry.
func (h *Handler) placeOrders(a operation.Request) (status int, _ operation.Appender, _ error) {
	customer, keyed := a.Param(customerCode), a.Keyed()
	return h.batch(a, func(raw []byte) batchItem {
		payload := &domain.PlaceOrder{}
		if err := input.DecodeItem(raw, domain.PlaceOrderForm(), payload); err != nil {
			return batchItem{fault: err}
		}
		payload.CustomerCode = customer
		part := operation.Part{Payload: payload}
		if keyed || payload.ReferenceID != "" {
			part.Fingerprint = orderFingerprint(payload)
		}
		return batchItem{Part: part,
			answer: func(_ context.Context, x operation.Executed, err error) (int, wire.Order, error) {
				return h.placed(x, err, payload)
			}}
	})
}

// cancelSeveral cancels several orders of one customer, each identified by order code or reference_id.
func (h *Handler) cancelSeveral(a operation.Request) (status int, _ operation.Appender, _ error) {
	customer, keyed := a.Param(customerCode), a.Keyed()
	return h.batch(a, func(raw []byte) batchItem {
		payload := &domain.CancelOrder{}
		if err := input.DecodeItem(raw, domain.CancelOneForm(), payload); err != nil {
			return batchItem{fault: err}
		}
		payload.CustomerCode = customer
		named := oneOrder{payload.OrderCode, payload.ReferenceID}
		part := operation.Part{Payload: payload}
		if keyed {
			part.Fingerprint = input.FingerprintText([]byte(customer + " " + named.code.String() + " " + named.reference))
		}
		return batchItem{Part: part,
			answer: func(ctx context.Context, x operation.Executed, err error) (int, wire.Order, error) {
				o, err := h.changed(ctx, a, x, err, named)
				return http.StatusOK, o, err
			}}
	})
}

// amendSeveral changes several orders of one customer, each identified by order code or reference_id.
func (h *Handler) amendSeveral(a operation.Request) (status int, _ operation.Appender, _ error) {
	customer, keyed := a.Param(customerCode), a.Keyed()
	return h.batch(a, func(raw []byte) batchItem {
		payload := &domain.AmendOrder{}
		if err := input.DecodeItem(raw, domain.AmendOneForm(), payload); err != nil {
			return batchItem{fault: err}
		}
		payload.CustomerCode = customer
		part := operation.Part{Payload: payload}
		if keyed {
			part.Fingerprint = amendmentFingerprint(customer, input.WithoutNulls(raw))
			part.Earlier = amendmentFingerprint(customer, raw)
		}
		return batchItem{Part: part,
			answer: func(ctx context.Context, x operation.Executed, err error) (int, wire.Order, error) {
				o, err := h.changed(ctx, a, x, err, oneOrder{payload.OrderCode, payload.ReferenceID})
				return http.StatusOK, o, err
			}}
	})
}

// amendmentFingerprint returns the fingerprint of one amendment of a batch.
func amendmentFingerprint(customer string, raw []byte) string {
	return input.FingerprintText(append([]byte(customer+" "), input.CanonicalJSON(raw)...))
}

// batch executes a request for several orders. read parses one item. The items are submitted together and each has a
// separate result, but an error that all items have in common is an error of the request.
func (h *Handler) batch(a operation.Request, read func(raw []byte) batchItem) (status int, _ operation.Appender, _ error) {
	raw, err := a.BodyItems("orders", maxBatch)
	if err != nil {
		return 0, nil, err
	}
	if _, err := a.Key(); err != nil { // a batch may have no valid item, and then no command that checks it
		return 0, nil, err
	}
	h.auth.Charge(a, len(raw)-1)
	items, parts := make([]batchItem, len(raw)), make([]operation.Part, 0, len(raw))
	for i := range raw {
		if items[i] = read(raw[i]); items[i].fault == nil {
			parts = append(parts, items[i].Part)
		}
	}
	tried, err := h.submitParts(a, parts)
	if err != nil {
		return 0, nil, err
	}
	if err := ofAll(tried); err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(a.Context(), lookLimit) // of all items together
	defer cancel()
	results := make(batchResults, len(items))
	for i, item := range items {
		err, status, o := item.fault, 0, wire.Order{}
		if err == nil {
			status, o, err = item.answer(ctx, tried[0].Executed, tried[0].Err)
			tried = tried[1:]
		}
		results[i] = batchResult{status: status, order: o}
		if err != nil {
			results[i].problem = a.PartProblem(err)
		}
	}
	return http.StatusOK, results, nil
}

// submitParts submits the parts of a request. If an earlier build may have recorded the idempotency key with other
// fingerprints of the same parts, it submits them with those.
func (h *Handler) submitParts(a operation.Request, parts []operation.Part) ([]operation.BatchResult, error) {
	commands, err := a.Commands(parts)
	if err != nil {
		return nil, err
	}
	tried := h.journal.SubmitAll(a, h.batches, commands)
	earlier, differ := operation.AsEarlier(parts)
	if !differ || !slices.ContainsFunc(tried, keyReused) { // the key is of the whole batch, so none of the others was decided
		return tried, nil
	}
	if commands, err = a.Commands(earlier); err != nil {
		return nil, err
	}
	return h.journal.SubmitAll(a, h.batches, commands), nil
}

// keyReused reports whether a part was refused because the idempotency key was used for another request.
func keyReused(r operation.BatchResult) bool {
	var refusal *decide.Refusal
	return errors.As(r.Err, &refusal) && refusal.Code == decide.CodeKeyReused
}

// ofAll returns the refusal that all commands of a batch have in common: the client has no such customer, or the
// idempotency key belongs to another batch.
func ofAll(tried []operation.BatchResult) error {
	for i, t := range tried {
		var refusal *decide.Refusal
		if !errors.As(t.Err, &refusal) || refusal.Code != "UNKNOWN_CUSTOMER" && refusal.Code != decide.CodeKeyReused {
			return nil
		}
		if i == len(tried)-1 {
			return t.Err
		}
	}
	return nil
}

// batchResult is the result of one order of a batch.
type batchResult struct {
	status  int
	order   wire.Order
	problem *problem.Problem // instead of the order
}

// batchResults is the response to a batch.
type batchResults []batchResult

// AppendJSON appends the response as JSON.
func (all batchResults) AppendJSON(b []byte) (_ []byte, err error) {
	b = append(b, `{"results":[`...)
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = all[i].appendJSON(b); err != nil {
			return b, err
		}
	}
	return append(b, "]}"...), nil
}

func (r *batchResult) appendJSON(b []byte) (_ []byte, err error) {
	b = append(b, `{"status":`...)
	if r.problem == nil {
		b = append(strconv.AppendInt(b, int64(r.status), 10), `,"order":`...)
		b, err = r.order.AppendJSON(b)
		return append(b, '}'), err
	}
	text, err := json.Marshal(r.problem, jsontext.AllowInvalidUTF8(true)) // a replaced character is better than no response
	b = append(strconv.AppendInt(b, int64(r.problem.Status), 10), `,"problem":`...)
	return append(append(b, text...), '}'), err
}
