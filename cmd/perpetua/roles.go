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

// names returns what parseRoles reads.
func (r roles) names() (out []string) {
	for _, role := range []struct {
		name string
		does bool
	}{{"engine", r.engine}, {"api", r.api}, {"projector", r.projector}, {"live", r.live}} {
		if role.does {
			out = append(out, role.name)
		}
	}
	return out
}

// allRoles are those of `perpetua run`.
func allRoles() roles { return roles{engine: true, api: true, projector: true, live: true} }
