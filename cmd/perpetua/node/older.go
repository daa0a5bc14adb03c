package node

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// olderPath is the route on which a node of build 0.1.0 submits its own commands to an owner without a stream, for example
// while it does not know yet which venue it is. Without an answer that it understands, it would give such a command up.
const olderPath = "/internal/v1/commands"

// refuseOlder answers that the command was not accepted. The node submits it again, over a stream as soon as it can.
func refuseOlder(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"code": submit.CodeNotAccepted, "error": "the owner accepts commands over streams only"})
}
