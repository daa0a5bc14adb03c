package trading

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// commandFate is the outcome of a command.
type commandFate struct {
	Status   string             `json:"status"`
	Position record.LogPosition `json:"position"`
}

// getCommand returns the outcome of a command of the last 24 hours. X-Log-Position of a 404 names the position in
// each journal up to which the command was not found.
func (h *Handler) getCommand(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	id, err := scalar.ParseID(rest.Param(c, "command_id"))
	known := err == nil
	p := rest.PrincipalOf(c)
	broker := p.Broker
	if p.SeesAll() && p.Customer == "" {
		broker = ""
	}
	awaited, err := h.awaitedJournal(c)
	if err != nil {
		return err
	}
	var asOf []string
	for _, log := range h.commands {
		var r records.Record
		var found bool
		look := func(ctx context.Context) (at int64, err error) {
			r, found, at, err = records.ByCommand(ctx, log.DB, log.Journal, broker, id)
			return at, err
		}
		if err := h.readCommands(c, log, log.Journal == awaited, look); err != nil {
			return err
		}
		if known && found && h.recent(p, log.Journal, &r) {
			at := record.LogPosition{Journal: log.Journal, Sequence: r.Position.Sequence}
			status := "applied"
			if r.Outcome == decide.Rejected {
				status = "rejected"
			}
			return c.JSON(http.StatusOK, commandFate{status, at})
		}
		asOf = append(asOf, c.Response().Header().Get(operation.HeaderLogPosition))
	}
	c.Response().Header()[operation.HeaderLogPosition] = asOf
	return problem.NotFound("UNKNOWN_COMMAND", "No record of the last 24 hours holds such a command, as of the positions named in X-Log-Position.")
}

// recent reports whether the principal may see a record of a journal and whether it is recent enough.
func (h *Handler) recent(p *access.Principal, journal string, r *records.Record) bool {
	if p.Customer != "" && r.Actor.Customer != p.Customer {
		return false
	}
	return h.clocks[journal].Now()-r.Time < decide.Remember
}

// awaitedJournal returns the journal of the position that the client requires, or "" without one. A position of a
// journal without commands here is never reached.
func (h *Handler) awaitedJournal(c echo.Context) (string, error) {
	name, _, _ := strings.Cut(c.Request().Header.Get(operation.HeaderMinLogPosition), "/")
	for _, log := range h.commands {
		if log.Journal == name {
			return name, nil
		}
	}
	return "", rest.Await(c, journalName, h.venue)
}

// readCommands searches a journal's log and sets the response's position to the log's. It waits for the position that
// the client requires if that belongs to this journal.
func (h *Handler) readCommands(c echo.Context, log rows.Source, wait bool, look func(context.Context) (int64, error)) error {
	if wait {
		return rest.ReadRows(c, log.Journal, log.Waiter, look)
	}
	return rest.ReadRowsOf(c, log.Journal, log.Waiter, look)
}
