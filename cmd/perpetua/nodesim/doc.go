// Package nodesim runs whole nodes in a synctest bubble: engines, followers, interfaces and sockets as they are shipped,
// on an in-memory Kafka and an in-memory network that a seed cuts, silences and heals. Time is the bubble's, so minutes
// of timeouts pass in milliseconds. There is no Postgres: the nodes find the database silent.
//
// The package contains tests only. The ownership protocol alone is simulated far more often by streams/sim; this package
// covers what surrounds it: timeouts, retries of clients, command streams between nodes, drains, restarts, and sockets.
// A seed fixes the disturbances and the requests, but not the order in which goroutines run.
package nodesim
