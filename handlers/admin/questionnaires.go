package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// These constants limit names and descriptions, in characters, and positions and version numbers.
const (
	maxTitle       = 255
	maxDescription = 10_000
	maxPosition    = 1_000_000
	maxVersion     = 1_000_000
)

var ownerTypes = []string{string(owner.PersonType), string(owner.CorporateType)}

// version is a version of a questionnaire as operators see it.
type version struct {
	wire.QuestionnaireVersion
	IsPublished bool `json:"is_published"`
}

// questionnaireShown is a questionnaire with all versions, number 1 first.
type questionnaireShown struct {
	wire.Questionnaire
	Versions []version `json:"versions"`
}

// questionnaireRoutes returns the routes of questionnaires.
func (h *Handler) questionnaireRoutes() []rest.Route {
	return []rest.Route{
		read("/questionnaires", h.listQuestionnaires),
		post("/questionnaires", h.createQuestionnaire),
		read("/questionnaires/:id", h.getQuestionnaire),
		patch("/questionnaires/:id", h.changeQuestionnaire),
		post("/questionnaires/:id/versions", h.addVersion),
		post("/questionnaires/:id/publish", h.publishQuestionnaire),
		post("/questionnaires/:id/unpublish", h.unpublishQuestionnaire),
	}
}

func (h *Handler) createQuestionnaire(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &onboarding.CreateQuestionnaire{
		Name:        body.String("name", input.MaxLength(maxTitle)),
		Description: body.OptionalText("description", input.MaxLength(maxDescription)).Value,
		OwnerType:   owner.Type(body.Enum("owner_type", ownerTypes...)),
		OwnerTypeID: body.OptionalID("owner_type_id").Value,
	}
	e, err := rest.Execute[*onboarding.QuestionnaireCreated](c, h.onboarding, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, wire.NewQuestionnaire(&e.Questionnaire, nil))
}

func (h *Handler) changeQuestionnaire(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &onboarding.ChangeQuestionnaire{
		Name:        body.OptionalString("name", input.MaxLength(maxTitle)).Pointer(),
		Description: body.OptionalText("description", input.MaxLength(maxDescription)).Pointer(),
	}
	if !body.Has("name") && !body.Has("description") {
		body.Fault("", validation.Required, "at least one field is required")
	}
	e, err := executeOnQuestionnaire[*onboarding.QuestionnaireChanged](c, h, body, payload, &payload.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewQuestionnaire(&e.Questionnaire, nil))
}

func (h *Handler) addVersion(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &onboarding.AddVersion{Questions: readQuestions(body)}
	e, err := executeOnQuestionnaire[*onboarding.VersionAdded](c, h, body, payload, &payload.QuestionnaireID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, version{wire.NewQuestionnaireVersion(&e.Version), false})
}

// readQuestions reads the questions of a new version and reports all errors of all questions.
func readQuestions(body *input.Form) []questionnaire.Question {
	var questions []questionnaire.Question
	body.Objects("questions", 1, questionnaire.MaxQuestions, func(i int, f *input.Form) {
		q := at(&questions, i)
		q.Label, q.Value, q.Position = readNamed(f)
		q.Type, q.IsOptional = questionnaire.QuestionType(f.Enum("question_type", questionTypes()...)), f.OptionalBool("is_optional").Value
		f.OptionalObjects("options", 0, questionnaire.MaxOptions, func(i int, f *input.Form) {
			o := at(&q.Options, i)
			o.Label, o.Value, o.Position = readNamed(f)
		})
	})
	for _, e := range questionnaire.CheckDraft(questions) {
		body.AddOnce(e)
	}
	return questions
}

// at returns a pointer to item i and extends the list if necessary. Items that are not objects are skipped and stay
// zero.
func at[T any](list *[]T, i int) *T {
	for len(*list) <= i {
		*list = append(*list, *new(T))
	}
	return &(*list)[i]
}

// readNamed reads the fields that questions and options share. It returns position -1 for an invalid position, so
// that it collides with no other.
func readNamed(f *input.Form) (label, value string, position int) {
	label, value, position = f.String("label"), f.String("value"), int(f.Integer("position", 0, maxPosition))
	if f.Faulty("position") {
		position = -1
	}
	return label, value, position
}

func questionTypes() []string {
	var names []string
	for _, t := range questionnaire.QuestionTypes() {
		names = append(names, string(t))
	}
	return names
}

func (h *Handler) publishQuestionnaire(c echo.Context) error {
	body := rest.OptionalBody(c)
	payload := &onboarding.PublishQuestionnaire{Number: int(body.OptionalInteger("version_number", 1, maxVersion).Value)}
	e, err := executeOnQuestionnaire[*onboarding.QuestionnairePublished](c, h, body, payload, &payload.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewQuestionnaire(&e.Questionnaire, nil))
}

func (h *Handler) unpublishQuestionnaire(c echo.Context) error {
	if err := rest.NoBody(c); err != nil {
		return err
	}
	id, err := named(c, "id", questionnaireUnknown)
	if err != nil {
		return err
	}
	e, err := rest.Execute[*onboarding.QuestionnaireUnpublished](c, h.onboarding, &onboarding.UnpublishQuestionnaire{ID: id})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewQuestionnaire(&e.Questionnaire, nil))
}

func (h *Handler) listQuestionnaires(c echo.Context) error {
	return listNamed(c, h, (*onboarding.State).Questionnaires, func(q *questionnaire.Questionnaire) wire.Questionnaire {
		return wire.NewQuestionnaire(q, nil)
	})
}

func (h *Handler) getQuestionnaire(c echo.Context) error {
	return getNamed(c, h, questionnaireUnknown, func(s *onboarding.State, id scalar.ID) (out questionnaireShown, known bool) {
		q, _, known := s.Questionnaire(id)
		if !known {
			return out, false
		}
		out = questionnaireShown{wire.NewQuestionnaire(q, nil), []version{}}
		for _, v := range s.QuestionnaireVersions(id) {
			out.Versions = append(out.Versions, version{wire.NewQuestionnaireVersion(v.Version), v.Published})
		}
		return out, true
	})
}

// executeOnQuestionnaire is executeNamed for a command that changes a questionnaire. One for a single owner does not change
// after that owner is erased. The rules refuse only changes for a restricted owner. A check before the rules is enough,
// because an erased owner stays erased. A repeated request still gets its first answer.
func executeOnQuestionnaire[E decide.Event](c echo.Context, h *Handler, body *input.Form, payload decide.Payload, id *scalar.ID) (e E, err error) {
	if err = body.Done(); err != nil {
		return e, err
	}
	about, err := named(c, "id", questionnaireUnknown)
	if err != nil {
		return e, err
	}
	if h.ownerErased(about) && !rest.Remembers(c, h.cfg.Onboarding, payload.CommandType()) {
		return e, h.viewOnboarding(c, func(*onboarding.State) error {
			return problem.Conflict("OWNER_ERASED", "The owner of the questionnaire is erased.")
		})
	}
	return executeNamed[E](c, h, body, payload, id, questionnaireUnknown)
}

// ownerErased reports whether a questionnaire is for a single owner who is erased.
func (h *Handler) ownerErased(id scalar.ID) (erased bool) {
	h.cfg.Onboarding.View(func(state decide.State, _ record.Position) {
		s := state.(*onboarding.State)
		if q, _, known := s.Questionnaire(id); known && !q.IsGeneric() {
			o, _ := s.Owner(owner.Ref{Type: q.OwnerType, ID: q.OwnerTypeID})
			erased = o != nil && o.State == owner.Erased
		}
	})
	return erased
}

func questionnaireUnknown() error {
	return problem.NotFound("QUESTIONNAIRE_NOT_FOUND", "There is no such questionnaire.")
}
