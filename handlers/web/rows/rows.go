// Package rows answers reads from read models: lists that page by cursor, and short lists limited by a time span.
// Each response names the position at which it was read.
//
// A cursor contains the key of a row, which never changes, so a cursor stays valid forever. It is opaque to clients.
package rows

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Source is a source of a journal's rows.
type Source struct {
	Journal string
	DB      projections.DB // limited, so that a Postgres that hangs keeps no client waiting: see projections.Limited
	// Waiter waits until the rows have reached a position. It is the runner of the journal's projections.
	operation.Waiter
}

// Read reads rows that have reached the positions that the request must see (see operation.ReadRows) and sets the
// response's position.
func (s Source) Read(c echo.Context, query func(context.Context, projections.DB) (asOf int64, err error)) error {
	return rest.ReadRows(c, s.Journal, s.Waiter, func(ctx context.Context) (int64, error) { return query(ctx, s.DB) })
}

// ReadDecided is like Read, but for use after the request's command was decided. It ignores X-Min-Log-Position.
func (s Source) ReadDecided(c echo.Context, query func(context.Context, projections.DB) (asOf int64, err error)) error {
	return rest.ReadRowsOf(c, s.Journal, s.Waiter, func(ctx context.Context) (int64, error) { return query(ctx, s.DB) })
}

// A Query reads an object, and reports whether it found it and the sequence of the read.
type Query func(context.Context, projections.DB) (found bool, asOf int64, err error)

// Find is Read for an object that the rows may not contain yet. If query does not find it, and the rows are behind the journal's
// fold or behind the last write that this node has answered to the user, Find waits for the rows and reads them again. If that
// takes too long, the error is SOURCE_UNAVAILABLE, because the object may exist.
func (s Source) Find(c echo.Context, fold record.Follower, query Query) error {
	return s.find(c, s.Read, fold, query)
}

// FindDecided is like Find, but for use after the request's command was decided. It ignores X-Min-Log-Position.
func (s Source) FindDecided(c echo.Context, fold record.Follower, query Query) error {
	return s.find(c, s.ReadDecided, fold, query)
}

func (s Source) find(c echo.Context, by func(echo.Context, func(context.Context, projections.DB) (int64, error)) error, fold record.Follower, query Query) error {
	known := max(fold.Position().Sequence, rest.RequestOf(c).Written(s.Journal))
	found, at := false, int64(-1)
	read := func() error {
		return by(c, func(ctx context.Context, db projections.DB) (_ int64, err error) {
			found, at, err = query(ctx, db)
			return at, err
		})
	}
	// The limit includes the first read, which may have waited for positions itself.
	waiting, cancel := context.WithTimeout(c.Request().Context(), findLimit)
	defer cancel()
	if err := read(); err != nil || found || at >= known {
		return err
	}
	if err := s.Wait(waiting, known); err != nil {
		if gone := c.Request().Context().Err(); gone != nil {
			return gone
		}
		return behind(fmt.Errorf("the rows are at record %d, and not at %d: %w", at, known, err))
	}
	if err := read(); err != nil || found || at >= known {
		return err
	}
	return behind(fmt.Errorf("the rows are at record %d again, and not at %d", at, known)) // Postgres has lost its last transactions
}

// findLimit is how long Find waits for rows that are behind, as long as a read waits for a position.
const findLimit = 2 * time.Second

func behind(err error) error {
	return problem.Unavailable("SOURCE_UNAVAILABLE", "The rows are behind the log, and do not contain this yet.", time.Second).Because(err)
}

// A PageOf reads a page of a list.
type PageOf[Row any] func(context.Context, projections.DB, projections.Page) (projections.Paged[Row], error)

// Page responds with a page of a list.
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

// All responds with a complete list, which must be short.
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
