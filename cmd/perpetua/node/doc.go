// Package node is one process of the system, in one or more roles: it owns journals, follows them, projects them and
// serves them. Its Kafka and Postgres may be embedded or external.
//
// A Node is made of parts with one job each: connections to external services (stores), the state built from each journal
// (followers), the path of commands to the owners of journals (owning), the interfaces (serving), and logs, metrics and
// traces (telemetry). Open creates the parts in the order of their dependencies. Run runs them and stops them in order.
package node
