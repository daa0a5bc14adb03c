package projections

import "github.com/perpetua-exchange/perpetua/streams/record"

// Projection is one family of rows. It converts entries to new rows and statements that bring the family's tables from
// the state before the entries to the state after them. The result MUST NOT depend on how the log is cut into batches.
// It reads only the entries. Its statements may read tables, including those of projections earlier in the runner's
// list.
type Projection interface {
	// Name is the name of the family in messages.
	Name() string
	// Tables lists the tables that contain only rows of this projection.
	Tables() []string
	// Project adds the writes for the entries to a batch and ignores entries that do not concern the family. It may run
	// while the previous transaction is being committed.
	Project(entries []record.Entry, batch *Batch)
}

// NewProjection returns a Projection. Its methods return or call the arguments.
func NewProjection(name string, project func(entries []record.Entry, batch *Batch), tables ...string) Projection {
	return family{name, tables, project}
}

type family struct {
	name    string
	tables  []string
	project func(entries []record.Entry, batch *Batch)
}

func (f family) Name() string                                 { return f.name }
func (f family) Tables() []string                             { return f.tables }
func (f family) Project(entries []record.Entry, batch *Batch) { f.project(entries, batch) }
