// Package whatif answers what the rules would have decided differently if parameters of instruments had been other ones, from the
// records of the journal trading.
//
// It folds the log twice: once as recorded, and once as another world in which parameters are overridden from one record on.
// There are two kinds of other world:
//
//   - On the recorded state, the other world applies the recorded events after each record. So every record is decided again on the
//     recorded balances, positions, and orders, under the other parameters. Differences do not add up.
//   - In a cumulative run, the other world applies the events that it decides itself. A command may meet a state that the client
//     never saw, and the engine does the work that is due in that world.
//
// Commands are reconstructed from their records: see package redecide. So a run has no more inputs than the log: requests that were
// refused without a record are missing from it, and no client behaves differently because of a different answer.
//
// Start reading in run.go.
package whatif
