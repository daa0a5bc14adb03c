// Package schemas holds what the venue promises in machine-readable form: JSON Schemas of every command and event of
// the journals with golden files of every version, the OpenAPI and AsyncAPI descriptions, and the migrations of the
// read models.
package schemas

import "embed"

// Events holds the schemas and golden files of the journals' records, a folder for each journal: events/<journal>/
// <event type>.v<version>.schema.json for an event's data, commands.json with the types of commands,
// command.schema.json for what a record keeps of each, and golden/ with one encoding of each, which never changes. What several of them have in common is in
// events/common.schema.json, which they refer to as urn:perpetua:common.
//
//go:embed events/*.json events/*/*.json events/*/golden/*.json
var Events embed.FS
