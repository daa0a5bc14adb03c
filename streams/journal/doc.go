// Package journal is the log that everything else follows: records chained by their hashes, the rule for which of them are
// valid, the terms during which an owner may append, and the readers.
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
// Conventions: a sequence counts valid records from 0, the genesis. An offset is Kafka's and is never below the sequence of
// its record. A Position is that of the last valid record applied, by sequence and hash; its offset is a hint for where to
// find the record, and reading continues after it. Times are in microseconds. Sizes are in bytes of a record's value.
package journal
