// Package process holds the process managers: what follows one journal and gives commands because of what it says.
//
//   - Erasure destroys the key of an owner who was erased, removes the owner's files, and confirms it to the onboarding journal.
//   - Bridge opens a trading account for the owner of a finished entitlement that says so: it follows the onboarding journal
//     and gives commands to the trading journal.
//
// A manager keeps nothing. What it has to do is seen in the folds of the journals: an owner who is erased and whose key's
// destruction is not confirmed, a finished entitlement whose account is not there. So it can be killed at any moment, and
// any number of them may run at once, on any nodes: each step can be repeated, and the journals take a command that comes
// again for what it is. Destroying a key twice leaves one tombstone; a confirmation and an account are there once, or
// refused. Commands into another journal carry the sequence of the record that they follow from.
package process
