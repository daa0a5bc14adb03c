package trading

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// commandFate is what became of a command.
type commandFate struct {
	Status   string              `json:"status"`
	Position journal.LogPosition `json:"position"`
}

// getCommand tells what became of a command in the last 24 hours. A 404 names the position that it is as of in each
// journal.
func (h *Handler) getCommand(c echo.Context) error {
	if err := web.NoQuery(c); err != nil {
		return err
	}
	if err := h.awaitCommands(c); err != nil {
		return err
	}
	id, err := scalar.ParseID(web.Param(c, "command_id"))
	known := err == nil
	p := web.PrincipalOf(c)
	broker := p.Broker
	if p.SeesAll() && p.Customer == "" {
		broker = ""
	}
	c.Response().Header().Del(web.HeaderLogPosition)
	for _, log := range h.commands {
		r, found, asOf, err := log.Command(c.Request().Context(), broker, id)
		if err != nil {
			return web.SourceFailed(err)
		}
		if known && found && h.recent(p, &r) {
			at := journal.LogPosition{Journal: log.Journal(), Sequence: r.Position.Sequence}
			status := "applied"
			if r.Outcome == decide.Rejected {
				status = "rejected"
			}
			web.SetReadPosition(c, log.Journal(), asOf)
			return c.JSON(http.StatusOK, commandFate{status, at})
		}
		c.Response().Header().Add(web.HeaderLogPosition, journal.LogPosition{Journal: log.Journal(), Sequence: asOf}.String())
	}
	return web.NotFound("UNKNOWN_COMMAND", "No record of the last 24 hours holds such a command, as of the positions named in X-Log-Position.")
}

// recent reports whether the record is one that the principal may still ask for.
func (h *Handler) recent(p *web.Principal, r *records.Record) bool {
	if p.Customer != "" && r.Actor.Customer != p.Customer {
		return false
	}
	return scalar.TimeOf(h.now())-r.Time < decide.Remember
}

// awaitCommands waits in the journal that the position names.
func (h *Handler) awaitCommands(c echo.Context) error {
	name, _, _ := strings.Cut(c.Request().Header.Get(web.HeaderMinLogPosition), "/")
	for _, log := range h.commands {
		if log.Journal() == name {
			return web.Await(c, name, log)
		}
	}
	return web.Await(c, journalName, h.venue)
}
