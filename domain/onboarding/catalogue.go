package onboarding

import (
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// CatalogueVersion is a version of a questionnaire as operators see it, published or not.
type CatalogueVersion struct {
	*questionnaire.Version
	Published bool
}

// QuestionnaireVersions returns all versions of a questionnaire, number 1 first.
func (s *State) QuestionnaireVersions(id scalar.ID) []CatalogueVersion {
	q, known := s.questionnaires[id]
	if !known {
		return nil
	}
	out := make([]CatalogueVersion, len(q.versions))
	for i, v := range q.versions {
		out[i] = CatalogueVersion{v, q.published[i]}
	}
	return out
}

// Questionnaires skips the first questionnaires, newest first, and returns up to n of the following ones and the total
// number of questionnaires.
func (s *State) Questionnaires(first, n int) (page []*questionnaire.Questionnaire, total int) {
	for _, id := range newestFirst(s.questionnaireOrder, first, n) {
		page = append(page, s.questionnaires[id].Questionnaire)
	}
	return page, len(s.questionnaireOrder)
}

// Entitlements skips the first definitions, newest first, and returns up to n of the following ones and the total number
// of definitions.
func (s *State) Entitlements(first, n int) (page []*entitlement.Definition, total int) {
	for _, id := range newestFirst(s.entitlementOrder, first, n) {
		page = append(page, s.entitlements[id])
	}
	return page, len(s.entitlementOrder)
}

// newestFirst returns a page of ids, newest first. The argument ids is in the order of creation.
func newestFirst(ids []scalar.ID, first, n int) []scalar.ID {
	out := make([]scalar.ID, 0, min(n, len(ids)))
	for i := len(ids) - 1 - first; i >= 0 && len(out) < n; i-- {
		out = append(out, ids[i])
	}
	return out
}
