package web

import (
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// severalRoutes are the types of the commands that more than one route makes. A route has Idempotency-Keys of its own, so the
// fingerprints of these say which of them the key was used on; of all others the type says it. Handlers cannot know what other
// handlers make, so they are listed here, and a test that sends every write that there is says what is missing.
var severalRoutes = []string{
	"document.add", "document.change", "owner.change", "owner.erase", "owner.hold", "owner.register", "owner.release_hold", // of persons and of corporates
	"response.add", "entitlement_trigger.create", // as well
	"entitlement_trigger.act", // a route for each action
	"delivery.replay",         // of the tenant and of the operator
	"fee_profile.set",         // of the broker and of the operator
	"leverage.set",            // to set it and to take it back
	"order.amend",             // by code and by reference_id
	"order.cancel",            // the same
}

// scoped makes the fingerprint of a command with a key tell the route, where the command's type does not.
func (a Ask) scoped(cmd *decide.Command) {
	if cmd.Kept.Key != "" && slices.Contains(severalRoutes, cmd.Type) {
		method, path, _ := a.way.route()
		cmd.Kept.Fingerprint = decide.OfRoute(method+" "+shape(path), cmd.Kept.Fingerprint)
	}
}

// shape is a route's path without the names of its parameters. They are ours alone: a build that renames one must still find the
// keys that were used before it.
func shape(path string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		if strings.HasPrefix(e, ":") {
			elements[i] = ":"
		}
	}
	return strings.Join(elements, "/")
}

// Remembers reports whether the journal of a follower remembers the request's key, used for a type of command: whether what the
// request names was there once, even if it is gone by now. Whether it is the same request is for the rules to say.
func Remembers(c echo.Context, f Follower, command string) (used bool) {
	key, err := AskOf(c).Key()
	if err != nil || key == "" {
		return false
	}
	f.View(func(s decide.State, _ record.Position) {
		used = s.(decide.Remembering).Remembers(PrincipalOf(c).Broker, command, key)
	})
	return used
}
