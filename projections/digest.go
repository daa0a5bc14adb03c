package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Digest is the number of rows of a table and a digest of all their columns. It does not depend on the storage order of
// the rows, nor on how the log was cut into batches: equal logs give equal digests.
type Digest struct {
	Rows int64
	Sum  string
}

// digestOf selects the number of rows and a digest of their texts. It adds two hashes of each row, so the order of the
// rows does not matter, and a duplicate row counts twice. OFFSET 0 keeps Postgres from merging the two queries, which
// would make the text of each row twice: that takes most of the time.
func digestOf(text, from string) string {
	return `SELECT count(*), to_hex(hashtextextended(concat(sum(hashtextextended(text, 1)), '/', sum(hashtextextended(text, 2))), 0))
		FROM (SELECT ` + text + ` AS text` + from + ` OFFSET 0) texts`
}

// NotProjected returns the names of the tables that no projection fills. An audit MUST NOT compare
// them, and a rebuild MUST NOT replace them.
func NotProjected() []string {
	return []string{versions, changesTable, "bases", "signed_trees", "cosigned_trees", "archive_heads", boundsTable}
}

// tables returns the names of all tables in the current schema that hold rows of the journals. It leaves out partitions,
// because the tables contain their rows.
func tables(ctx context.Context, db Querier) ([]string, error) {
	rows, err := db.Query(ctx, `SELECT relname::text FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> ALL ($1)
		AND (pg_has_role(relowner, 'USAGE') OR has_table_privilege(oid, 'SELECT'))
		ORDER BY relname COLLATE "C"`, NotProjected())
	if err != nil {
		return nil, fmt.Errorf("the list of tables: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("the list of tables: %w", err)
	}
	return names, nil
}
