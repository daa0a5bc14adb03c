// Package verify verifies a whole journal: from a topic, from a file that a log was copied to, or from an archive. It reports
// the first record at which something is wrong.
//
// It checks the chain of hashes, the sequences, the terms, the types and versions of the events, and key, headers and timestamp
// of each Kafka record. It decides the records again (package redecide), and checks the sums of the ledger. It compares the
// states between with snapshots, if there are any, and the tree of record roots with a checkpoint. A Model, which may be
// independent of the rules, checks the same records.
//
// # Goroutines
//
// Records pass through five stages. The channels between them are bounded, so that memory does not depend on the length of the
// log, except for 8 bytes per record:
//
//  1. one goroutine reads batches of messages from the Source;
//  2. several decode and hash them;
//  3. one goroutine follows the chain, folds the records, and cuts the log into spans. At the end of each span it saves the
//     state;
//  4. several goroutines take spans. Each starts from the saved state, decides the records of the span again, and compares the
//     state after them with the state saved at the end of the span;
//  5. one goroutine collects the results in the order of the log.
//
// A Model and the sums of the ledger depend on all records before, so each has a goroutine that follows stage 3. With one worker,
// stage 3 folds nothing, and the worker keeps its state.
//
// Start reading in verify.go.
package verify
