package onboarding

import (
	"context"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/proofs"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// responseRoutes returns the routes of owners' responses.
func (h *Handler) responseRoutes(k kind) []rest.Route {
	return []rest.Route{
		post(k.one()+"/questionnaires/:questionnaire_id/response", h.addResponse),
		get(k.one()+"/responses", h.listResponses),
		get(k.one()+"/responses/:response_id", h.getResponse),
		get(k.one()+"/responses/:response_id/receipt", h.responseReceipt),
	}
}

// addResponse records an owner's answers to a questionnaire, all or nothing.
func (h *Handler) addResponse(c echo.Context) error {
	t, err := h.written(c, "questionnaire_id")
	if err != nil {
		return err
	}
	versions, err := h.versions(c, t)
	if err != nil {
		return err
	}
	body := t.body(c)
	version, answers, err := h.checkAnswers(c, body, t, versions)
	if err != nil {
		return err
	}
	payload := &domain.AddResponse{Ref: t.Ref, QuestionnaireID: version.QuestionnaireID, VersionID: version.ID, Given: given(answers)}
	ctx := c.Request().Context()
	if payload.Answers, err = h.seal(ctx, t.Ref, seal.Answers(t.Ref, version.ID), answers); err != nil {
		return err
	}
	e, err := rest.Execute[*domain.ResponseAdded](c, h.journal, payload, h.personal(c, body))
	if err != nil {
		return err
	}
	shown, err := h.showResponse(ctx, e)
	if err != nil {
		return err
	}
	return created(c, shown)
}

// readAnswers reads the answers of a response and returns, for each, whether its form is valid.
func readAnswers(body *input.Form) (answers []questionnaire.Answer, sound []bool) {
	answers = []questionnaire.Answer{}
	body.Objects("answers", 0, questionnaire.MaxAnswers, func(_ int, f *input.Form) {
		answers = append(answers, questionnaire.Answer{
			QuestionID:  f.ID("question_id"),
			Text:        f.AnyText(questionnaire.FieldText).Pointer(),
			Integer:     f.OptionalWhole(questionnaire.FieldInteger).Pointer(),
			Boolean:     f.OptionalBool(questionnaire.FieldBoolean).Pointer(),
			Country:     f.AnyText(questionnaire.FieldCountry).Pointer(),
			OptionID:    f.OptionalID(questionnaire.FieldOption).Pointer(),
			OptionIDs:   f.OptionalIDs(questionnaire.FieldOptions, questionnaire.MaxIDs).Pointer(),
			DocumentID:  f.OptionalID(questionnaire.FieldDocument).Pointer(),
			DocumentIDs: f.OptionalIDs(questionnaire.FieldDocuments, questionnaire.MaxIDs).Pointer(),
		})
		sound = append(sound, f.Sound())
	})
	return answers, sound
}

// versions returns the versions of the questionnaire in the route, or none if its ID is not a UUID.
func (h *Handler) versions(c echo.Context, t *target) (versions []domain.CatalogueVersion, err error) {
	if t.owner == nil || t.malformed {
		return nil, nil
	}
	return versions, h.view(c, func(s *domain.State) (err error) {
		_, versions, err = catalogued(s, t.ids["questionnaire_id"], func(o *domain.Owner) bool { return visible(rest.PrincipalOf(c), o) })
		return err
	})
}

// checkAnswers returns the version that the answers belong to, or all validation errors. The rules check whether the
// version may be answered now, because only they can recognize a repeated request.
func (h *Handler) checkAnswers(c echo.Context, body *input.Form, t *target, versions []domain.CatalogueVersion) (*questionnaire.Version, []questionnaire.Answer, error) {
	answers, sound := readAnswers(body)
	if body.Faulty("answers") { // the list is missing or invalid
		return nil, nil, body.Done()
	}
	owns, err := h.documents(c, t.Ref, answers)
	if err != nil {
		return nil, nil, err
	}
	version, errs := answered(versions, answers, owns)
	for _, e := range errs {
		if i, one := answerOf(e); !one || sound[i] { // other answers already have an error of their form
			body.Add(e)
		}
	}
	if err := body.Done(); err != nil {
		return nil, nil, err
	}
	if version == nil {
		return nil, nil, problem.Conflict("QUESTIONNAIRE_NOT_PUBLISHED", "The questionnaire is not published.")
	}
	return version, answers, nil
}

// answered returns the version that the answers belong to, and their errors. It prefers a published version, unless
// the answers are valid for another one: that may have been published earlier, and a repeated request must get the
// first response. Errors refer to published versions only, so clients learn nothing about others. The version is nil
// if no published one matches.
func answered(versions []domain.CatalogueVersion, answers []questionnaire.Answer, owns func(scalar.ID) bool) (*questionnaire.Version, []validation.FieldError) {
	var all, published []*questionnaire.Version
	for _, v := range versions {
		all = append(all, v.Version)
		if v.Published {
			published = append(published, v.Version)
		}
	}
	version := questionnaire.VersionOf(published, answers)
	var errs []validation.FieldError
	if version != nil {
		errs = version.Check(answers, owns)
	}
	if version != nil && len(errs) == 0 {
		return version, nil
	}
	if hidden := questionnaire.VersionOf(all, answers); hidden != nil && len(hidden.Check(answers, owns)) == 0 {
		return hidden, nil
	}
	return version, errs
}

// documents returns a function that reports whether a document named in the answers belongs to the owner.
func (h *Handler) documents(c echo.Context, of owner.Ref, answers []questionnaire.Answer) (func(scalar.ID) bool, error) {
	owned := make(map[scalar.ID]bool)
	err := h.view(c, func(s *domain.State) error {
		for i := range answers {
			for _, id := range answers[i].Documents() {
				d, known := s.Document(id)
				owned[id] = known && d.Ref == of
			}
		}
		return nil
	})
	return func(id scalar.ID) bool { return owned[id] }, err
}

// answerOf returns the index of the answer to which an error belongs, if any.
func answerOf(e validation.FieldError) (i int, one bool) {
	if len(e.Path) < 2 {
		return 0, false
	}
	i, one = e.Path[1].(int)
	return i, one
}

// given returns the part of the answers that commands carry unencrypted.
func given(answers []questionnaire.Answer) []domain.Given {
	out := make([]domain.Given, len(answers))
	for i := range answers {
		a := &answers[i]
		out[i] = domain.Given{QuestionID: a.QuestionID, Field: a.Fields()[0], Empty: a.IsEmpty(), Documents: a.Documents()}
	}
	return out
}

// showResponse decrypts a response's answers and returns its JSON form.
func (h *Handler) showResponse(ctx context.Context, e *domain.ResponseAdded) (wire.Response, error) {
	if e.Answers == nil { // the owner is erased, but the fold has not read that yet
		return wire.Response{}, notFound(e.Type)
	}
	answers, err := h.cfg.Owners.Open(ctx, e.Answers, seal.Answers(e.Ref, e.VersionID))
	return wire.Response{ID: e.ID, QuestionnaireID: e.QuestionnaireID, VersionID: e.VersionID, Ref: e.Ref, Answers: answers, Created: e.Created}, sealing(e.Ref, err)
}

// showResponseThen is showResponse for a read that may be as of a past record: that of an erased owner has no answers.
func (h *Handler) showResponseThen(c echo.Context, e *domain.ResponseAdded) (wire.Response, error) {
	shown, err := h.showResponse(c.Request().Context(), e)
	if h.isErased(c, err) {
		return wire.Response{ID: e.ID, QuestionnaireID: e.QuestionnaireID, VersionID: e.VersionID, Ref: e.Ref, Answers: []byte("[]"), Created: e.Created,
			Erased: true}, nil
	}
	return shown, err
}

// listResponses lists an owner's responses, newest first.
func (h *Handler) listResponses(c echo.Context) error {
	return listedOf(c, h, func(t *target) pageOf[view.Response] {
		return func(ctx context.Context, db projections.DB, size, offset int) ([]view.Response, int, int64, error) {
			return view.Responses(ctx, db, viewer(c), t.Ref, size, offset)
		}
	}, view.ResponsesAsOf, func(ctx context.Context, row *view.Response) (any, error) {
		return h.showResponseThen(c, &row.ResponseAdded)
	})
}

func (h *Handler) getResponse(c echo.Context) error {
	t, q, err := h.readBareTarget(c, "response_id")
	if err != nil {
		return err
	}
	var row view.Response
	if q != nil {
		row, err = pastOne(c, h, q, t, t.ids["response_id"], view.ResponseAsOf, responseNotFound)
	} else {
		row, err = h.responseRow(c, t)
	}
	if err != nil {
		return err
	}
	shown, err := h.showResponseThen(c, &row.ResponseAdded)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, shown)
}

func responseNotFound() error {
	return problem.NotFound("RESPONSE_NOT_FOUND", "There is no such response.")
}

// oneResponse reads the response that the route names.
func (h *Handler) oneResponse(c echo.Context) (t *target, row view.Response, err error) {
	if t, err = h.shownBare(c, "response_id"); err != nil {
		return t, row, err
	}
	row, err = h.responseRow(c, t)
	return t, row, err
}

func (h *Handler) responseRow(c echo.Context, t *target) (view.Response, error) {
	return one(c, h, func(ctx context.Context, db projections.DB) (view.Response, bool, int64, error) {
		return view.OneResponse(ctx, db, viewer(c), t.Ref, t.ids["response_id"])
	}, responseNotFound)
}

// responseReceipt responds with the receipt of the record of a response, for its owner and the tenant.
func (h *Handler) responseReceipt(c echo.Context) error {
	t, row, err := h.oneResponse(c)
	if err != nil {
		return err
	}
	return h.proofs.Show(c, proofs.Wanted{Journal: journalName, Sequence: row.Sequence, AsOf: max(t.asOf, row.Sequence),
		Parties: []string{t.String(), "broker/" + row.Tenant}, Missing: responseNotFound(),
		Concerns: func(e record.Entry) bool {
			return slices.ContainsFunc(e.Record.Events, func(event decide.Event) bool {
				added, ok := event.(*domain.ResponseAdded)
				return ok && added.ID == row.ResponseAdded.ID
			})
		}})
}
