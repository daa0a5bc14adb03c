// Package schemas holds what the venue promises in machine-readable form: JSON Schemas of every command and event of
// the journals with golden files of every version, the OpenAPI and AsyncAPI descriptions, and the migrations of the
// read models.
//
// The schemas and golden files are for readers of the log; no program needs them. Each journal has a folder:
// events/<journal>/<event type>.v<version>.schema.json is for an event's data, commands.json has the types of commands,
// command.schema.json is for what a record keeps of each, and golden/ has one encoding of each event, which never
// changes. What several of them have in common is in events/common.schema.json, which they refer to as
// urn:perpetua:common.
package schemas
