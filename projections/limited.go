package projections

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// queryLimit is the timeout of a batch of queries that a client waits for: Postgres may hang or be cut off.
const queryLimit = 30 * time.Second

// Limited returns a DB for the reads of clients. It limits the number of simultaneous batches; each uses its own connection. A
// batch fails with context.DeadlineExceeded after 30 seconds, including its wait.
func Limited(db DB, most int) DB { return limited{db, make(chan struct{}, most)} }

type limited struct {
	db      DB
	running chan struct{} // holds one token for each batch
}

// SendBatch implements DB. The caller must close the results.
func (l limited) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	end := cancel
	select {
	case l.running <- struct{}{}:
		end = sync.OnceFunc(func() {
			cancel()
			<-l.running
		})
	case <-ctx.Done(): // the pool gives no connection for it
	}
	return limitedResults{l.db.SendBatch(ctx, b), end}
}

type limitedResults struct {
	pgx.BatchResults
	end func()
}

// Close gives the connection back to the pool, lets the next batch run, and ends the limit.
func (r limitedResults) Close() error {
	defer r.end()
	return r.BatchResults.Close()
}
