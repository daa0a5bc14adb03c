package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

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

// activateRules has the next rules of a journal be in force. A node that does not know them could not go on with the
// journal, so that each must say first that it does. (One that joins later with older rules stops at the record, by name.)
func (h *Handler) activateRules(c echo.Context) error {
	body := web.BodyOnly(c)
	payload := &decide.ActivateRules{Rules: int(body.Integer("rules", 1, maxRules))}
	if err := body.Done(); err != nil {
		return err
	}
	to, repeated, err := h.journalOf(c, web.Param(c, "journal"), payload)
	if err != nil {
		return err
	}
	if !repeated { // what was answered before is answered again, whoever joined since
		if err := h.knownToAll(c, to.Name, payload.Rules); err != nil {
			return err
		}
	}
	e, err := web.Execute[*decide.RulesActivated](c, to, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, activated{to.Name, e.Rules})
}

// knownToAll refuses rules of a journal that some node does not know.
func (h *Handler) knownToAll(c echo.Context, journal string, rules int) error {
	nodes, err := h.cfg.Nodes(c.Request().Context())
	if err != nil {
		return web.SourceFailed(err)
	}
	if late := behind(nodes, journal, rules); len(late) > 0 {
		return web.Conflict("RULES_NOT_KNOWN", fmt.Sprintf("Rules %d are not known to every node: %s.", rules, strings.Join(late, ", ")))
	}
	return nil
}

// behind lists the nodes that do not know so many rules of a journal, or do not say.
func behind(nodes []Node, journal string, rules int) (names []string) {
	for _, n := range nodes {
		switch known := n.Rules[journal]; {
		case n.Err != nil:
			names = append(names, n.Name+" (does not answer)")
		case known < rules:
			names = append(names, fmt.Sprintf("%s (knows %d)", n.Name, known))
		}
	}
	return names
}
