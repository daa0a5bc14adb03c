// Package node is one process of the system, in whatever roles: it owns journals, follows them, projects them and
// serves them. It is given its Kafka and its Postgres, and does not care whether they are embedded.
//
// A Node is made of parts with one job each: its connections to what others run (stores), what it makes of each journal
// (followers), how commands get to the owners of journals (owning), the interfaces that it serves (serving), and what
// it tells its operator (telemetry). Open makes them, from what depends on nothing to what depends on all; Run lets
// them work and stops them in order.
package node
