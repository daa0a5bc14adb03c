package operation

import (
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// severalRoutes lists the command types that more than one route submits. Idempotency keys belong to a route. For
// other commands the type identifies the route; for these the fingerprint includes it. The list is central because a
// handler cannot know the commands of other handlers. A test that sends every write checks that it is complete.
var severalRoutes = []string{
	// of persons and of corporates
	"document.add", "document.change", "owner.change", "owner.erase", "owner.hold", "owner.register", "owner.release_hold",
	"response.add", "entitlement_trigger.create", // likewise
	"entitlement_trigger.act", // one route for each action
	"delivery.replay",         // of the tenant and of the operator
	"fee_profile.set",         // of the broker and of the operator
	"leverage.set",            // set and reset
	"order.amend",             // by code and by reference_id
	"order.cancel",            // likewise
}

// scoped adds the route to the fingerprint of a command with a key if the command's type does not identify the route.
func (a Request) scoped(cmd *decide.Command) {
	if cmd.Metadata.Key != "" && slices.Contains(severalRoutes, cmd.Type) {
		method, path, _ := a.transport.Route()
		cmd.Metadata.Fingerprint = decide.OfRoute(method+" "+shape(path), cmd.Metadata.Fingerprint)
	}
}

// shape returns a route's path without parameter names, so that renaming a parameter does not invalidate
// older keys.
func shape(path string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		if strings.HasPrefix(e, ":") {
			elements[i] = ":"
		}
	}
	return strings.Join(elements, "/")
}

// Remembers reports whether the follower's journal remembers the request's idempotency key for a command type. If so,
// the requested object has existed, even if it is gone. The rules check whether the request is the same.
func Remembers(a Request, f record.Follower, command string) (used bool) {
	key, err := a.Key()
	if err != nil || key == "" {
		return false
	}
	f.View(func(s decide.State, _ record.Position) {
		used = s.(decide.Facts).Remembers(a.Principal().Broker, command, key)
	})
	return used
}
