// Package identity holds the rules of the identity journal: brokers (the tenants), their users, and the keys that sign
// access tokens.
//
// Secrets never enter here in the clear. A password arrives as a hash that the handler has sealed, the private part
// of a signing key likewise; the rules keep the ciphertext and cannot open it (package streams/seal can).
//
// Commands that change something are given by the system itself or by a user with the operator scope: the state is
// asked, not the token, so that an operator who was deactivated a moment ago changes nothing any more.
package identity
