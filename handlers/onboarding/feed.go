package onboarding

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	list "github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/projections"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// listEvents serves the feed of all webhook notifications since the beginning, oldest first. A client that has
// reached the end continues later from the cursor of the last record.
func (h *Handler) listEvents(c echo.Context) error {
	query := rest.Query(c)
	p := list.ReadFeed(query)
	types := make([]string, 0, len(webhook.EventTypes()))
	for _, t := range webhook.EventTypes() {
		types = append(types, string(t))
	}
	f := rows.NoticeFilter{Viewer: viewer(c), Type: webhook.EventType(query.OptionalEnum("type", types...).Value)}
	if err := query.Done(); err != nil {
		return err
	}
	var out list.Records[domain.Body]
	err := h.rows.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		found, err := rows.Notices(ctx, db, f, p)
		if err != nil {
			return found.AsOf, err
		}
		hidden, shown := h.hidden(c), 0
		out = list.Show(found, func(n *rows.Notice) (b domain.Body) {
			if shown%keysAhead == 0 && err == nil {
				err = h.fetchReasons(ctx, found.Rows[shown:min(shown+keysAhead, len(found.Rows))])
			}
			shown++
			if err == nil {
				b, err = h.body(ctx, &n.Notice, hidden)
			}
			return b
		})
		return found.AsOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// keysAhead is the number of notices for which keys are fetched together. It is small enough that no fetched key
// leaves the cache before it is used.
const keysAhead = 100

// fetchReasons fetches the keys for the encrypted reasons of notices into the cache.
func (h *Handler) fetchReasons(ctx context.Context, of []projections.Row[rows.Notice]) error {
	var owners []owner.Ref
	for i := range of {
		if n := &of[i].Value; n.Reason.Sealed != nil {
			owners = append(owners, n.Ref)
		}
	}
	return h.fetchKeys(ctx, owners)
}

// body returns the feed's form of a notice: its body or, if the owner's data is hidden, only IDs, type and time. So a
// tenant still sees the notice that an erasure is complete.
func (h *Handler) body(ctx context.Context, n *domain.Notice, hidden func(owner.Ref) bool) (domain.Body, error) {
	if hidden(n.Ref) {
		return n.ErasedBody(), nil
	}
	var reason string
	if n.Reason.Sealed != nil {
		plain, err := h.cfg.Owners.Open(ctx, n.Reason.Sealed, seal.Reason(n.Ref, n.TriggerID))
		if errors.Is(err, seal.ErrDestroyed) {
			return n.ErasedBody(), nil
		}
		if err != nil {
			return domain.Body{}, sealing(n.Ref, err)
		}
		reason = string(plain)
	}
	return n.Body(reason)
}
