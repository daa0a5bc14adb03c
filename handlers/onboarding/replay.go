package onboarding

import (
	"context"
	"errors"
	"time"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// rowWithin is how long a replay waits for the row of a delivery that the state has dropped. replayTries is how often
// it submits the command within that time. One row is usually sufficient if it is only slightly older than the log,
// because the state drops further deliveries only after thousands of others have closed.
const (
	rowWithin   = 2 * time.Second
	replayTries = 5
)

// lookUp returns a delivery of any tenant: from the node's fold or, if states have dropped it, from its row. It
// returns nil if there is none.
func (h *Handler) lookUp(c echo.Context, id scalar.ID) (v *domain.Delivery, err error) {
	var forgotten int64
	err = h.view(c, func(s *domain.State) error {
		v, _ = s.Delivery(id)
		forgotten = s.Forgotten()
		return nil
	})
	if err != nil || v != nil || forgotten == 0 {
		return v, err
	}
	waiting, cancel := context.WithTimeout(c.Request().Context(), rowWithin)
	defer cancel()
	v, asOf, err := h.deliveryRow(waiting, c, id, forgotten)
	if err == nil && v == nil && asOf < forgotten { // the rows are being rebuilt and may not contain the delivery yet
		err = rowsBehind()
	}
	return v, err
}

// deliveryRow returns a delivery of any tenant from its row, and the sequence of the read. It first waits for the
// rows to reach the sequence least, until the context waiting ends, and then reads in any case.
func (h *Handler) deliveryRow(waiting context.Context, c echo.Context, id scalar.ID, least int64) (v *domain.Delivery, asOf int64, err error) {
	_ = h.rows.Wait(waiting, least)
	err = h.rows.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		found, known, at, err := rows.OneDelivery(ctx, db, rows.Operator, id)
		v, asOf = nil, at
		if known {
			row := found.Domain()
			v = &row
		}
		return at, err
	})
	return v, asOf, err
}

func rowsBehind() error {
	return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: "the rows are behind the log"}
}

// replay restarts a finished delivery. The state of the journal's owner contains most deliveries. If the state has
// dropped one, the command carries the delivery's row, read at a position that includes all changes of the delivery.
func (h *Handler) replay(c echo.Context, id scalar.ID, operator bool) (*domain.DeliveryReplayed, error) {
	waiting, cancel := context.WithTimeout(c.Request().Context(), rowWithin)
	defer cancel()
	var row *domain.Delivery
	var asOf int64
	for tries := 1; ; tries++ {
		e, err := rest.Execute[*domain.DeliveryReplayed](c, h.journal, &domain.ReplayDelivery{ID: id, Operator: operator, Row: row, AsOf: asOf})
		var refused *submit.RefusedError
		if !errors.As(err, &refused) || refused.Refusal.Code != domain.CodeDeliveryForgotten {
			return e, err
		}
		if tries == replayTries || waiting.Err() != nil {
			return nil, rowsBehind()
		}
		if row, asOf, err = h.deliveryRow(waiting, c, id, refused.AsOf.Sequence); err != nil {
			return nil, err
		}
	}
}

// replayDelivery restarts a delivery of the caller's tenant.
func (h *Handler) replayDelivery(c echo.Context) error {
	id, err := h.toReplay(c)
	if err != nil {
		return err
	}
	e, err := h.replay(c, id, false)
	if err != nil {
		return err
	}
	return h.showReplayed(c, e)
}

// toReplay returns the delivery that the request names, if the caller may replay it.
func (h *Handler) toReplay(c echo.Context) (id scalar.ID, err error) {
	if err := rest.Await(c, journalName, h.cfg.Onboarding); err != nil { // the fold may not have reached the first use of the key
		return id, err
	}
	named := h.named
	if rest.Remembers(c, h.cfg.Onboarding, domain.CommandReplayDelivery) {
		named = h.namedBefore
	}
	v, err := named(c)
	if err == nil {
		err = rest.BodyAbsent(c)
	}
	if err == nil {
		err = h.mayReplay(c, v)
	}
	if err != nil {
		return id, err
	}
	return v.ID, nil
}

// namedBefore is named for a request with a known idempotency key. The webhook may have been deleted since, but the
// first response must be repeated. The rules check whether the request is the same.
func (h *Handler) namedBefore(c echo.Context) (*domain.Delivery, error) {
	path := rest.Path(c)
	path.ID("webhook_id")
	id := path.ID("delivery_id")
	if err := rest.Query(c).Merge(path).Done(); err != nil {
		return nil, err
	}
	v, err := h.lookUp(c, id)
	if err == nil && (v == nil || v.Tenant != rest.PrincipalOf(c).Broker) {
		err = deliveryNotFound()
	}
	return v, err
}

// mayReplay returns an error if the delivery is about a restricted owner, because those are hidden from the tenant. The
// rules check for erased owners.
func (h *Handler) mayReplay(c echo.Context, v *domain.Delivery) error {
	return h.view(c, func(s *domain.State) error {
		if o, exists := s.Owner(v.Ref); exists && o.State == owner.Restricted {
			return notFound(v.Ref.Type)
		}
		return nil
	})
}

// replayAnyDelivery restarts a delivery of any tenant.
func (h *Handler) replayAnyDelivery(c echo.Context) error {
	if err := rest.NoBody(c); err != nil {
		return err
	}
	id, err := anyDelivery(c)
	if err != nil {
		return err
	}
	e, err := h.replay(c, id, true)
	if err != nil {
		return err
	}
	return h.showReplayed(c, e)
}

// showReplayed responds with the delivery as the record left it, so that a repeated request gets the first response. It
// ignores X-Min-Log-Position: the replay has taken effect, and 412 would say otherwise.
func (h *Handler) showReplayed(c echo.Context, e *domain.DeliveryReplayed) error {
	return h.showDelivery(c, h.rows.FindDecided, e.ID, func(d *rows.Delivery) {
		d.Status, d.NextAttempt, d.Attempts = webhook.Pending, 0, e.Attempts
	})
}
