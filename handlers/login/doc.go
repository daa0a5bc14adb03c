// Package login turns a username and a password into an access token, and publishes the keys that verify it.
//
// POST /auth/jwt/login and its errors have the shapes that clients of the onboarding interface know. Passwords are
// argon2id hashes that stand sealed in the identity journal; tokens are JWTs signed with EdDSA by the newest of the
// journal's keys. Failed attempts are counted for an account together with an address and in memory only, so that an
// attacker neither fills the log nor locks anybody else out.
package login
