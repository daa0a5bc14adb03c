package onboarding

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/document"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// changeDocument changes a document's category or expiry on behalf of an operator.
func (h *Handler) changeDocument(c echo.Context) error {
	t, err := h.shown(c, "document_id")
	if err != nil {
		return err
	}
	body := t.body(c)
	payload := &domain.ChangeDocument{Ref: t.Ref, ID: t.ids["document_id"]}
	if name := body.OptionalString("category", categoryRule); name.Set {
		category, _ := document.ParseCategory(name.Value)
		payload.Category = &category
	}
	payload.ValidUntil = body.OptionalTime("valid_until").Pointer()
	if body.Null("valid_until") { // null: no expiry
		payload.ValidUntil = new(scalar.Time)
	}
	if !body.Has("category") && !body.Has("valid_until") && !body.Null("valid_until") {
		body.Fault("", validation.Required, "at least one field is required")
	}
	if err := body.Done(); err != nil {
		return err
	}
	e, err := rest.Execute[*domain.DocumentChanged](c, h.journal, payload, body)
	if err != nil {
		return err
	}
	var row view.Document
	found := false
	err = h.rows.ReadDecided(c, func(ctx context.Context, db projections.DB) (asOf int64, err error) {
		// A document's name never changes, so any version of the row has it.
		row, found, asOf, err = view.OneDocument(ctx, db, view.Operator, t.Ref, e.ID)
		return asOf, err
	})
	switch {
	case err != nil:
		return err
	case !found: // the rows have not reached the document, although the read has waited
		return problem.Unavailable("SOURCE_UNAVAILABLE", "The change is made; the document can't be shown yet.", time.Second)
	}
	shown, err := h.showDocument(c.Request().Context(), &e.Document, row.Name)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, shown)
}

func categoryRule(s string) (code, message string) {
	if _, known := document.ParseCategory(s); !known {
		return validation.InvalidValue, "there is no such category"
	}
	return "", ""
}
