package projectiontest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
)

// Digests returns a digest of the rows of each table that is built from the journals, by the table's name, including
// checkpoints and anchors. Equal rows give equal digests, in whichever order they are stored.
func Digests(t testing.TB, pool *pgxpool.Pool) map[string]projections.Digest {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	digests := make(map[string]projections.Digest)
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace
			AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> ALL ($1)
			AND (pg_has_role(relowner, 'USAGE') OR has_table_privilege(oid, 'SELECT'))`, projections.NotProjected())
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			var d projections.Digest
			err := tx.QueryRow(ctx, `SELECT count(*), md5(coalesce(string_agg(t::text, '/' ORDER BY t::text), '')) FROM `+
				pgx.Identifier{name}.Sanitize()+" t").Scan(&d.Rows, &d.Sum)
			if err != nil {
				return err
			}
			digests[name] = d
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return digests
}
