package node

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// olderPath is the route on which a node of build 0.1.0 submits its own commands to an owner if it cannot open a stream, for
// example before it has read the fence. It drops a command if the answer is a 404.
const olderPath = "/internal/v1/commands"

// refuseOlder answers that the command was not accepted. The node submits it again, over a stream as soon as it can.
func refuseOlder(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"code": submit.CodeNotAccepted, "error": "the owner accepts commands over streams only"})
}
