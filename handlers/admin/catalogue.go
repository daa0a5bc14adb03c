package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// named reads an ID from the route. It returns unknown's error for an invalid UUID, and for the nil UUID, which no object has.
func named(c echo.Context, parameter string, unknown func() error) (scalar.ID, error) {
	id, err := scalar.ParseID(rest.Param(c, parameter))
	if err != nil || id.IsZero() {
		return id, unknown()
	}
	return id, nil
}

// executeNamed submits a command about the object that the route names, and stores its ID in the payload's field. The
// body's errors take precedence over an unknown object.
func executeNamed[E decide.Event](c echo.Context, h *Handler, body *input.Form, payload decide.Payload, id *scalar.ID, unknown func() error) (e E, err error) {
	if err = body.Done(); err != nil {
		return e, err
	}
	if *id, err = named(c, "id", unknown); err != nil {
		return e, err
	}
	return rest.Execute[E](c, h.onboarding, payload, body)
}

// listNamed responds with a page of the objects that find returns, in the form of show, now or as of a past record.
func listNamed[T, Shown any](c echo.Context, h *Handler, find func(s *onboarding.State, offset, size int) ([]T, int), show func(T) Shown) error {
	query := rest.Query(c)
	page, q := rest.ReadNumbered(query), asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	var shown []Shown
	var total int
	err := h.viewOnboardingThen(c, q, func(s *onboarding.State) error {
		found, all := find(s, page.Offset(), page.Size)
		for _, t := range found {
			shown = append(shown, show(t))
		}
		total = all
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.NewItems(page, shown, total))
}

// getNamed responds with the object that the route names, in the form that find returns, now or as of a past record. An object that
// did not exist then, and does today, is not the same as one that never did.
func getNamed[Shown any](c echo.Context, h *Handler, unknown func() error, find func(*onboarding.State, scalar.ID) (Shown, bool)) error {
	query := rest.Query(c)
	q := asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	id, err := named(c, "id", unknown)
	if err != nil {
		return err
	}
	var out Shown
	look := func(s *onboarding.State) error {
		found, known := find(s, id)
		if !known {
			return unknown()
		}
		out = found
		return nil
	}
	if err = h.viewOnboarding(c, look); err == nil && q != nil {
		err = q.AnswerState(c, h.cfg.OnboardingAsOf, func(s decide.State, _ int64) error {
			if look(s.(*onboarding.State)) != nil {
				return asof.NotYet("It did not exist yet.")
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}
