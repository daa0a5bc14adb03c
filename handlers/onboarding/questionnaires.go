package onboarding

import (
	"context"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// maxVersion is the maximum version number in a request.
const maxVersion = 1_000_000

// questionnaireRoutes returns the routes of questionnaires: for all owners of a type, for one owner, and of one
// questionnaire.
func (h *Handler) questionnaireRoutes() []rest.Route {
	const path = base + "/questionnaires"
	return []rest.Route{
		get(path+"/persons", h.listQuestionnaires(owner.PersonType)),
		get(path+"/persons/:person_id", h.listQuestionnairesOf),
		get(path+"/corporates", h.listQuestionnaires(owner.CorporateType)),
		get(path+"/corporates/:corporate_id", h.listQuestionnairesOf),
		get(path+"/:id", h.getQuestionnaire),
	}
}

// questionnairePage is a page of questionnaires, which has no totals.
type questionnairePage struct {
	Items []any `json:"items"`
	Page  int   `json:"page"`
	Size  int   `json:"size"`
}

// listQuestionnaires lists the published questionnaires for all owners of a type.
func (h *Handler) listQuestionnaires(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		query := rest.Query(c)
		return h.questionnaires(c, query, asof.Read(query), view.QuestionnaireFilter{Type: t})
	}
}

// listQuestionnairesOf lists the published questionnaires for an owner: those for all owners of the type and those
// for this owner.
func (h *Handler) listQuestionnairesOf(c echo.Context) error {
	t, query, q, err := h.readTarget(c)
	if err != nil {
		return err
	}
	return h.questionnaires(c, query, q, view.QuestionnaireFilter{Type: t.Type, Owner: t.ID})
}

// questionnaires responds with a page of the filter's questionnaires, as of a past record if q is not nil.
func (h *Handler) questionnaires(c echo.Context, query *input.Form, q *asof.Question, f view.QuestionnaireFilter) error {
	p := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	if q != nil {
		return h.questionnairesAsOf(c, q, p, f)
	}
	items, _, err := page(c, h, p.Size, p.Offset(), func(ctx context.Context, db projections.DB, size, offset int) ([]view.Questionnaire, int, int64, error) {
		return view.Questionnaires(ctx, db, f, size, offset)
	}, itself(func(q *view.Questionnaire) wire.Questionnaire { return wire.NewQuestionnaire(&q.Questionnaire, nil) }))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, questionnairePage{items, p.Page, p.Size})
}

// questionnairesAsOf responds with a page of the questionnaires that were published as of a past record.
func (h *Handler) questionnairesAsOf(c echo.Context, q *asof.Question, p rest.Numbered, f view.QuestionnaireFilter) error {
	var all []any
	err := h.viewThen(c, q, func(s *domain.State) error {
		if !f.Owner.IsZero() {
			if _, known := s.Owner(owner.Ref{Type: f.Type, ID: f.Owner}); !known {
				return asof.NotYet("The owner was not registered yet.")
			}
		}
		found, _ := s.Questionnaires(0, math.MaxInt)
		for _, o := range found {
			if o.IsPublished && o.OwnerType == f.Type && (o.IsGeneric() || o.OwnerTypeID == f.Owner) {
				all = append(all, wire.NewQuestionnaire(o, nil))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, questionnairePage{rest.Slice(p, all).Items, p.Page, p.Size})
}

// getQuestionnaire returns a questionnaire with its newest published version, or with the published version in the
// query, now or as of a past record.
func (h *Handler) getQuestionnaire(c echo.Context) error {
	path := rest.Path(c)
	id := path.ID("id")
	malformed := path.Done() != nil
	query := rest.Query(c).Merge(path)
	number := query.OptionalInteger("version", 1, maxVersion)
	asOf := asof.Read(query)
	var q *questionnaire.Questionnaire
	var versions []domain.CatalogueVersion
	if !malformed {
		may := visible
		if asOf != nil {
			may = visibleThen
		}
		err := h.view(c, func(s *domain.State) (err error) {
			q, versions, err = catalogued(s, id, func(o *domain.Owner) bool { return may(rest.PrincipalOf(c), o) })
			if err == nil && !q.IsPublished && asOf == nil {
				err = questionnaireNotFound()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := query.Done(); err != nil {
		return err
	}
	if asOf != nil {
		if err := h.viewThen(c, asOf, func(s *domain.State) (err error) {
			q, versions, err = questionnaireThen(s, id)
			return err
		}); err != nil {
			return err
		}
	}
	v := published(versions, int(number.Value))
	if v == nil {
		return problem.NotFound("QUESTIONNAIRE_VERSION_NOT_FOUND", "The questionnaire has no such published version.")
	}
	return c.JSON(http.StatusOK, wire.NewQuestionnaire(q, v))
}

// questionnaireThen returns a questionnaire with its versions from a past state, if it was published then.
func questionnaireThen(s *domain.State, id scalar.ID) (*questionnaire.Questionnaire, []domain.CatalogueVersion, error) {
	q, _, known := s.Questionnaire(id)
	switch {
	case !known:
		return nil, nil, asof.NotYet("The questionnaire did not exist yet.")
	case !q.IsPublished:
		return nil, nil, questionnaireNotFound()
	}
	return q, s.QuestionnaireVersions(id), nil
}

// catalogued returns a questionnaire with its versions, number 1 first. A questionnaire for an owner that sees
// rejects is not found.
func catalogued(s *domain.State, id scalar.ID, sees func(*domain.Owner) bool) (*questionnaire.Questionnaire, []domain.CatalogueVersion, error) {
	q, _, known := s.Questionnaire(id)
	if known && !q.IsGeneric() {
		var o *domain.Owner
		if o, known = s.Owner(owner.Ref{Type: q.OwnerType, ID: q.OwnerTypeID}); known {
			known = sees(o)
		}
	}
	if !known {
		return nil, nil, questionnaireNotFound()
	}
	return q, s.QuestionnaireVersions(id), nil
}

// published returns the published version with a number, or the newest for 0. It returns nil if there is none.
func published(versions []domain.CatalogueVersion, number int) *questionnaire.Version {
	for i := len(versions) - 1; i >= 0; i-- {
		if v := versions[i]; v.Published && (number == 0 || v.Number == number) {
			return v.Version
		}
	}
	return nil
}

func questionnaireNotFound() error {
	return problem.NotFound("QUESTIONNAIRE_NOT_FOUND", "There is no such questionnaire.")
}
