// Package identity holds the rules of the identity journal: brokers (the tenants), their users, API keys, and the keys that
// sign access tokens.
//
// Secrets never enter here in the clear. A password arrives as a hash that the handler has sealed, the private part
// of a signing key likewise; the rules keep the ciphertext and cannot open it (package streams/seal can).
//
// API keys, which programs use in place of a password, are in the log as the hash of their secret. Each belongs to a
// user, who makes and revokes them, and never allows more than the user's own scopes. An operator may give a key a rate limit
// of its own; without one it counts towards its user's.
//
// Commands that change anything else are given by the system itself or by a user with the operator scope: the state is
// asked, not the token, so that an operator who was deactivated a moment ago changes nothing any more.
package identity
