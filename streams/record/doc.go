// Package record defines the records of a journal: their form, how they are encoded and decoded, and which of them are valid.
// It reads and writes no log and imports no Kafka. Package journal stores records in Kafka, package transfer copies them.
//
// A Record is what one command caused. Its value is one JSON object, which Encode writes and Decode reads. A record has one
// encoding; Decode rejects all others. Each record holds the SHA-256 of the value before it. A Chain applies the rule of
// validity to the values of a partition: the first value that holds the hash of the last valid one is valid, and all others
// are skipped. A Verifier follows a chain from the genesis and also finds out whether skipped values belong to another
// history.
//
// Conventions: a sequence counts valid records from 0, the genesis. A Position names the last valid record that was applied,
// so reading continues after it; Before is the position before the genesis. An offset is where a value is in the log. It is
// only a hint, because copied and restored logs have other offsets, and it is never below the sequence of the record. Terms
// count from 1. Times are UTC in microseconds. Sizes are in bytes of a value.
//
// Entries, records and events may be shared between readers and MUST NOT be changed.
//
// Start with Record in record.go and Chain in chain.go. streams/README.md has the rules for readers in other languages.
package record
