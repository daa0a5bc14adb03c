// Package journal is the log that everything else follows: records chained by their hashes, the rule that says which
// of them are valid, the terms that say who may append, and the readers that never lose their place.
//
// A journal is a Kafka topic; each partition is a log of its own with one owner at a time. The owner decides commands
// in memory (package domain/decide says how), appends what they caused as one record each, and answers when the
// append is acknowledged. Nothing here needs a lock, a lease or a Kafka transaction to be safe: a record names the
// hash of the record before it, the first record to do so is valid and every reader skips the others, and an owner
// opens its term with a record too, so that nothing older can become valid after it.
//
// Those who read go on from a position of their own, verified whenever a session with the brokers begins (Reader). Those
// who follow a partition at its tip are Tails: all tails of a client's partition share one reader there, and on their way
// there if they begin together. What an owner of the process has built is not decoded again when it comes back from the
// log, since its hash says what it is. What is shared is never changed. Where much is to be read, the records are hashed
// and decoded by several goroutines; which of them are valid is found out by one, in their order.
//
// Conventions: a sequence counts valid records from 0, the genesis. An offset is Kafka's and is never below the
// sequence of the record that it holds. A Position is that of the last valid record applied, by sequence and hash; its
// offset is a hint where the record lies, and reading goes on after it. Times are microseconds. Sizes are bytes of a record's value.
package journal
