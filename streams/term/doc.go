// Package term is the ownership protocol of a journal as a state machine. It decides which node may append records, and when
// an answer may leave. It has no goroutine, no clock, no randomness and no Kafka. Machine.Step takes one input and the time,
// and returns an Output; the same inputs give the same outputs. Package journal drives a Machine with Kafka, and package sim
// simulates many of them with crashes, lost messages and bad clocks.
//
// A term is one period of ownership of a shard: replay the log to its end, append a record that opens the term, read until
// that record arrives, then decide commands until ownership ends. Start reading at Machine. The phases of a term are in
// opening.go, taking.go and serving.go. Decisions and their answers are in decision.go, deferred.go, flight.go and
// readindex.go, requests in request.go and carried.go.
//
// Three rules carry the safety of the whole. Each is repeated at the field that it protects:
//
//   - A record is valid only if it names the hash of the last valid record, so what an owner decided on an obsolete state
//     loses in the log. Package record decides that.
//   - An answer leaves only when the record that it was decided on is complete: acknowledged, and known to be valid.
//   - A refusal leaves no record, so it also waits until the brokers have reported the end of the log after the decision, and
//     the term has accounted for every record before that end.
package term
