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
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/projections"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// rowWithin is how long the row of a delivery that the state has forgotten is waited for, and replayTries is how often a replay is
// asked for by then. One row mostly does that is as of where the log was a moment ago: thousands of other deliveries have to
// close before anything more is forgotten.
const (
	rowWithin   = 2 * time.Second
	replayTries = 5
)

// lookUp returns a delivery of whichever tenant: as the node's fold has it or, of those that states forget, as its row does. nil:
// there is none.
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
	if err == nil && v == nil && asOf < forgotten { // the rows are being made again, and it may come yet
		err = rowsBehind()
	}
	return v, err
}

// deliveryRow returns a delivery of whichever tenant as its row has it, and the sequence that this is as of. As long as the context
// has it, the rows are given time to come to a sequence, which they may not.
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

// replay has a delivery that is over be tried again. Most are known to the state of the journal's owner. Where it has forgotten
// one, it is told what the row says: the row as the log has it by then, whoever asks.
func (h *Handler) replay(c echo.Context, id scalar.ID, operator bool) (*domain.DeliveryReplayed, error) {
	waiting, cancel := context.WithTimeout(c.Request().Context(), rowWithin)
	defer cancel()
	var row *domain.Delivery
	var asOf int64
	for tries := 1; ; tries++ {
		e, err := web.Execute[*domain.DeliveryReplayed](c, h.journal, &domain.ReplayDelivery{ID: id, Operator: operator, Row: row, AsOf: asOf})
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

// replayDelivery has a delivery of the caller's tenant be tried again.
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

// toReplay reads which delivery is to be tried again, and whether it may be.
func (h *Handler) toReplay(c echo.Context) (id scalar.ID, err error) {
	if err := web.Await(c, journalName, h.cfg.Onboarding); err != nil { // the fold may not have come to where the key was used
		return id, err
	}
	named := h.named
	if web.Remembers(c, h.cfg.Onboarding, domain.CommandReplayDelivery) {
		named = h.namedBefore
	}
	v, err := named(c)
	if err == nil {
		err = web.BodyAbsent(c)
	}
	if err == nil {
		err = h.mayReplay(c, v)
	}
	if err != nil {
		return id, err
	}
	return v.ID, nil
}

// namedBefore is named for a request whose key was used before: the registration may be gone since, and the first answer stays.
// Whether it is the same request, the rules say.
func (h *Handler) namedBefore(c echo.Context) (*domain.Delivery, error) {
	path := web.Path(c)
	path.ID("webhook_id")
	id := path.ID("delivery_id")
	if err := web.Query(c).Also(path).Done(); err != nil {
		return nil, err
	}
	v, err := h.lookUp(c, id)
	if err == nil && (v == nil || v.Tenant != web.PrincipalOf(c).Broker) {
		err = deliveryNotFound()
	}
	return v, err
}

// mayReplay refuses what is about an owner who is restricted: the owner is not there for its tenant. That one is erased, the
// rules say.
func (h *Handler) mayReplay(c echo.Context, v *domain.Delivery) error {
	return h.view(c, func(s *domain.State) error {
		if o, some := s.Owner(v.Ref); some && o.State == owner.Restricted {
			return notFound(v.Ref.Type)
		}
		return nil
	})
}

// replayAnyDelivery has a delivery of whichever tenant be tried again.
func (h *Handler) replayAnyDelivery(c echo.Context) error {
	if err := web.NoBody(c); err != nil {
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

// showReplayed answers with a delivery as the record left it, whatever happened since: a repeated request has the first answer.
func (h *Handler) showReplayed(c echo.Context, e *domain.DeliveryReplayed) error {
	return h.showDelivery(c, e.ID, func(d *rows.Delivery) {
		d.Status, d.NextAttempt, d.Attempts = webhook.Pending, 0, e.Attempts
	})
}
