package onboarding

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
)

// patience is how long a read waits for the fold to apply a record that a link or the rows name.
const patience = 2 * time.Second

// awaitFold waits until this node's fold has reached a sequence. If that takes too long, the error is SOURCE_UNAVAILABLE.
func (h *Handler) awaitFold(c echo.Context, sequence int64) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), patience)
	defer cancel()
	if err := h.cfg.Onboarding.Wait(ctx, sequence); err != nil {
		if gone := c.Request().Context().Err(); gone != nil {
			return gone
		}
		return problem.SourceFailed(err)
	}
	return nil
}

// A pageOf reads a numbered page of a list and the total number of rows.
type pageOf[Row any] func(ctx context.Context, db projections.DB, size, offset int) (rows []Row, total int, asOf int64, err error)

// A shower converts a row to its JSON form. page skips a row if the shower fails because the owner was erased.
type shower[Row any] func(ctx context.Context, row *Row) (any, error)

// paged responds with a page of a list, with all five members.
func paged[Row any](c echo.Context, h *Handler, p rest.Numbered, read pageOf[Row], show shower[Row]) error {
	items, total, err := page(c, h, p.Size, p.Offset(), read, show)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.NewItems(p, items, total))
}

// listedOf responds with a page of an encrypted list of an owner, which may be as of a past record.
func listedOf[Row any](c echo.Context, h *Handler, now func(t *target) pageOf[Row], then pastPageOf[Row], show shower[Row]) error {
	t, query, q, err := h.readTarget(c)
	if err != nil {
		return err
	}
	p := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	items, total, err := pageThen(c, h, q, t, p.Size, p.Offset(), now(t), then, show)
	if err != nil {
		return err
	}
	return h.answerSealed(c, p, items, total)
}

// answerSealed responds with a page of an encrypted list. A follower can't decrypt the items and answers 404 for each, so its list
// counts none.
func (h *Handler) answerSealed(c echo.Context, p rest.Numbered, items []any, total int) error {
	if h.cfg.Box.IsForeign() && !seesErased(c) {
		total = 0
	}
	return c.JSON(http.StatusOK, rest.NewItems(p, items, total))
}

// pageThen is page, or pastPage if q is not nil.
func pageThen[Row any](c echo.Context, h *Handler, q *asof.Question, t *target, size, offset int, now pageOf[Row], then pastPageOf[Row], show shower[Row]) ([]any, int, error) {
	if q != nil {
		return pastPage(c, h, q, t, size, offset, then, show)
	}
	return page(c, h, size, offset, now, show)
}

// A rowOf reads a row, and reports whether there is one.
type rowOf[Row any] func(ctx context.Context, db projections.DB) (row Row, found bool, asOf int64, err error)

// one reads a row. If there is none, it returns the error of missing.
func one[Row any](c echo.Context, h *Handler, read rowOf[Row], missing func() error) (row Row, err error) {
	found := false
	err = h.rows.Find(c, h.cfg.Onboarding, func(ctx context.Context, db projections.DB) (_ bool, asOf int64, err error) {
		row, found, asOf, err = read(ctx, db)
		return found, asOf, err
	})
	if err == nil && !found {
		err = missing()
	}
	return row, err
}

// page reads a page and converts its rows.
func page[Row any](c echo.Context, h *Handler, size, offset int, read pageOf[Row], show shower[Row]) (items []any, total int, err error) {
	var rows []Row
	err = h.rows.Read(c, func(ctx context.Context, db projections.DB) (asOf int64, err error) {
		rows, total, asOf, err = read(ctx, db, size, offset)
		return asOf, err
	})
	if err != nil {
		return nil, 0, err
	}
	items, err = showAll(c.Request().Context(), rows, show)
	return items, total, err
}

// showAll converts rows to their JSON form, without those that are gone.
func showAll[Row any](ctx context.Context, rows []Row, show shower[Row]) (items []any, err error) {
	items = make([]any, 0, len(rows))
	for i := range rows {
		shown, err := show(ctx, &rows[i])
		switch {
		case err == nil:
			items = append(items, shown)
		case !isGone(err):
			return nil, err
		}
	}
	return items, nil
}

// isGone reports whether the error means that an object was erased between reading its row and decrypting it.
func isGone(err error) bool {
	return problem.Of(err).Status == http.StatusNotFound
}

// itself returns a shower for a function that cannot fail.
func itself[Row, Shown any](show func(*Row) Shown) shower[Row] {
	return func(_ context.Context, row *Row) (any, error) { return show(row), nil }
}
