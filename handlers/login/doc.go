// Package login exchanges a username and a password for an access token, and publishes the keys that verify tokens.
//
// POST /auth/jwt/login and its errors have the shapes of the onboarding interface. The identity journal holds passwords as
// sealed argon2id hashes. Tokens are JWTs signed with EdDSA by the newest key of the journal. Failed attempts are counted
// in memory for each pair of account and address, so an attacker can neither fill the log nor lock out a user with another
// address.
package login
