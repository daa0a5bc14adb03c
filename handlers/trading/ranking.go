package trading

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
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
//
// There may be very many accounts. While the state is held, their standings are only copied. They are summarized and sorted after
// that, so that the fold waits as little as possible.
func (h *Handler) listRanking(c echo.Context) error {
	query := rest.Query(c)
	wanted := input.Several(query, "risk_state", margin.Normal, margin.MarginCall, margin.Liquidation, margin.AutoDeleveraging)
	p, q := rest.ReadNumbered(query), asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	standings := make([]domain.Standing, 0, h.accounts())
	err := h.viewThen(c, q, func(s *domain.State, _ int64) error {
		standings = s.AppendInMargin(standings)
		return nil
	})
	if err != nil {
		return err
	}
	accounts := ranked(standings, wanted)
	items := make([]rankedAccount, 0, p.Size)
	for _, a := range rest.Slice(p, accounts).Items {
		summary := a.Summary()
		items = append(items, rankedAccount{wire.NewAccountSummary(&summary), a.Broker})
	}
	return c.JSON(http.StatusOK, rest.NewItems(p, items, len(accounts)))
}

// accounts returns the number of accounts now.
func (h *Handler) accounts() (n int) {
	h.venue.View(func(s decide.State, _ record.Position) { n = s.(*domain.State).Registered("") })
	return n
}

// ranking is an account with the values that decide its rank.
type ranking struct {
	*domain.Standing
	ratio fixed.Decimal
	left  fixed.Money // equity less maintenance margin
}

// ranked returns the accounts with one of the risk states, or with any if wanted is empty.
func ranked(standings []domain.Standing, wanted []margin.RiskState) []ranking {
	accounts := make([]ranking, 0, len(standings))
	for i := range standings {
		a := standings[i].Summary()
		if len(wanted) == 0 || slices.Contains(wanted, a.RiskState) {
			accounts = append(accounts, ranking{&standings[i], a.MarginRatio, a.TotalEquity - a.MaintenanceMargin})
		}
	}
	slices.SortFunc(accounts, func(a, b ranking) int {
		return cmp.Or(b.ratio.Cmp(a.ratio), cmp.Compare(a.left, b.left), cmp.Compare(a.Code, b.Code))
	})
	return accounts
}
