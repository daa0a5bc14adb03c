package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// insuranceEntry is the content of a deposit to the insurance fund. Fingerprints in the log are computed from its
// JSON form and are kept forever, so its members must never change.
type insuranceEntry struct {
	Amount      fixed.Money `json:"amount"`
	ReferenceID string      `json:"reference_id"`
}

// insuranceDeposit is the JSON form of a deposit to the insurance fund.
type insuranceDeposit struct {
	Code        scalar.ID   `json:"code"`
	Type        ledger.Type `json:"type"`
	Currency    string      `json:"currency"`
	Amount      fixed.Money `json:"amount"`
	Balance     fixed.Money `json:"balance"` // balance of the fund after the deposit
	ReferenceID string      `json:"reference_id"`
	Timestamp   scalar.Time `json:"timestamp"`
	Sequence    int64       `json:"sequence"`
}

// insuranceRoutes returns the routes of the insurance fund.
func (h *Handler) insuranceRoutes() []rest.Route {
	return []rest.Route{
		read("/insurance", h.getInsurance),
		post("/insurance/deposits", h.depositInsurance),
	}
}

// depositInsurance pays into the insurance fund. It returns 201 for a new deposit and 200 for a repeated
// reference_id.
func (h *Handler) depositInsurance(c echo.Context) error {
	body := rest.BodyOnly(c)
	entry := insuranceEntry{Amount: body.Money("amount"), ReferenceID: body.String("reference_id", form.Reference.Rule)}
	payload := venue.DepositInsurance(entry)
	x, err := h.trading.Execute(rest.RequestOf(c), &payload, body.Means(entry))
	if err != nil {
		return err
	}
	for _, event := range x.Entry.Record.Events {
		if e, ok := event.(*venue.InsuranceDeposited); ok {
			status := http.StatusOK
			if x.First() {
				status = http.StatusCreated
			}
			return c.JSON(status, insuranceDeposit{e.Code, ledger.InsuranceFund, e.Currency, e.Amount, e.Balance, e.ReferenceID, e.Created,
				x.Entry.Record.Sequence})
		}
	}
	return x.Unanswered()
}

// insurance is the state of the insurance fund.
type insurance struct {
	Balance   fixed.Money         `json:"balance"`
	Equity    fixed.Money         `json:"equity"`
	Positions []insurancePosition `json:"positions"`
}

// insurancePosition is an open position of the insurance fund.
type insurancePosition struct {
	Symbol        string        `json:"symbol"`
	Amount        fixed.Decimal `json:"amount"`
	EntryPrice    fixed.Decimal `json:"entry_price"`
	MarkPrice     wire.Price    `json:"mark_price"`
	Notional      fixed.Money   `json:"notional"`
	UnrealizedPnL fixed.Money   `json:"unrealised_pnl"`
	Updated       scalar.Time   `json:"updated"`
}

// getInsurance returns the fund's balance, its equity including positions, and the positions, now or as of a past record.
func (h *Handler) getInsurance(c echo.Context) error {
	query := rest.Query(c)
	q := asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	var out insurance
	err := h.viewVenueThen(c, q, func(s *venue.State) {
		fund := s.Insurance()
		out = insurance{fund.Balance, fund.Equity, []insurancePosition{}}
		for _, p := range fund.Positions {
			out.Positions = append(out.Positions, insurancePosition{p.Symbol, p.Amount, p.EntryPrice, wire.Price(p.MarkPrice), p.Notional,
				p.UnrealizedPnL, p.Updated})
		}
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}
