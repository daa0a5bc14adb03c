package projections

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Along is called in the transaction of each batch, after its rows are written. It inserts work for other components
// that must exist if and only if the rows do. This work is not part of the rows of the log: comparisons ignore it and
// rebuilds do not produce it.
//
// An error aborts the transaction, and the batch is retried.
type Along func(ctx context.Context, tx pgx.Tx, entries []record.Entry) error

// Along sets a function that the runner calls in its transactions. It MUST be called before Run.
func (r *Runner) Along(f Along) { r.along = f }

// runnerTx presents the runner's transaction as a pgx.Tx. The runner has begun it and ends it.
type runnerTx struct{ conn *pgx.Conn }

var errNotYours = errors.New("projections: the transaction is the runner's")

func (t runnerTx) Begin(context.Context) (pgx.Tx, error) { return nil, errNotYours }
func (t runnerTx) Commit(context.Context) error          { return errNotYours }
func (t runnerTx) Rollback(context.Context) error        { return errNotYours }
func (t runnerTx) LargeObjects() pgx.LargeObjects        { return pgx.LargeObjects{} }
func (t runnerTx) Conn() *pgx.Conn                       { return t.conn }

func (t runnerTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	return t.conn.CopyFrom(ctx, table, columns, rows)
}

func (t runnerTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.conn.SendBatch(ctx, b)
}

func (t runnerTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return t.conn.Prepare(ctx, name, sql)
}

func (t runnerTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.conn.Exec(ctx, sql, args...)
}

func (t runnerTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.conn.Query(ctx, sql, args...)
}

func (t runnerTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.conn.QueryRow(ctx, sql, args...)
}
