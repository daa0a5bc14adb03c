package onboarding

import (
	"context"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// videoReason is the reason of a requirement for video identification.
const videoReason = "video_identification"

// pending lists the questionnaires that are required for one reason.
type pending struct {
	Reason         string      `json:"reason"`
	Questionnaires []scalar.ID `json:"pending_questionnaire_ids"`
	Erased         bool        `json:"erased,omitzero"` // whether the reason is erased
}

// listPending lists the open requirements of all of an owner's triggers, oldest first.
func (h *Handler) listPending(c echo.Context) error {
	t, q, err := h.readBareTarget(c)
	if err != nil {
		return err
	}
	var open []view.PendingRequirement
	if q != nil {
		open, err = h.pendingAsOf(c, q, t)
	} else {
		open, err = h.pendingOf(c, t.Ref)
	}
	if err != nil {
		return err
	}
	out, err := h.showPending(c.Request().Context(), t.Ref, open)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// pendingOf returns the open requirements of an owner's triggers, oldest first.
func (h *Handler) pendingOf(c echo.Context, of owner.Ref) (open []view.PendingRequirement, err error) {
	err = h.rows.Read(c, func(ctx context.Context, db projections.DB) (asOf int64, err error) {
		open, asOf, err = view.PendingRequirements(ctx, db, viewer(c), of)
		return asOf, err
	})
	return open, err
}

// showPending converts open requirements to their JSON form.
func (h *Handler) showPending(ctx context.Context, of owner.Ref, open []view.PendingRequirement) ([]pending, error) {
	out := make([]pending, 0, len(open))
	for i := range open {
		reason, err := h.pendingReason(ctx, of, &open[i])
		if err != nil {
			return nil, err
		}
		out = append(out, pending{Reason: reason, Questionnaires: append([]scalar.ID{}, open[i].Questionnaires...), Erased: reason == ""})
	}
	return out, nil
}

// pendingReason returns the text of the reason of an open requirement.
func (h *Handler) pendingReason(ctx context.Context, of owner.Ref, p *view.PendingRequirement) (string, error) {
	if p.Source == entitlement.FromVideo {
		return videoReason, nil
	}
	return h.reason(ctx, of, p.TriggerID, p.Reason)
}

// reason returns the text of a trigger's reason: the venue's, or an operator's after decryption. It returns "" if the
// text cannot be decrypted because the owner is erased.
func (h *Handler) reason(ctx context.Context, of owner.Ref, trigger scalar.ID, r domain.Reason) (string, error) {
	if r.Sealed == nil {
		return r.Text, nil
	}
	text, err := h.text(ctx, of, seal.Reason(of, trigger), r.Sealed)
	if err != nil && isGone(err) {
		return "", nil
	}
	return text, err
}

// text decrypts a text that was encrypted as raw bytes.
func (h *Handler) text(ctx context.Context, of owner.Ref, at seal.AssociatedData, c []byte) (string, error) {
	plain, err := h.cfg.Owners.Open(ctx, c, at)
	if err != nil {
		return "", sealing(of, err)
	}
	return string(plain), nil
}

// getTimeline returns the events of a case in order.
func (h *Handler) getTimeline(c echo.Context) error {
	t, q, err := h.readBareTarget(c, "trigger_id")
	if err != nil {
		return err
	}
	if q != nil {
		return h.timelineAsOf(c, q, t)
	}
	if _, err := h.trigger(c, t); err != nil {
		return err
	}
	out, err := h.timeline(c, t.ids["trigger_id"])
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// timeline returns the events of a case in order, as far as the caller may see them.
func (h *Handler) timeline(c echo.Context, trigger scalar.ID) ([]wire.CaseEvent, error) {
	events, err := h.caseEvents(c, trigger)
	if err != nil {
		return nil, err
	}
	return h.showCaseEvents(c, events)
}

func (h *Handler) caseEvents(c echo.Context, trigger scalar.ID) (events []view.TriggerEvent, err error) {
	err = h.rows.Read(c, func(ctx context.Context, db projections.DB) (asOf int64, err error) {
		events, asOf, err = view.Timeline(ctx, db, trigger)
		return asOf, err
	})
	return events, err
}

// timelineUntil reads the events of a case up to a sequence, at which the caller has read the trigger. Its snapshot may be later.
func timelineUntil(ctx context.Context, db projections.DB, trigger scalar.ID, sequence int64) ([]view.TriggerEvent, error) {
	events, _, err := view.Timeline(ctx, db, trigger)
	return slices.DeleteFunc(events, func(e view.TriggerEvent) bool { return e.Sequence > sequence }), err
}

// showCaseEvents converts events of a case to their JSON form.
func (h *Handler) showCaseEvents(c echo.Context, events []view.TriggerEvent) (out []wire.CaseEvent, err error) {
	out = make([]wire.CaseEvent, len(events))
	for i := range events {
		if out[i], err = h.showCaseEvent(c, &events[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// showCaseEvent converts an event of a case to its JSON form. Operators also see the actor and the texts that are for
// operators.
func (h *Handler) showCaseEvent(c echo.Context, e *view.TriggerEvent) (wire.CaseEvent, error) {
	ctx := c.Request().Context()
	out := wire.CaseEvent{Sequence: e.Sequence, Time: e.Time, Type: e.Type, ActorKind: e.By, Action: orNull(e.Action), Status: orNull(e.Status),
		Result: orNull(e.Result), Code: orNull(e.Code), Outcome: orNull(e.Outcome), EventID: orNull(e.NoticeID), EventType: orNull(e.NoticeType),
		QuestionnaireIDs: append([]scalar.ID{}, e.Questionnaires...)}
	for _, r := range e.Open {
		for _, id := range r.Questionnaires { // a questionnaire may be required for several reasons
			if !slices.Contains(out.QuestionnaireIDs, id) {
				out.QuestionnaireIDs = append(out.QuestionnaireIDs, id)
			}
		}
	}
	reason, err := h.reason(ctx, e.Ref, e.TriggerID, e.Reason)
	if err != nil {
		return out, err
	}
	out.Reason = orNull(reason)
	out.Erased = seesErased(c) && e.Code != "" && out.Reason == nil // every code came with a reason
	if !rest.PrincipalOf(c).Has(access.ScopeOperator) {
		return out, nil
	}
	out.CaseOfOperator = &wire.CaseOfOperator{Actor: e.Actor}
	if out.InternalReason, err = h.optionalText(ctx, e.Ref, seal.InternalReason(e.Ref, e.TriggerID), e.InternalReason); err != nil {
		return out, err
	}
	out.ExternalReference, err = h.optionalText(ctx, e.Ref, seal.ExternalReference(e.Ref, e.TriggerID), e.ExternalReference)
	return out, err
}

// optionalText is text for an optional text. It returns nil if there is none or if it cannot be decrypted any more.
func (h *Handler) optionalText(ctx context.Context, of owner.Ref, at seal.AssociatedData, c []byte) (*string, error) {
	if c == nil {
		return nil, nil
	}
	text, err := h.text(ctx, of, at, c)
	if err != nil && isGone(err) {
		return nil, nil
	}
	return &text, err
}

// orNull returns a pointer to v, or nil if v is the zero value.
func orNull[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}
