// Package process holds the process managers. A process manager follows a journal and submits commands in response to
// records.
//
//   - Erasure destroys the key of an owner who was erased, removes the owner's files, and confirms it to the onboarding
//     journal.
//   - Bridge opens a trading account for the owner of a finished entitlement that asks for one: it follows the onboarding
//     journal and submits commands to the trading journal.
//
// A manager has no state. It derives its work from the folds of the journals: an erased owner without a confirmed key
// destruction, a finished entitlement without its account. So it can be killed at any moment, and several can run at the
// same time on different nodes. Each step can be repeated: destroying a key twice leaves one tombstone, and the journals
// refuse a second confirmation or account. Commands into another journal carry the sequence of the record that caused them.
package process
