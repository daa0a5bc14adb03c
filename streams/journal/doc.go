// Package journal is the log that everything else follows, in Kafka: the terms during which an owner may append records, the
// owner that decides commands, and the readers. Package record defines the records and which of them are valid, package submit
// the answers to commands.
//
// A journal is a Kafka topic. Each partition is a separate log with one owner at any time. The owner decides commands in
// memory (see package domain/decide), appends one record for each, and answers when the append is acknowledged. Safety
// depends on no lock, lease or Kafka transaction: a record names the hash of the previous record, the first record that
// names it is valid, and every reader skips the others. An owner begins its term with a record, so no earlier append can
// become valid after it.
//
// A Reader continues from a position, which it verifies whenever a session with the brokers begins. A Tail follows the end
// of a partition. All tails of a partition in a client share one reader at the end of the log, and on the way to it if they
// begin together. A record that an owner in this process has built is not decoded again when it comes back from the log,
// because its hash identifies it. Shared records MUST NOT be changed. On long replays several goroutines hash and decode
// records, and one goroutine finds the valid ones, in order.
//
// The conventions are those of package record. An offset is Kafka's.
package journal
