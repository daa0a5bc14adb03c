package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// These constants limit the texts of an action, in characters.
const (
	maxReason    = 2000
	maxReference = 255
)

// action is an operator's action on a trigger, with its texts before encryption.
type action struct {
	payload           onboarding.ActOnTrigger
	reason            string
	internalReason    string
	externalReference string
}

// actionRoutes returns the routes of the actions on triggers. The last segment of a route is the action's name.
func (h *Handler) actionRoutes() []rest.Route {
	var routes []rest.Route
	for _, a := range entitlement.Actions() {
		if a != entitlement.Start {
			routes = append(routes, post("/entitlement_triggers/:id/"+string(a), h.act(a)))
		}
	}
	return routes
}

// act returns the handler of one action on triggers.
func (h *Handler) act(name entitlement.Action) echo.HandlerFunc {
	return func(c echo.Context) error {
		body := rest.BodyOnly(c).Seal(h.cfg.MAC)
		asked := readAction(body, name)
		if err := body.Done(); err != nil {
			return err
		}
		id, err := named(c, "id", triggerUnknown)
		if err != nil {
			return err
		}
		asked.payload.ID = id
		about, err := h.ownerOf(c, id)
		if err != nil {
			return err
		}
		if err := h.sealAction(c.Request().Context(), about, &asked); err != nil {
			return err
		}
		x, err := h.onboarding.Execute(rest.RequestOf(c), &asked.payload, body)
		if err != nil {
			return err
		}
		shown, ok := acted(x.Entry.Record, id)
		if !ok {
			return x.Unanswered()
		}
		return c.JSON(http.StatusOK, shown)
	}
}

// readAction reads the body of an action. It reads only the fields that this action has.
func readAction(body *input.Form, name entitlement.Action) action {
	a := action{
		reason:         body.String("reason", input.Visible, input.MaxLength(maxReason)),
		internalReason: body.OptionalString("internal_reason", input.Visible, input.MaxLength(maxReason)).Value,
	}
	a.payload.Action, a.payload.Code = name, body.String("code", codeRule)
	switch name {
	case entitlement.RequestInformation:
		for i, text := range body.Distinct("questionnaire_ids") {
			id, err := scalar.ParseID(text)
			if err != nil {
				body.AddOnce(validation.FieldError{Path: validation.At("questionnaire_ids", i), Code: validation.InvalidValue, Message: "the value must be a UUID"})
			}
			a.payload.Questionnaires = append(a.payload.Questionnaires, id)
		}
		if len(a.payload.Questionnaires) > onboarding.MaxQuestionnaires {
			body.Fault("questionnaire_ids", validation.OutOfRange, "a request names 1 to 100 questionnaires")
		}
	case entitlement.CompleteVideoIdentification:
		a.payload.Outcome = onboarding.Outcome(body.Enum("outcome", string(onboarding.Passed), string(onboarding.NotPassed)))
		a.externalReference = body.OptionalString("external_reference", input.MaxLength(maxReference)).Value
	}
	return a
}

func codeRule(s string) (code, message string) {
	if len(s) > 64 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return validation.InvalidValue, "the value must be 1 to 64 characters out of A-Z, 0-9 and _"
	}
	if s == onboarding.OwnerErasedCode { // reserved for actions that an erasure ends
		return validation.InvalidValue, "OWNER_ERASED is what an erasure says, and nobody else"
	}
	return "", ""
}

// ownerOf returns the owner of a trigger, which never changes. If this node's fold does not contain the trigger,
// ownerOf asks the journal's owner, because the trigger may be new.
func (h *Handler) ownerOf(c echo.Context, trigger scalar.ID) (of owner.Ref, err error) {
	look := func() (known bool) {
		h.cfg.Onboarding.View(func(s decide.State, _ record.Position) {
			var t *onboarding.Trigger
			if t, known = s.(*onboarding.State).Trigger(trigger); known {
				of = t.Ref
			}
		})
		return known
	}
	if look() {
		return of, nil
	}
	// The engine refuses an action without a code, so the probe changes nothing. The kind of the refusal shows
	// whether the trigger exists.
	probe := &onboarding.ActOnTrigger{ID: trigger, Action: entitlement.Block}
	r := rest.RequestOf(c)
	_, err = operation.Submit(r, h.onboarding.To, h.onboarding.Name,
		decide.Command{ID: operation.NewID(), Type: probe.CommandType(), Actor: r.Principal().Actor(), Payload: probe})
	var refused *submit.RefusedError
	if !errors.As(err, &refused) {
		return of, err
	}
	if refused.Refusal.Kind == decide.NotFound {
		return of, err
	}
	if err := h.cfg.Onboarding.Wait(c.Request().Context(), refused.AsOf.Sequence); err != nil {
		return of, problem.SourceFailed(err)
	}
	if look() {
		return of, nil
	}
	return of, triggerUnknown()
}

// sealAction encrypts the texts of an action with the key of the trigger's owner.
func (h *Handler) sealAction(ctx context.Context, about owner.Ref, a *action) (err error) {
	for _, s := range []struct {
		into *onboarding.Sealed
		text string
		at   seal.AssociatedData
	}{
		{&a.payload.Reason, a.reason, seal.Reason(about, a.payload.ID)},
		{&a.payload.InternalReason, a.internalReason, seal.InternalReason(about, a.payload.ID)},
		{&a.payload.ExternalReference, a.externalReference, seal.ExternalReference(about, a.payload.ID)},
	} {
		if s.text == "" {
			continue
		}
		if *s.into, err = h.cfg.Owners.Seal(ctx, []byte(s.text), s.at); errors.Is(err, seal.ErrDestroyed) {
			return triggerUnknown() // the owner is erased
		} else if err != nil {
			return problem.SourceFailed(err)
		}
	}
	return nil
}

// acted returns the state of a trigger after a record. Other moves may follow the action in the same record.
func acted(r *record.Record, trigger scalar.ID) (shown wire.EntitlementTrigger, ok bool) {
	for _, event := range r.Events {
		if e, moved := event.(*onboarding.TriggerMoved); moved && e.ID == trigger {
			ok = true
			shown = wire.EntitlementTrigger{ID: e.ID, EntitlementID: e.EntitlementID, Status: e.Status, Result: e.Result, Ref: e.Ref, Created: e.Created}
		}
	}
	return shown, ok
}

func triggerUnknown() error {
	return problem.NotFound("ENTITLEMENT_TRIGGER_NOT_FOUND", "There is no such entitlement trigger.")
}
