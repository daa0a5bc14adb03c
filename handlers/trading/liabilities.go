package trading

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/explanations"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/handlers/web/slots"
	"github.com/perpetua-exchange/perpetua/projections"
	rowsOf "github.com/perpetua-exchange/perpetua/projections/liabilities"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
)

// LiabilityProofs proves what a customer has in the tree of a recorded statement. Its errors are those of liabilities.Prover.
type LiabilityProofs interface {
	Prove(ctx context.Context, r form.Recorded, customer string) (*form.Proof, error)
}

// proving makes proofs of liabilities in turns.
type proving struct {
	LiabilityProofs
	turns *slots.Slots
}

const (
	// proofTurn is how long a request for a proof waits for its turn.
	proofTurn = 2 * time.Second
	// maxProofs and maxProofsOfBroker limit the requests that wait for a tree. Trees are built one after the other.
	maxProofs, maxProofsOfBroker = 32, 4
)

// maxPosition is a sequence that will never be reached.
const maxPosition = 1 << 53

// listLiabilities lists the recorded statements of liabilities, newest first.
func (h *Handler) listLiabilities(c echo.Context) error {
	query := rest.Query(c)
	p := rows.ReadPaging(query, false)
	if err := query.Done(); err != nil {
		return err
	}
	return rows.Page(c, h.rows, p, rowsOf.Statements, (*rowsOf.Statement).Publish)
}

// getLiabilities returns the recorded statement about a position.
func (h *Handler) getLiabilities(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	position, ok := input.Number(rest.Param(c, "position"))
	if !ok || position < 1 {
		return unknownStatement()
	}
	s, err := h.statement(c, position)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.Publish())
}

// statement reads the statement about a position, or the newest one for 0.
func (h *Handler) statement(c echo.Context, position int64) (s form.Recorded, err error) {
	known := false
	err = h.rows.Find(c, h.venue, func(ctx context.Context, db projections.DB) (bool, int64, error) {
		found, err := rowsOf.About(ctx, db, position)
		if known = len(found.Rows) > 0; known {
			s = found.Rows[0].Value
		}
		return known, found.AsOf, err
	})
	if err == nil && !known {
		err = unknownStatement()
	}
	return s, err
}

// getLiabilityProof returns the proof of a customer's share in the liabilities.
func (h *Handler) getLiabilityProof(c echo.Context) error {
	query := rest.Query(c)
	position := query.OptionalInteger("position", 1, maxPosition)
	if err := query.Done(); err != nil {
		return err
	}
	customer := rest.Param(c, customerCode)
	if err := h.view(c, func(s *domain.State) error { return sees(c, s, customer) }); err != nil {
		return err
	}
	s, err := h.statement(c, position.Or(0))
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(c.Request().Context(), proofTurn)
	defer cancel()
	leave, ok := h.proofs.turns.Take(waiting, rest.PrincipalOf(c).Broker)
	if !ok {
		return problem.Unavailable("PROOFS_BUSY", "Too many proofs of liabilities are being made.", time.Second)
	}
	defer leave()
	proof, err := h.proofs.Prove(c.Request().Context(), s, customer)
	switch {
	case errors.Is(err, liabilities.ErrGone):
		return problem.NotFound("LEAVES_NOT_KEPT", "The leaves of a tree are kept for 7 days.")
	case errors.Is(err, liabilities.ErrUnknownCustomer):
		return problem.NotFound("NOT_YET", "The customer was registered after this statement.")
	case err != nil:
		return proofFailed(err)
	}
	text, err := proof.Encode()
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, text)
}

// proofFailed returns the problem for an error of a prover: one of the past state that it needed, or one of its stores.
func proofFailed(err error) error {
	if known := new(problem.Problem); errors.As(explanations.Source{Rules: domain.Rules()}.Failed(err), &known) {
		return known
	}
	return problem.SourceFailed(err)
}

func unknownStatement() *problem.Problem {
	return problem.NotFound("UNKNOWN_STATEMENT", "No liabilities were recorded at this position.")
}
