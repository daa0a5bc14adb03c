// Package apikeys serves /v1/api-keys, where users create, list and revoke API keys. It also records in the log on
// which days each key was used.
//
// The secret of a key is generated here and appears only in the response to the request that created it. The log
// contains its hash (package domain/identity), which package handlers/web uses to authenticate requests.
package apikeys
