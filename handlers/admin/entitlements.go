package admin

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

var approvals = []string{string(entitlement.Automatic), string(entitlement.Manual)}

// entitlementShown is an entitlement definition as operators see it.
type entitlementShown struct {
	wire.Entitlement
	OwnerType           owner.Type           `json:"owner_type"`
	Approval            entitlement.Approval `json:"approval"`
	VideoIdentification bool                 `json:"video_identification"`
	DeadlineSeconds     *int64               `json:"deadline_seconds"` // null: no deadline
	OpensTradingAccount bool                 `json:"opens_trading_account"`
}

// entitlementRoutes returns the routes of entitlements.
func (h *Handler) entitlementRoutes() []rest.Route {
	return []rest.Route{
		read("/entitlements", h.listEntitlements),
		post("/entitlements", h.createEntitlement),
		read("/entitlements/:id", h.getEntitlement),
		patch("/entitlements/:id", h.changeEntitlement),
	}
}

func newEntitlement(d *entitlement.Definition) entitlementShown {
	out := entitlementShown{Entitlement: wire.NewEntitlement(d), OwnerType: d.OwnerType, Approval: d.Approval,
		VideoIdentification: d.VideoIdentification, OpensTradingAccount: d.OpensTradingAccount}
	if d.DeadlineSeconds > 0 {
		out.DeadlineSeconds = &d.DeadlineSeconds
	}
	return out
}

func (h *Handler) createEntitlement(c echo.Context) error {
	body := rest.BodyOnly(c)
	items, _ := readItems(body)
	payload := &onboarding.CreateEntitlement{
		Name:                body.String("name", input.MaxLength(maxTitle)),
		Description:         body.OptionalText("description", input.MaxLength(maxDescription)).Value,
		OwnerType:           owner.Type(body.Enum("owner_type", ownerTypes...)),
		Questionnaires:      items,
		Approval:            entitlement.Approval(body.Enum("approval", approvals...)),
		VideoIdentification: body.OptionalBool("video_identification").Value,
		DeadlineSeconds:     body.OptionalInteger("deadline_seconds", 1, maxSeconds).Value,
		OpensTradingAccount: body.OptionalBool("opens_trading_account").Value,
	}
	e, err := rest.Execute[*onboarding.EntitlementCreated](c, h.onboarding, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, newEntitlement(&e.Definition))
}

func (h *Handler) changeEntitlement(c echo.Context) error {
	body := rest.BodyOnly(c)
	items, given := readItems(body)
	payload := &onboarding.ChangeEntitlement{
		Name:                body.OptionalString("name", input.MaxLength(maxTitle)).Pointer(),
		Description:         body.OptionalText("description", input.MaxLength(maxDescription)).Pointer(),
		VideoIdentification: body.OptionalBool("video_identification").Pointer(),
		DeadlineSeconds:     body.OptionalInteger("deadline_seconds", 1, maxSeconds).Pointer(),
		OpensTradingAccount: body.OptionalBool("opens_trading_account").Pointer(),
	}
	if given {
		payload.Questionnaires = items
	}
	if approval := body.OptionalEnum("approval", approvals...); approval.Set {
		payload.Approval = (*entitlement.Approval)(&approval.Value)
	}
	if body.Null("deadline_seconds") { // null removes the deadline
		payload.DeadlineSeconds = new(int64)
	}
	fields := []string{"name", "description", "questionnaires", "approval", "video_identification", "deadline_seconds", "opens_trading_account"}
	if !slices.ContainsFunc(fields, body.Has) && !body.Null("deadline_seconds") {
		body.Fault("", validation.Required, "at least one field is required")
	}
	e, err := executeNamed[*onboarding.EntitlementChanged](c, h, body, payload, &payload.ID, entitlementUnknown)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, newEntitlement(&e.Definition))
}

// readItems reads the questionnaires of a definition. Questionnaires and positions must be unique.
func readItems(body *input.Form) (items []entitlement.Item, given bool) {
	items = []entitlement.Item{}
	given = body.OptionalObjects("questionnaires", 0, onboarding.MaxQuestionnaires, func(i int, f *input.Form) {
		item := entitlement.Item{QuestionnaireID: f.ID("questionnaire_id"), Position: int(f.Integer("position", 0, maxPosition))}
		switch {
		case f.Faulty("questionnaire_id") || f.Faulty("position"):
			return
		case slices.ContainsFunc(items, func(o entitlement.Item) bool { return o.QuestionnaireID == item.QuestionnaireID }):
			f.Fault("questionnaire_id", validation.InvalidValue, "the questionnaire is named before")
		case slices.ContainsFunc(items, func(o entitlement.Item) bool { return o.Position == item.Position }):
			f.Fault("position", validation.InvalidValue, "the position is taken already")
		}
		items = append(items, item)
	})
	return items, given
}

func (h *Handler) listEntitlements(c echo.Context) error {
	return listNamed(c, h, (*onboarding.State).Entitlements, newEntitlement)
}

func (h *Handler) getEntitlement(c echo.Context) error {
	return getNamed(c, h, entitlementUnknown, func(s *onboarding.State, id scalar.ID) (out entitlementShown, known bool) {
		d, known := s.Entitlement(id)
		if known {
			out = newEntitlement(d)
		}
		return out, known
	})
}

func entitlementUnknown() error {
	return problem.NotFound("ENTITLEMENT_NOT_FOUND", "There is no such entitlement.")
}
