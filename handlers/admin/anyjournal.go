package admin

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// journalOf returns where a command goes that every journal takes: to the journal with the name; and whether that remembers
// the request's key.
//
// Each journal remembers keys for itself, but a key is the route's, and the route is one for all of them. So a key that was used
// for another journal was used for another request. This node's folds tell; they have come to all that it answered here.
func (h *Handler) journalOf(c echo.Context, name string, payload decide.Payload) (to web.Journal, repeated bool, err error) {
	fold, known := h.cfg.Folds[name]
	if !known {
		return to, false, web.NotFound("UNKNOWN_JOURNAL", fmt.Sprintf("There is no journal %q.", name))
	}
	used := h.rememberedBy(c, payload.CommandType())
	if used != "" && used != name {
		return to, false, decide.KeyReused()
	}
	return web.Journal{To: h.cfg.Journals, Name: name, Judges: fold}, used != "", nil
}

// rememberedBy returns the journal that remembers the request's key, used for a type of command; "" where none does.
func (h *Handler) rememberedBy(c echo.Context, command string) string {
	for _, name := range web.Names(h.cfg.Folds) {
		if web.Remembers(c, h.cfg.Folds[name], command) {
			return name
		}
	}
	return ""
}
