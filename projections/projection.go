package projections

import "github.com/perpetua-exchange/perpetua/streams/record"

// Projection is one family of rows. It turns entries into the new rows and the statements that bring the family's
// tables from the state before the entries to the state after them, however the log is cut. It reads nothing but the
// entries; its statements may read tables, those of the projections before it in the runner's list included.
type Projection interface {
	// Name is the family's name, for messages.
	Name() string
	// Tables names the tables that hold this projection's rows and nothing else.
	Tables() []string
	// Project adds what the entries mean to a batch. An entry that means nothing to the family is passed over. It may
	// run while the transaction before is still under way.
	Project(entries []record.Entry, batch *Batch)
}
