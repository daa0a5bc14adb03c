package projections

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Along is called in the transaction of each batch, after its rows: it inserts work for others that has to be there when the
// rows are, and not before. What it writes is no row of the log: it is not compared, and a rebuild does not make it.
//
// An error ends the transaction as one of the rows would, and the batch is tried again.
type Along func(ctx context.Context, tx pgx.Tx, entries []record.Entry) error

// Along has a function called in the transactions of a runner that does not run yet.
func (r *Runner) Along(f Along) { r.along = f }

// inside is the runner's own transaction, for those who take a pgx.Tx. It is the runner that began it and ends it.
type inside struct{ conn *pgx.Conn }

var errNotYours = errors.New("projections: the transaction is the runner's")

func (t inside) Begin(context.Context) (pgx.Tx, error) { return nil, errNotYours }
func (t inside) Commit(context.Context) error          { return errNotYours }
func (t inside) Rollback(context.Context) error        { return errNotYours }
func (t inside) LargeObjects() pgx.LargeObjects        { return pgx.LargeObjects{} }
func (t inside) Conn() *pgx.Conn                       { return t.conn }

func (t inside) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	return t.conn.CopyFrom(ctx, table, columns, rows)
}

func (t inside) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.conn.SendBatch(ctx, b)
}

func (t inside) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return t.conn.Prepare(ctx, name, sql)
}

func (t inside) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.conn.Exec(ctx, sql, args...)
}

func (t inside) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.conn.Query(ctx, sql, args...)
}

func (t inside) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.conn.QueryRow(ctx, sql, args...)
}
