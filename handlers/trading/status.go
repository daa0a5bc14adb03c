package trading

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Fold is a follower of a journal.
type Fold struct {
	Journal string
	record.Follower
}

// venueStatus is the status of the venue and the position of each journal on this node.
type venueStatus struct {
	Status   string          `json:"status"`
	Journals []journalStatus `json:"journals"`
	Time     scalar.Time     `json:"time"`
	Version  string          `json:"version"` // version of the answering node
}

type journalStatus struct {
	Journal  string `json:"journal"`
	Sequence int64  `json:"sequence"`
}

// halted is the venue's status while no instrument accepts orders.
const halted = "halted"

func (h *Handler) getStatus(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	out := venueStatus{Time: h.clock.Now(), Version: h.version}
	for _, f := range h.folds {
		f.View(func(_ decide.State, at record.Position) {
			out.Journals = append(out.Journals, journalStatus{f.Journal, at.Sequence})
		})
	}
	err := h.view(c, func(s *domain.State) error {
		out.Status = statusOf(s)
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// statusOf returns the least restrictive effective status of all instruments.
func statusOf(s *domain.State) string {
	status := halted
	for _, i := range s.Instruments() {
		switch inForce, _ := s.Status(i.Symbol); inForce {
		case market.Open:
			return string(market.Open)
		case market.PostOnly:
			status = string(market.PostOnly)
		}
	}
	return status
}
