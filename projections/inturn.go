package projections

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Executor is a pool, or InTurn of one.
type Executor interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Begin(ctx context.Context) (pgx.Tx, error)
}

// turnPatience is the longest wait for a turn.
const turnPatience = 250 * time.Millisecond

// InTurn returns an Executor that runs at most the given number of statements and transactions concurrently. It is for short ones
// that many goroutines run at the same time, as at the start of a node. The pool would open a connection for each of them, and opening
// one takes longer than running them. A statement waits for its turn for at most a quarter of a second, because the ones before it
// may wait for a locked table.
func InTurn(db Executor, most int) Executor { return inTurn{db, make(chan struct{}, most)} }

type inTurn struct {
	Executor
	running chan struct{} // holds one token for each statement and transaction
}

// wait waits for a turn. The caller must call end after its statement.
func (t inTurn) wait(ctx context.Context) (end func()) {
	patience := time.NewTimer(turnPatience)
	defer patience.Stop()
	select {
	case t.running <- struct{}{}:
		return sync.OnceFunc(func() { <-t.running })
	case <-patience.C:
	case <-ctx.Done(): // the pool gives no connection for it
	}
	return func() {}
}

// Exec implements Executor.
func (t inTurn) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	defer t.wait(ctx)()
	return t.Executor.Exec(ctx, sql, args...)
}

// Query implements Executor. The caller must close the rows.
func (t inTurn) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	end := t.wait(ctx)
	rows, err := t.Executor.Query(ctx, sql, args...)
	if err != nil {
		end()
		return rows, err
	}
	return turnRows{rows, end}, nil
}

// QueryRow implements Executor. The caller must scan the row.
func (t inTurn) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	end := t.wait(ctx)
	return turnRow{t.Executor.QueryRow(ctx, sql, args...), end}
}

// Begin implements Executor. The caller must commit or roll back the transaction.
func (t inTurn) Begin(ctx context.Context) (pgx.Tx, error) {
	end := t.wait(ctx)
	tx, err := t.Executor.Begin(ctx)
	if err != nil {
		end()
		return nil, err
	}
	return turnTx{tx, end}, nil
}

type turnRows struct {
	pgx.Rows
	end func()
}

// Close gives the connection back to the pool, and lets the next statement run.
func (r turnRows) Close() {
	r.Rows.Close()
	r.end()
}

type turnRow struct {
	pgx.Row
	end func()
}

// Scan also lets the next statement run.
func (r turnRow) Scan(values ...any) error {
	defer r.end()
	return r.Row.Scan(values...)
}

type turnTx struct {
	pgx.Tx
	end func()
}

// Commit also lets the next statement run.
func (t turnTx) Commit(ctx context.Context) error {
	defer t.end()
	return t.Tx.Commit(ctx)
}

// Rollback also lets the next statement run.
func (t turnTx) Rollback(ctx context.Context) error {
	defer t.end()
	return t.Tx.Rollback(ctx)
}
