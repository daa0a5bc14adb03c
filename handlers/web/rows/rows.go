// Package rows answers reads out of read models: lists that page by cursor and lists that are short, bounded by spans of
// time, each as of a position that the answer names.
//
// A cursor holds the place of a row, which never changes, so that it stays good for ever. It is opaque to clients.
package rows

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/projections"
)

// Source is where the rows of a journal are read from.
type Source struct {
	Journal string
	DB      projections.DB
	// Waiter waits for the rows: it is the runner of the journal's projections.
	web.Waiter
}

// Read reads rows that hold the position that the client wants, and makes the answer name the position that they are as
// of.
func (s Source) Read(c echo.Context, query func(context.Context, projections.DB) (asOf int64, err error)) error {
	return web.ReadRows(c, s.Journal, s.Waiter, func(ctx context.Context) (int64, error) { return query(ctx, s.DB) })
}

// A PageOf reads a page of a list.
type PageOf[Row any] func(context.Context, projections.DB, projections.Page) (projections.Paged[Row], error)

// Page answers with a page of a list.
func Page[Row, Shown any](c echo.Context, s Source, p projections.Page, read PageOf[Row], show func(*Row) Shown) error {
	var out Records[Shown]
	err := s.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		found, err := read(ctx, db, p)
		out = Show(found, show)
		return found.AsOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// All answers with the whole of a list that is bounded by its nature.
func All[Row, Shown any](c echo.Context, s Source, read func(context.Context, projections.DB) ([]Row, int64, error), show func(*Row) Shown) error {
	var out []Shown
	err := s.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		found, asOf, err := read(ctx, db)
		out = make([]Shown, 0, len(found))
		for i := range found {
			out = append(out, show(&found[i]))
		}
		return asOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}
