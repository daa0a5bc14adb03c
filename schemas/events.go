package schemas

import (
	"embed"
	"io/fs"
)

//go:embed events/common.schema.json events/*/*.schema.json
var events embed.FS

// Events returns the JSON Schemas of the records: common.schema.json, and one folder for each journal. Their members carry
// disclosure classes, which package disclose reads.
func Events() fs.FS {
	below, err := fs.Sub(events, "events")
	if err != nil { // only for an invalid path
		panic(err)
	}
	return below
}
