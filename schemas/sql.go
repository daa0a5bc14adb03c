package schemas

import "embed"

// SQL holds the goose migrations of the read models in the folder sql, in the order of their numbers. The tables are not a
// source of anything: dropping the database and starting again brings every row back from the journals. The exceptions are
// signed_trees and cosigned_trees, which say what was signed and cosigned, and the copies in bases and archive_heads.
//
// A released migration never changes, and later ones are appended. The first number is 25, because builds before version
// 0.1.0 had others up to 24. The migrations have no way down.
//
//go:embed sql/*.sql
var SQL embed.FS
