package node

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// Roles are the functions of a node. It leaves the functions of other roles to other nodes.
type Roles struct{ Engine, API, Projector, Live, Process, Sender, TLog, Archive, History, Liabilities bool }

// ParseRoles parses a list like "engine,api".
func ParseRoles(list string) (Roles, error) {
	var r Roles
	for _, name := range strings.Split(list, ",") {
		switch strings.TrimSpace(name) {
		case "engine":
			r.Engine = true
		case "api":
			r.API = true
		case "projector":
			r.Projector = true
		case "live":
			r.Live = true
		case "process":
			r.Process = true
		case "sender":
			r.Sender = true
		case "tlog":
			r.TLog = true
		case "archive":
			r.Archive = true
		case "history":
			r.History = true
		case "liabilities":
			r.Liabilities = true
		default:
			return Roles{}, settings.Usagef("--role takes engine, api, projector, live, process, sender, tlog, archive, history and liabilities, separated by commas, not %q", name)
		}
	}
	return r, nil
}

// Names returns the names of the roles, as ParseRoles accepts them.
func (r Roles) Names() (out []string) {
	for _, role := range []struct {
		name string
		does bool
	}{{"engine", r.Engine}, {"api", r.API}, {"projector", r.Projector}, {"live", r.Live}, {"process", r.Process}, {"sender", r.Sender}, {"tlog", r.TLog}, {"archive", r.Archive},
		{"history", r.History}, {"liabilities", r.Liabilities}} {
		if role.does {
			out = append(out, role.name)
		}
	}
	return out
}
