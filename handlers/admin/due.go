package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// dueEntry is a piece of due work.
type dueEntry struct {
	Journal string      `json:"journal"`
	Entry   string      `json:"entry"`
	Due     scalar.Time `json:"due"`
	Status  string      `json:"status"`  // waiting, set_aside
	Urgency string      `json:"urgency"` // blocking, alternating
	Error   *string     `json:"error"`
}

func newDueEntry(e decide.DueEntry) dueEntry {
	out := dueEntry{Journal: tradingJournal, Entry: e.Entry, Due: e.Time, Status: "waiting", Urgency: "alternating"}
	if e.Urgency == decide.Blocking {
		out.Urgency = "blocking"
	}
	if e.Error != "" {
		out.Status, out.Error = "set_aside", &e.Error
	}
	return out
}

// listDue shows what was set aside, and then what waits, in the order in which it will be done. (Nothing is ever due in
// the other journals.)
func (h *Handler) listDue(c echo.Context) error {
	query := web.Query(c)
	page := query.Numbered()
	if err := query.Done(); err != nil {
		return err
	}
	var out web.Items[dueEntry]
	err := h.viewVenue(c, func(s *venue.State) {
		aside := s.SetAsideEntries()
		first := aside[min(page.Offset(), len(aside)):]
		first = first[:min(page.Size, len(first))]
		waiting, total := s.DueEntries(max(page.Offset()-len(aside), 0), page.Size-len(first))
		var items []dueEntry
		for _, entries := range [][]decide.DueEntry{first, waiting} {
			for _, e := range entries {
				items = append(items, newDueEntry(e))
			}
		}
		out = web.NewItems(page, items, len(aside)+total)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// putBack is the answer to work that was put back.
type putBack struct {
	Journal string `json:"journal"`
	Entry   string `json:"entry"`
}

func (h *Handler) putBackDue(c echo.Context) error {
	if err := web.NoBody(c); err != nil {
		return err
	}
	payload := &venue.PutBackDue{Entry: web.Param(c, "entry")}
	e, err := web.Execute[*venue.DuePutBack](c, h.trading, payload)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, putBack{tradingJournal, e.Entry})
}

// Node is a node that decides, or may come to, and the highest rules that it knows of each journal.
type Node struct {
	Name  string
	Rules map[string]int
	Err   error // why it did not say
}

// Nodes asks every node of the venue.
type Nodes func(ctx context.Context) ([]Node, error)

// activated is the answer to an activation: the rules in force from the next record on.
type activated struct {
	Journal string `json:"journal"`
	Rules   int    `json:"rules"`
}

// maxRules is more than there will ever be.
const maxRules = 1_000_000

// activateRules has the next rules be in force. A node that does not know them could not go on with the journal, so that
// each must say first that it does. (One that joins later with older rules stops at the record, by name.)
func (h *Handler) activateRules(c echo.Context) error {
	body := web.BodyOnly(c)
	payload := &venue.ActivateRules{Rules: int(body.Integer("rules", 1, maxRules))}
	if err := body.Done(); err != nil {
		return err
	}
	if name := web.Param(c, "journal"); name != tradingJournal {
		return web.NotFound("UNKNOWN_JOURNAL", fmt.Sprintf("There is no journal %q whose rules can be activated.", name))
	}
	nodes, err := h.cfg.Nodes(c.Request().Context())
	if err != nil {
		return web.SourceFailed(err)
	}
	var behind []string
	for _, n := range nodes {
		switch known := n.Rules[tradingJournal]; {
		case n.Err != nil:
			behind = append(behind, n.Name+" (does not answer)")
		case known < payload.Rules:
			behind = append(behind, fmt.Sprintf("%s (knows %d)", n.Name, known))
		}
	}
	if len(behind) > 0 {
		return web.Conflict("RULES_NOT_KNOWN", fmt.Sprintf("Rules %d are not known to every node: %s.", payload.Rules, strings.Join(behind, ", ")))
	}
	e, err := web.Execute[*venue.RulesActivated](c, h.trading, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, activated{tradingJournal, e.Rules})
}
