package admin

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// journalOf returns the named journal as the target of a command that every journal accepts. repeated reports whether
// that journal remembers the request's idempotency key.
//
// Each journal remembers its own keys, but the route is shared, so a key that was used for another journal belongs to
// another request and is refused. This node's folds decide that; they include every record that this node has
// returned to this caller.
func (h *Handler) journalOf(c echo.Context, name string, payload decide.Payload) (to operation.Journal, repeated bool, err error) {
	fold, known := h.cfg.Folds[name]
	if !known {
		return to, false, problem.NotFound("UNKNOWN_JOURNAL", fmt.Sprintf("There is no journal %q.", name))
	}
	used := h.rememberedBy(c, payload.CommandType())
	if used != "" && used != name {
		return to, false, decide.KeyReused()
	}
	return operation.Journal{To: h.cfg.Journals, Name: name, AuthFollower: fold}, used != "", nil
}

// rememberedBy returns the journal that remembers the request's idempotency key for a command type, or "".
func (h *Handler) rememberedBy(c echo.Context, command string) string {
	for _, name := range operation.Names(h.cfg.Folds) {
		if rest.Remembers(c, h.cfg.Folds[name], command) {
			return name
		}
	}
	return ""
}
