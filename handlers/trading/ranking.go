package trading

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/margin"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// Operated returns the routes of the operator's interface that show the state of the whole venue.
func (h *Handler) Operated(at string) []rest.Route {
	return []rest.Route{rest.Get(at+"/margin-ranking", h.listRanking, access.ScopeOperator, access.ScopeAuditor)}
}

// rankedAccount is an account in the margin ranking.
type rankedAccount struct {
	wire.AccountSummary
	Broker string `json:"broker"`
}

// listRanking lists the accounts that need margin or have negative equity, nearest to liquidation first: by margin ratio
// descending, then by equity less maintenance margin, then by code.
func (h *Handler) listRanking(c echo.Context) error {
	query := rest.Query(c)
	wanted := input.Several(query, "risk_state", margin.Normal, margin.MarginCall, margin.Liquidation, margin.AutoDeleveraging)
	p, q := rest.ReadNumbered(query), asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	var found []rankedAccount
	err := h.viewThen(c, q, func(s *domain.State, _ int64) error {
		found = ranked(s, wanted)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b rankedAccount) int {
		return cmp.Or(b.MarginRatio.Cmp(a.MarginRatio), cmp.Compare(a.TotalEquity-a.MaintenanceMargin, b.TotalEquity-b.MaintenanceMargin),
			cmp.Compare(a.CustomerCode, b.CustomerCode))
	})
	return c.JSON(http.StatusOK, rest.Slice(p, found))
}

// ranked returns the accounts of the ranking with one of the risk states, or with any if wanted is empty.
func ranked(s *domain.State, wanted []margin.RiskState) (found []rankedAccount) {
	for place := range s.Registered("") {
		customer := s.CustomerAt("", place)
		a, _ := s.Summary(customer.Code)
		if a.MaintenanceMargin == 0 && a.RiskState == margin.Normal || len(wanted) > 0 && !slices.Contains(wanted, a.RiskState) {
			continue
		}
		found = append(found, rankedAccount{wire.NewAccountSummary(&a), customer.Broker})
	}
	return found
}
