// Package login exchanges a username and a password for an access token, and publishes the keys that verify tokens.
//
// POST /auth/jwt/login and its errors have the forms of the onboarding interface. The identity journal contains
// passwords as encrypted argon2id hashes. Tokens are JWTs signed with EdDSA by the newest signing key of the journal.
// Failed attempts are counted in memory for each pair of account and address, so an attacker can neither fill the log
// nor lock out a user at another address.
package login
