package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// boundsTable says where the answers of the tables of history begin, and where the versions end.
const boundsTable = "history_bounds"

// partitioned is the journal with partitioned tables of history. Old partitions are dropped. The tables of history of the onboarding
// journal have few rows, and auditors ask about them for years, so all versions are kept.
const partitioned = "trading"

// historyParents names these tables without their partitions. The partitions of all three have the same bounds.
const historyParents = "ONLY order_history, ONLY balance_history, ONLY position_history"

// historyStep divides the first sequence of every partition of the tables of history. See history_partitions in the
// migration.
const historyStep = 1 << 20

// HistoryBounds keeps the bounds of a journal's tables of history, and makes the partitions of those that have some. It
// MUST come before the projections that write to them.
func HistoryBounds(journal string) Projection {
	return NewProjection("history", func(entries []record.Entry, batch *Batch) {
		batch.Prepare("SELECT history_written($1, $2, $3, true)", journal, entries[0].Record.Sequence, entries[len(entries)-1].Record.Sequence)
		if journal != partitioned {
			return
		}
		for _, e := range entries {
			if s := e.Record.Sequence; s%historyStep == 0 {
				batch.Prepare("SELECT history_partitions($1)", s)
			}
		}
	})
}

// ErrHistoryBusy says that a lock for dropping history was not free in time. The caller tries again later.
var ErrHistoryBusy = errors.New("projections: the tables of history are in use")

// dropWait is the longest time for which a drop waits for one lock, in the unit of lock_timeout. Runners and readers that
// come later wait for the drop, so it must be short.
const dropWait = "100ms"

// DropHistory drops the partitions of the tables of history that only have versions from before a time: the newest record
// of a partition is older than the time. Questions as of earlier records then get a *HistoryError.
//
// The oldest partitions are dropped first, those of the three tables in one transaction with the new bound. DropHistory
// returns the number of these transactions. It returns ErrHistoryBusy if a rebuild or a long transaction uses the tables.
// Partitions dropped before that stay dropped.
func DropHistory(ctx context.Context, pool *pgxpool.Pool, before scalar.Time) (dropped int, err error) {
	for {
		// Without locks first: usually there is nothing to drop.
		end, err := oldHistory(ctx, pool, before)
		if err != nil || end < 0 {
			return dropped, err
		}
		if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return dropOldest(ctx, tx, before) }); err != nil {
			if sqlState(err) == lockNotAvailable {
				err = ErrHistoryBusy
			}
			return dropped, fmt.Errorf("projections: dropping the history before sequence %d: %w", end, err)
		}
		dropped++
	}
}

// historyEnds selects the names of the partitions in a schema, and the sequences before which their versions ended.
const historyEnds = `SELECT c.relname::text AS name, substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''(\d+)''\)')::bigint AS ended
	FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent JOIN pg_class c ON c.oid = i.inhrelid
	WHERE p.relname IN ('order_history', 'balance_history', 'position_history') AND p.relnamespace = %s`

// oldHistory returns the sequence before which the versions in the oldest partition ended, or -1 if they did not all end
// before the time.
func oldHistory(ctx context.Context, db Querier, before scalar.Time) (end int64, err error) {
	err = db.QueryRow(ctx, "SELECT p.ended FROM (SELECT min(ended) AS ended FROM ("+fmt.Sprintf(historyEnds, "current_schema()::regnamespace")+
		") e) p JOIN records r ON r.journal = 'trading' AND r.sequence = p.ended - 1 WHERE r.time < $1", column.Timestamp(before)).Scan(&end)
	if errors.Is(err, pgx.ErrNoRows) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("projections: reading the age of the history: %w", err)
	}
	return end, nil
}

// dropOldest drops the oldest partition if it is old enough, and moves the bound.
//
// The order of the locks matters. A rebuild holds the advisory lock, because it compares and writes the same tables. A
// runner's transaction begins at the checkpoint, so behind that lock no runner has a lock on the tables of history, and
// the two cannot block each other. ReadAsOf locks the tables before its snapshot: a reader reads the old bound and the
// partition, or the new bound.
func dropOldest(ctx context.Context, tx pgx.Tx, before scalar.Time) error {
	if err := durable(ctx, tx); err != nil {
		return err
	}
	var free bool
	if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge', 0))").Scan(&free); err != nil {
		return err
	}
	if !free {
		return ErrHistoryBusy
	}
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '"+dropWait+"'"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT FROM checkpoints WHERE journal = 'trading' FOR UPDATE"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "LOCK TABLE "+historyParents+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		return err
	}
	end, err := oldHistory(ctx, tx, before) // another process may have dropped it
	if err != nil || end < 0 {
		return err
	}
	if _, err := tx.Exec(ctx, "UPDATE history_bounds SET kept = greatest(kept, $1) WHERE journal = 'trading'", end-1); err != nil {
		return err
	}
	return dropPartitions(ctx, tx, "current_schema()::regnamespace", end)
}

// dropPartitions drops the partitions of a schema up to the sequence end. It keeps partitions with later sequences.
func dropPartitions(ctx context.Context, db executor, schema string, end int64) error {
	rows, err := db.Query(ctx, "SELECT quote_ident(ns.nspname) || '.' || quote_ident(name) FROM ("+fmt.Sprintf(historyEnds, schema)+
		") e, pg_namespace ns WHERE ns.oid = "+schema+" AND ended <= $1", end)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		return err
	}
	_, err = db.Exec(ctx, "DROP TABLE "+strings.Join(names, ", "))
	return err
}

// droppedBefore returns the first sequence as of which the tables of history answer, if the earlier versions were dropped
// for their age, or -1.
func droppedBefore(ctx context.Context, db Querier) (from int64, err error) {
	err = db.QueryRow(ctx, "SELECT COALESCE(max(kept), -1) FROM history_bounds WHERE journal = 'trading'").Scan(&from)
	return from, err
}

// forgetHistory removes the versions from the new rows that the live tables have dropped.
func (m *Merge) forgetHistory(ctx context.Context) error {
	from, err := droppedBefore(ctx, m.conn)
	if err != nil || from < 0 {
		return err
	}
	if err := dropPartitions(ctx, m.conn, regnamespace(m.schema), from+1); err != nil {
		return err
	}
	return deleteHistory(ctx, m.conn, m.schema, from) // nothing is left if both schemas have the same partitions
}

// deleteHistory deletes the versions that ended at a sequence or before it.
func deleteHistory(ctx context.Context, db executor, schema string, from int64) error {
	for _, table := range historyTables(partitioned) {
		if _, err := db.Exec(ctx, "DELETE FROM "+pgx.Identifier{schema, table}.Sanitize()+" WHERE until <= $1", from); err != nil {
			return fmt.Errorf("deleting old rows of the table %s: %w", table, err)
		}
	}
	return nil
}

// complete says that the live tables have all versions up to their checkpoints, apart from those dropped for their age. The
// checkpoints MUST be merged before.
func (m *Merge) complete(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, fmt.Sprintf(`UPDATE %[1]s.history_bounds b SET built = -1,
		written = COALESCE((SELECT c.sequence FROM %[1]s.checkpoints c WHERE c.journal = b.journal AND c.partition = 0), -1)`,
		pgx.Identifier{m.target}.Sanitize()))
	return err
}

// partition makes the partitions in the live tables that only the new ones have.
func (m *Merge) partition(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SELECT history_partitions(ended - 1) FROM (SELECT ended FROM ("+fmt.Sprintf(historyEnds, regnamespace(m.schema))+
		") n EXCEPT SELECT ended FROM ("+fmt.Sprintf(historyEnds, regnamespace(m.target))+") t ORDER BY 1) missing")
	return err
}

// regnamespace returns an expression for the id of a schema.
func regnamespace(schema string) string {
	return quoteLiteral(pgx.Identifier{schema}.Sanitize()) + "::regnamespace"
}

func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// HistoryFrom returns the first sequence as of which each table of history answers, or -1, by the table's name. It keeps more history
// from being dropped until the transaction ends. Live rows as of the transaction may have some of the versions that ended
// earlier.
func HistoryFrom(ctx context.Context, live Querier, reading pgx.Tx) (from map[string]int64, err error) {
	if _, err := reading.Exec(ctx, lockHistory); err != nil {
		return nil, fmt.Errorf("projections: locking the history: %w", err)
	}
	from = make(map[string]int64)
	for _, journal := range []string{"trading", "onboarding"} {
		first := int64(-1)
		// The transaction's snapshot may be older than a drop. It still shows the former bound, but not the dropped partition.
		for _, db := range []Querier{live, reading} {
			var begins, retained int64 = -1, -1
			if err := db.QueryRow(ctx, bounds, journal).Scan(&begins, &retained); err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return nil, fmt.Errorf("projections: reading where history begins: %w", err)
			}
			first = max(first, begins)
		}
		for _, table := range historyTables(journal) {
			from[table] = first
		}
	}
	return from, nil
}

// bounds selects the sequence at which the answers of the tables of history begin, and the end of the history that was
// dropped for its age.
const bounds = `SELECT greatest(b.kept, CASE WHEN b.written = c.sequence THEN b.built ELSE c.sequence END), b.kept
	FROM history_bounds b JOIN checkpoints c USING (journal) WHERE journal = $1 AND c.partition = 0`

// historyTables returns the names of a journal's tables of history.
func historyTables(journal string) []string {
	switch journal {
	case "trading":
		return []string{"order_history", "balance_history", "position_history"}
	case "onboarding":
		return []string{"owner_history", "document_history", "trigger_history"}
	}
	return nil
}

// lockHistory keeps history from being dropped until the transaction ends.
const lockHistory = "LOCK TABLE " + historyParents + " IN ACCESS SHARE MODE"
