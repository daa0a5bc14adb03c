// Package onboarding holds the rules of the onboarding journal: owners (persons and corporates), their documents, and what
// becomes due about them.
//
// Personal data never enters here in the clear. The handler has sealed it with the owner's key before a command exists; the
// rules keep the ciphertext and cannot open it. In clear are ids, kinds, times, states, sizes, tenants, categories and the
// SHA-256 of ciphertexts. The id of an owner and of a document is made by the handler, since what is sealed is bound to it.
//
// The tenant of an owner is the broker of who registered it. Commands of clients find their tenant's active owners only; those
// of operators find all. Which scope allows which command is for the handler to see: users are in another journal.
//
// A notice is an event that receivers are told of, by webhooks and by the feed. It is counted for each owner, so that a
// receiver knows which of two is newer.
package onboarding
