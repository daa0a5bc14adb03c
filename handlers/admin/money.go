package admin

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// transfer is the content of a deposit or withdrawal. Fingerprints in the log are computed from its JSON form and are
// kept forever, so its members must never change.
type transfer struct {
	CustomerCode string      `json:"customer_code"`
	Currency     string      `json:"currency"`
	Amount       fixed.Money `json:"amount"`
	ReferenceID  string      `json:"reference_id"`
}

// moneyRoutes returns the routes of deposits and withdrawals.
func (h *Handler) moneyRoutes() []rest.Route {
	return []rest.Route{
		post("/customers/:customer_code/deposits", h.makeDeposit),
		post("/customers/:customer_code/withdrawals", h.requestWithdrawal),
		post("/withdrawals/:code/complete", h.completeWithdrawal),
		post("/withdrawals/:code/cancel", h.cancelWithdrawal),
	}
}

func readTransfer(c echo.Context) (transfer, *input.Form) {
	body := rest.BodyOnly(c)
	t := transfer{
		CustomerCode: rest.Param(c, "customer_code"),
		Currency:     body.Enum("currency", ledger.USDC),
		Amount:       body.Money("amount"),
		ReferenceID:  body.String("reference_id", form.Reference.Rule),
	}
	return t, body.Means(t)
}

func (h *Handler) makeDeposit(c echo.Context) error {
	t, body := readTransfer(c)
	payload := venue.MakeDeposit(t)
	return h.transfer(c, ledger.Deposit, &payload, http.StatusCreated, body)
}

func (h *Handler) requestWithdrawal(c echo.Context) error {
	t, body := readTransfer(c)
	payload := venue.RequestWithdrawal(t)
	return h.transfer(c, ledger.Withdrawal, &payload, http.StatusCreated, body)
}

func (h *Handler) completeWithdrawal(c echo.Context) error {
	code, err := withdrawalCode(c)
	if err != nil {
		return err
	}
	return h.transfer(c, ledger.Withdrawal, &venue.CompleteWithdrawal{Code: code}, http.StatusOK)
}

func (h *Handler) cancelWithdrawal(c echo.Context) error {
	code, err := withdrawalCode(c)
	if err != nil {
		return err
	}
	return h.transfer(c, ledger.Withdrawal, &venue.CancelWithdrawal{Code: code}, http.StatusOK)
}

// withdrawalCode reads the code from the route. An invalid UUID names no withdrawal.
func withdrawalCode(c echo.Context) (scalar.ID, error) {
	if err := rest.NoBody(c); err != nil {
		return scalar.ID{}, err
	}
	code, err := scalar.ParseID(rest.Param(c, "code"))
	if err != nil {
		return code, problem.NotFound("UNKNOWN_WITHDRAWAL", "There is no such withdrawal.")
	}
	return code, nil
}

// transfer submits a command about a deposit or withdrawal and responds with the resulting transaction. The response
// has the given status, or 200 for a repeated reference_id.
//
// The rules compare only the contents of requests with one reference_id, and a deposit may have the content of a
// withdrawal. A repeat that is of the other type is therefore refused here.
func (h *Handler) transfer(c echo.Context, of ledger.Type, payload decide.Payload, status int, forms ...*input.Form) error {
	x, err := h.trading.Execute(rest.RequestOf(c), payload, forms...)
	var proposed *operation.ProposedError
	if errors.As(err, &proposed) && proposed.Proposal.Command != x.Command.Type {
		return venue.ReferenceReused()
	}
	if err != nil {
		return err
	}
	t := transaction(x.Entry.Record)
	if t == nil {
		return x.Unanswered()
	}
	if t.Type != of {
		return venue.ReferenceReused()
	}
	if !x.First() {
		status = http.StatusOK
	}
	return c.JSON(status, wire.NewTransaction(t.Row(x.Entry.Record.Sequence)))
}

// transaction returns the deposit or withdrawal of a record, or nil.
func transaction(r *record.Record) *ledger.Transaction {
	for _, event := range r.Events {
		if e, ok := event.(ledger.TransactionEvent); ok {
			return e.TransactionAfter()
		}
	}
	return nil
}
