package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	maxRetention = 100 * 366 * 24 * 3600 // in seconds
	maxSeconds   = 100 * 365 * 24 * 3600 // limit of a deadline, in seconds
	// foldWithin is the time that this node's fold may take to reach a record about a hold.
	foldWithin = 5 * time.Second
)

// certificate is the state of an owner's erasure.
type certificate struct {
	owner.Ref
	RequestedAt scalar.Time  `json:"requested_at"`
	RequestedBy string       `json:"requested_by"`
	Reason      string       `json:"reason"`
	RetainUntil scalar.Time  `json:"retain_until"`
	ErasedAt    *scalar.Time `json:"erased_at"`
	// KeyID identifies the key that was destroyed at KeyDestroyedAt. After that time, the owner's data cannot be read
	// anywhere.
	KeyID          *string      `json:"key_id"`
	KeyDestroyedAt *scalar.Time `json:"key_destroyed_at"`
	// Positions are the log positions of the records that prove the steps.
	Positions []string `json:"positions"`
}

// held is the response to a hold and to its release.
type held struct {
	owner.Ref
	Held   bool        `json:"held"`
	Reason string      `json:"reason"`
	Time   scalar.Time `json:"time"`
}

// erasureRoutes returns the routes of erasures, holds and retention.
func (h *Handler) erasureRoutes() []rest.Route {
	routes := []rest.Route{read("/retention", h.getRetention), put("/retention", h.setRetention)}
	for _, t := range []owner.Type{owner.PersonType, owner.CorporateType} {
		one := "/" + string(t) + "s/:" + string(t) + "_id"
		routes = append(routes,
			post(one+"/erase", h.eraseOwner(t)),
			post(one+"/hold", h.holdOwner(t)),
			post(one+"/release-hold", h.releaseOwner(t)),
			read(one+"/erasure", h.getErasure(t)))
	}
	return routes
}

// aboutOwner reads a command about an owner, which has only a reason, and encrypts the reason with the venue's key.
func (h *Handler) aboutOwner(c echo.Context, t owner.Type) (ref owner.Ref, reason string, sealed onboarding.Sealed, body *input.Form, err error) {
	body = rest.BodyOnly(c).Seal(h.cfg.MAC)
	reason = body.String("reason", input.Visible, input.MaxLength(maxReason))
	if err = body.Done(); err != nil {
		return ref, "", nil, nil, err
	}
	if ref, err = ownerNamed(c, t); err != nil {
		return ref, "", nil, nil, err
	}
	sealed, err = h.cfg.Box.Seal([]byte(reason), seal.ErasureReason(ref))
	return ref, reason, sealed, body, err
}

// ownerNamed reads the owner's ID from the route.
func ownerNamed(c echo.Context, t owner.Type) (owner.Ref, error) {
	id, err := named(c, string(t)+"_id", func() error { return ownerUnknown(t) })
	return owner.Ref{Type: t, ID: id}, err
}

func ownerUnknown(t owner.Type) error {
	if t == owner.CorporateType {
		return problem.NotFound("CORPORATE_NOT_FOUND", "There is no such corporate.")
	}
	return problem.NotFound("PERSON_NOT_FOUND", "There is no such person.")
}

func (h *Handler) eraseOwner(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		ref, reason, sealed, body, err := h.aboutOwner(c, t)
		if err != nil {
			return err
		}
		x, err := h.onboarding.Execute(rest.RequestOf(c), &onboarding.EraseOwner{Ref: ref, Reason: sealed}, body)
		if err != nil {
			return err
		}
		e, err := operation.Answer[*onboarding.OwnerRestricted](x)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, certify(ref, reason, &onboarding.Erasure{RequestedAt: e.Time, RequestedBy: e.RequestedBy,
			RetainUntil: e.RetainUntil, Positions: []int64{x.Entry.Record.Sequence}}))
	}
}

func certify(ref owner.Ref, reason string, e *onboarding.Erasure) certificate {
	out := certificate{Ref: ref, RequestedAt: e.RequestedAt, RequestedBy: e.RequestedBy, Reason: reason, RetainUntil: e.RetainUntil,
		ErasedAt: instant(e.ErasedAt), KeyDestroyedAt: instant(e.KeyDestroyed)}
	if e.KeyID != "" {
		out.KeyID = &e.KeyID
	}
	for _, sequence := range e.Positions {
		out.Positions = append(out.Positions, record.LogPosition{Journal: onboardingJournal, Sequence: sequence}.String())
	}
	return out
}

// instant returns a pointer to t, or nil if t is zero.
func instant(t scalar.Time) *scalar.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// holdOwner writes a hold to the key store and then to the log. The hold in the key store stops every copy of this
// venue from destroying the key, so it must exist before the client gets an answer.
func (h *Handler) holdOwner(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		ref, reason, sealed, body, err := h.aboutOwner(c, t)
		if err != nil {
			return err
		}
		// Continue after the client has disconnected: a refused command must remove its hold.
		ctx := context.WithoutCancel(c.Request().Context())
		fresh, err := h.cfg.Owners.Hold(ctx, ref.String())
		if err != nil {
			return h.keyError(c, ref, err)
		}
		x, err := h.onboarding.Execute(rest.RequestOf(c), &onboarding.HoldOwner{Ref: ref, Reason: sealed}, body)
		if err != nil {
			var unknown *submit.OutcomeUnknownError
			if fresh && !errors.As(err, &unknown) { // if the outcome is unknown, keep the hold: the record may still follow
				_, gone := h.cfg.Owners.Release(ctx, ref.String())
				err = errors.Join(err, gone)
			}
			return err
		}
		e, err := operation.Answer[*onboarding.OwnerHeld](x)
		if err != nil {
			return err
		}
		// A concurrent release may have removed the hold after this record was appended. And if this is a repeated
		// request, its hold may have been released in between.
		switch held, err := h.isHeld(ctx, ref, x.Position.Sequence); {
		case err != nil:
			return err
		case held:
			if _, err := h.cfg.Owners.Hold(ctx, ref.String()); err != nil {
				return h.keyError(c, ref, err)
			}
		case fresh:
			if _, err := h.cfg.Owners.Release(ctx, ref.String()); err != nil {
				return h.keyError(c, ref, err)
			}
		}
		return c.JSON(http.StatusOK, held{ref, true, reason, e.Time})
	}
}

// releaseOwner removes a hold from the log and then from the key store. If the log has no hold, it still removes one
// from the key store: the record may have been lost, or this venue may have been restored from an older backup.
func (h *Handler) releaseOwner(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		ref, reason, sealed, body, err := h.aboutOwner(c, t)
		if err != nil {
			return err
		}
		ctx := context.WithoutCancel(c.Request().Context())
		if err := h.cfg.Owners.MayChange(ctx); err != nil {
			return h.keyError(c, ref, err)
		}
		x, err := h.onboarding.Execute(rest.RequestOf(c), &onboarding.ReleaseOwner{Ref: ref, Reason: sealed}, body)
		var refused *submit.RefusedError
		if errors.As(err, &refused) {
			was, failed := h.releaseLost(ctx, ref, refused.AsOf.Sequence)
			switch {
			case failed != nil:
				return h.keyError(c, ref, failed)
			case !was:
				return err
			}
			return c.JSON(http.StatusOK, held{ref, false, reason, scalar.TimeOf(time.Now())})
		}
		if err != nil {
			return err
		}
		e, err := operation.Answer[*onboarding.OwnerReleased](x)
		if err != nil {
			return err
		}
		if _, err := h.releaseKey(ctx, ref, x.Position.Sequence); err != nil {
			return h.keyError(c, ref, err)
		}
		return c.JSON(http.StatusOK, held{ref, false, reason, e.Time})
	}
}

// releaseKey removes an owner's hold from the key store, and reports whether there was one. It keeps the hold if the log has one
// as of the given sequence or later.
func (h *Handler) releaseKey(ctx context.Context, ref owner.Ref, sequence int64) (was bool, err error) {
	held, err := h.isHeld(ctx, ref, sequence)
	if err != nil || held {
		return false, err
	}
	return h.cfg.Owners.Release(ctx, ref.String())
}

// releaseLost is releaseKey after the log has refused to release a hold. It does nothing if the policy asks for two persons,
// because the refusal is of one person.
func (h *Handler) releaseLost(ctx context.Context, ref owner.Ref, sequence int64) (was bool, err error) {
	held, err := h.isHeld(ctx, ref, sequence)
	if err != nil || held {
		return false, err
	}
	two := false
	h.cfg.Onboarding.View(func(s decide.State, _ record.Position) {
		policy := s.(*onboarding.State).Policy()
		two = policy.Covers(&decide.Subject{Action: onboarding.CommandReleaseOwner})
	})
	if two {
		return false, nil
	}
	return h.cfg.Owners.Release(ctx, ref.String())
}

// isHeld reports whether the log has a hold on an owner, as of the given sequence or later.
func (h *Handler) isHeld(ctx context.Context, ref owner.Ref, sequence int64) (held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, foldWithin)
	defer cancel()
	if err := h.cfg.Onboarding.Wait(ctx, sequence); err != nil {
		return false, problem.Unavailable("KEYS_UNAVAILABLE", "This node does not know yet whether the owner is held.", time.Second).Because(err)
	}
	h.cfg.Onboarding.View(func(s decide.State, _ record.Position) { held = s.(*onboarding.State).Held(ref) })
	return held, nil
}

// keyError converts an error of the key store about an owner to a response. It returns nil if err is nil.
func (h *Handler) keyError(c echo.Context, ref owner.Ref, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, seal.ErrDestroyed):
		return ownerUnknown(ref.Type)
	case errors.Is(err, seal.ErrMissing): // if the owner exists, the key store has lost its key
		known := false
		if failed := h.viewOnboarding(c, func(s *onboarding.State) error { _, known = s.Owner(ref); return nil }); failed != nil {
			return failed
		}
		if !known {
			return ownerUnknown(ref.Type)
		}
	}
	return problem.KeysFailed(err)
}

// getErasure returns the certificate of an owner's erasure, which may be incomplete.
func (h *Handler) getErasure(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := rest.NoQuery(c); err != nil {
			return err
		}
		ref, err := ownerNamed(c, t)
		if err != nil {
			return err
		}
		var found onboarding.Erasure
		err = h.viewOnboarding(c, func(s *onboarding.State) error {
			if _, known := s.Owner(ref); !known {
				return ownerUnknown(t)
			}
			e, requested := s.Erasure(ref)
			if !requested {
				return problem.NotFound("ERASURE_NOT_FOUND", "Nobody asked for the owner's erasure.")
			}
			found = *e
			return nil
		})
		if err != nil {
			return err
		}
		reason, err := h.cfg.Box.Open(found.Reason, seal.ErasureReason(ref))
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, certify(ref, string(reason), &found))
	}
}

// retention is how long an owner's data is retained after a request for erasure. A change applies to later requests.
type retention struct {
	Seconds int64 `json:"seconds"`
}

func (h *Handler) setRetention(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &onboarding.SetRetention{Seconds: body.Integer("seconds", 0, maxRetention)}
	e, err := rest.Execute[*onboarding.RetentionSet](c, h.onboarding, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, retention{e.Seconds})
}

func (h *Handler) getRetention(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	var out retention
	err := h.viewOnboarding(c, func(s *onboarding.State) error {
		out.Seconds = int64(s.Retention() / scalar.Second)
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}
