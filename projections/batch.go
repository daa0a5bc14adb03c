package projections

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections/column"
)

// Batch collects the writes of one transaction: new rows, which are inserted with COPY, and then statements, which are
// sent in one round trip. So each statement sees all new rows of the transaction.
//
// COPY makes rows cheap: a row is encoded once in the server's storage format, nothing is planned, and rows reach the
// table and its write-ahead log by the page.
type Batch struct {
	before     pgx.Batch
	copies     []*copied
	statements pgx.Batch
	changes    []change // what is expected of each statement
	family     string   // the name of the projection that is being called
}

// copied holds new rows of one table.
type copied struct {
	table, sql, family string
	rows               column.Rows
}

// change is the expected effect of a statement.
type change struct {
	family string
	rows   int64 // number of rows that it must change, or -1 for any number
}

// rows returns the buffer for new rows of a table. It calls statement only for the first rows of the table.
func (b *Batch) rows(table string, statement func() string) *column.Rows {
	for _, c := range b.copies {
		if c.table == table {
			c.family = b.family
			return &c.rows
		}
	}
	c := &copied{table: table, sql: statement(), family: b.family}
	b.copies = append(b.copies, c)
	return &c.rows
}

// Prepare adds a statement that runs before the new rows are inserted.
func (b *Batch) Prepare(sql string, args ...any) { b.before.Queue(sql, args...) }

// Queue adds a statement.
func (b *Batch) Queue(sql string, args ...any) { b.queue(-1, sql, args) }

// Change adds a statement that must change the given number of rows. Another number means that the rows do not match the
// journal: the transaction fails.
func (b *Batch) Change(rows int, sql string, args ...any) { b.queue(int64(rows), sql, args) }

func (b *Batch) queue(rows int64, sql string, args []any) {
	b.statements.Queue(sql, args...)
	b.changes = append(b.changes, change{b.family, rows})
}

// reset empties the batch for the next entries. It keeps the buffers of the copies.
func (b *Batch) reset() {
	for _, c := range b.copies {
		c.rows.Reset()
	}
	b.before, b.statements, b.changes, b.family = pgx.Batch{}, pgx.Batch{}, nil, ""
}

// copy sends the new rows, with one round trip for each table that has any.
func (b *Batch) copy(ctx context.Context, conn *pgx.Conn) error {
	for _, c := range b.copies {
		if c.rows.Len() == 0 {
			continue
		}
		tag, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(c.rows.Data()), c.sql)
		if err == nil && tag.RowsAffected() != int64(c.rows.Len()) {
			err = fmt.Errorf("%d of %d rows were copied", tag.RowsAffected(), c.rows.Len())
		}
		if err != nil {
			return fmt.Errorf("projection %s: %w", c.family, err)
		}
	}
	return nil
}

// run runs the statements in one round trip.
func (b *Batch) run(ctx context.Context, conn *pgx.Conn) (err error) {
	if len(b.changes) == 0 {
		return nil
	}
	results := conn.SendBatch(ctx, &b.statements)
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
	}()
	for _, c := range b.changes {
		tag, err := results.Exec()
		if err != nil {
			return fmt.Errorf("projection %s: %w", c.family, err)
		}
		if n := tag.RowsAffected(); c.rows >= 0 && n != c.rows {
			return fmt.Errorf("projection %s: %d rows changed, %d should", c.family, n, c.rows)
		}
	}
	return nil
}
