package projections

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// queryLimit is the timeout of a batch of queries that a client waits for: Postgres may hang or be cut off.
const queryLimit = 30 * time.Second

// Limited returns a DB on which each batch of queries fails with context.DeadlineExceeded after 30 seconds, from the wait for a
// connection to the last row.
func Limited(db DB) DB { return limited{db} }

type limited struct{ db DB }

// SendBatch implements DB. The caller must close the results.
func (l limited) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	return limitedResults{l.db.SendBatch(ctx, b), cancel}
}

type limitedResults struct {
	pgx.BatchResults
	cancel context.CancelFunc
}

// Close gives the connection back to the pool and ends the limit.
func (r limitedResults) Close() error {
	defer r.cancel()
	return r.BatchResults.Close()
}
