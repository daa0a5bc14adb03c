package main

import "strings"

// roles are what a node does. One that lacks a role leaves it to its peers.
type roles struct{ engine, api, projector, live bool }

// parseRoles reads a list like "engine,api".
func parseRoles(list string) (roles, error) {
	var r roles
	for _, name := range strings.Split(list, ",") {
		switch strings.TrimSpace(name) {
		case "engine":
			r.engine = true
		case "api":
			r.api = true
		case "projector":
			r.projector = true
		case "live":
			r.live = true
		default:
			return roles{}, usagef("--role takes engine, api, projector and live, separated by commas, not %q", name)
		}
	}
	return r, nil
}

// allRoles are those of `perpetua run`.
func allRoles() roles { return roles{engine: true, api: true, projector: true, live: true} }
