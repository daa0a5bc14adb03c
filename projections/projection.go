package projections

import (
	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Projection is one family of rows. It turns a batch of entries into the statements that bring the family's tables
// from the state before the batch to the state after it, however the log is cut into batches. It reads nothing but
// the entries; its statements may read tables, those of the projections before it in the runner's list included.
type Projection interface {
	// Name is the family's name, for messages.
	Name() string
	// Tables names the tables that hold this projection's rows and nothing else.
	Tables() []string
	// Project queues the statements for the entries. An entry that means nothing to the family is passed over.
	Project(entries []journal.Entry, batch *pgx.Batch)
}
