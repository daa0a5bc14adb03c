package trading

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/order"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// accountState is the state of an account that a client needs after a restart, as of one log position. If the client
// passes the position as resume_from, the private channels continue from it.
type accountState struct {
	OpenOrders       wire.Orders           `json:"open_orders"`
	Positions        []wire.Position       `json:"positions"`
	AccountSummaries []wire.AccountSummary `json:"account_summaries"`
	Position         record.LogPosition    `json:"position"`
}

// AppendJSON appends the state exactly as the generic encoder writes it. It encodes the orders, of which there may be
// many, with their handwritten encoder.
func (a *accountState) AppendJSON(b []byte) ([]byte, error) {
	b, err := a.OpenOrders.AppendJSON(append(b, `{"open_orders":`...))
	if err != nil {
		return b, err
	}
	for _, part := range [...]struct {
		name  string
		value any
	}{{"positions", a.Positions}, {"account_summaries", a.AccountSummaries}, {"position", a.Position}} {
		text, err := json.Marshal(part.value, json.Deterministic(true))
		if err != nil {
			return b, err
		}
		b = append(append(append(b, `,"`...), part.name...), `":`...)
		b = append(b, text...)
	}
	return append(b, '}'), nil
}

// getState returns the state of an account in one view of the fold. Separate rows could have different positions.
func (h *Handler) getState(c echo.Context) error {
	query := rest.Query(c)
	q := asof.Read(query)
	of, err := h.whose(c, query)
	if err != nil {
		return err
	}
	out := accountState{OpenOrders: wire.Orders{}, Positions: []wire.Position{}}
	err = h.viewThen(c, q, func(s *domain.State, sequence int64) error {
		summary, ok := s.Summary(of.customer)
		if !ok {
			return unregistered(q)
		}
		s.EachOpenOrder(of.customer, func(o *order.Order, changed int64) {
			out.OpenOrders = append(out.OpenOrders, wire.NewOrder(o, changed))
		})
		for _, p := range s.Positions(of.customer) {
			out.Positions = append(out.Positions, wire.NewPosition(&p))
		}
		out.AccountSummaries = []wire.AccountSummary{wire.NewAccountSummary(&summary)}
		out.Position = record.LogPosition{Journal: journalName, Sequence: sequence}
		return nil
	})
	if err != nil {
		return err
	}
	return rest.AnswerWith(c, http.StatusOK, &out)
}
