// Package apikeys serves /v1/api-keys, where users make, list and revoke keys for their programs, and has the log keep
// on which days a key was used.
//
// The secret of a key is made here, shown in the answer to the request that made it and nowhere else: the log holds its
// hash (package domain/identity), and package handlers/web judges requests by that.
package apikeys
