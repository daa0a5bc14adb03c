package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// Node is a node of the venue and the highest rules that it supports for each journal.
type Node struct {
	Name  string
	Rules map[string]int
	Err   error // why the node did not answer
}

// Nodes asks every node of the venue.
type Nodes func(ctx context.Context) ([]Node, error)

// activated is the response to an activation: the rules in force from the next record.
type activated struct {
	Journal string `json:"journal"`
	Rules   int    `json:"rules"`
}

// maxRules is a number of rules that will never be reached.
const maxRules = 1_000_000

// activateRules activates the next rules of a journal. A node that does not support them could not continue with the
// journal, so every node must first confirm that it supports them. A node that joins later with older rules stops at
// the record and reports it.
func (h *Handler) activateRules(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &decide.ActivateRules{Rules: int(body.Integer("rules", 1, maxRules))}
	if err := body.Done(); err != nil {
		return err
	}
	to, repeated, err := h.journalOf(c, rest.Param(c, "journal"), payload)
	if err != nil {
		return err
	}
	if !repeated { // a repeated request gets the same response, even if another node has joined
		if err := h.knownToAll(c, to.Name, payload.Rules); err != nil {
			return err
		}
	}
	e, err := rest.Execute[*decide.RulesActivated](c, to, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, activated{to.Name, e.Rules})
}

// knownToAll returns an error if some node does not support the rules of a journal.
func (h *Handler) knownToAll(c echo.Context, journal string, rules int) error {
	nodes, err := h.cfg.Nodes(c.Request().Context())
	if err != nil {
		return problem.SourceFailed(err)
	}
	if late := behind(nodes, journal, rules); len(late) > 0 {
		return problem.Conflict("RULES_NOT_KNOWN", fmt.Sprintf("Rules %d are not known to every node: %s.", rules, strings.Join(late, ", ")))
	}
	return nil
}

// behind lists the nodes that do not support the rules of a journal or did not answer.
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
