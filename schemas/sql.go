package schemas

import "embed"

// SQL holds the goose migrations of the read models in the folder sql, in the order of their numbers. Nothing in those
// tables is a source of anything: dropping the database and starting again brings every row back from the journals.
//
//go:embed sql/*.sql
var SQL embed.FS
