// Package schemas holds what the venue promises in machine-readable form: JSON Schemas of every command and event of
// the journals with golden files of every version, the OpenAPI and AsyncAPI descriptions, and the migrations of the
// read models.
//
// Each journal has a folder in events:
// <event type>.v<version>.schema.json describes an event's data, commands.json lists the types of commands,
// command.schema.json describes the part of a command that its record keeps, and golden has one encoding of each event,
// which never changes. Definitions that several schemas use are in events/common.schema.json, with the $id
// urn:perpetua:common.
package schemas
