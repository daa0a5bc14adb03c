package node

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
)

// TestRowsAreLimited: no interface waits for a Postgres that hangs for longer than projections.Limited allows.
func TestRowsAreLimited(t *testing.T) {
	n := &Node{stores: stores{pool: &pgxpool.Pool{}}}
	f := &follower{Journal: journals.Journal{Rules: journaltest.Words{Name: "trading"}}}
	if rows := n.rowsOf(f); rows.DB != projections.Limited(n.stores.pool) {
		t.Errorf("the rows are read from %T", rows.DB)
	}
}
