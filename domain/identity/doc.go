// Package identity holds the rules of the identity journal: brokers (the tenants), their users, API keys, and the keys
// that sign access tokens.
//
// Secrets never enter here in the clear. The handler seals the hash of a password, and the private part of a signing
// key, before it makes the command. The rules store the ciphertext and cannot open it (package streams/seal can).
//
// Programs use API keys in place of a password. The log has only the hash of a key's secret. A user creates and revokes
// its keys. A key allows at most the user's scopes. An operator may set a rate limit for a key; without one, the key
// counts toward the user's limit.
//
// A policy may demand a second person for changes of users and keys: see foureyes.go.
//
// All other changes are made by the system itself or by a user with the operator scope. The rules look the scope up in
// the state and not in the token, so an operator who was deactivated a moment ago cannot change anything.
package identity
