// Package onboarding holds the rules of the onboarding journal: owners (persons and corporates), their documents, what
// they are asked and what they answer, the entitlements that they ask for, who is told of that, how long it is kept, and what
// becomes due about all that.
//
// Personal data never enters here in the clear. The handler has sealed it with the owner's key before a command exists; the
// rules keep the ciphertext and cannot open it. In clear are ids, kinds, times, states, sizes, tenants, categories and the
// SHA-256 of ciphertexts. The id of an owner and of a document is made by the handler, since what is sealed is bound to it.
//
// The tenant of an owner is the broker of who registered it. Commands of clients find their tenant's active owners only; those
// of operators find all. Which scope allows which command is for the handler to see: users are in another journal.
//
// A trigger is created by one record and started by the next, a step. Whatever a record changes that triggers wait for, it
// also says what of them is open from then on, and what follows from that: notices, an identification, an approval.
//
// A notice is an event that receivers are told of, by webhooks and by the feed. It is counted for each owner, so that a
// receiver knows which of two is newer. What is told to whom is decided with it, a delivery for each webhook; each attempt and
// what follows from it is recorded.
//
// Rules have a number. Those of number 2 forget deliveries that are over but for the last few thousand: a replay of one that is
// forgotten is decided by its row, which the command carries with the sequence that it is as of. What rules 1 decide is held by a
// golden journal (testdata/rules1).
package onboarding
