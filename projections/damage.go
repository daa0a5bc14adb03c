package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// Damage lists changes to the tables of the venue that were made by hand and that no migration reverts.
type Damage struct {
	Missing  []string // tables and views that the migrations have made
	Unlogged []string // tables that Postgres empties in a crash and does not copy to a standby
	Invalid  []string // indexes that no query uses
}

// FindDamage examines the tables in a database that has all migrations of this build. It changes nothing.
func FindDamage(ctx context.Context, pool *pgxpool.Pool) (d Damage, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, postgres.Objects); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `WITH named AS (
				SELECT name, to_regclass(name) AS object FROM regexp_split_to_table(
					btrim(current_setting('perpetua.readable') || current_setting('perpetua.withheld'), E' \n'), '\s+') name
			)
			SELECT (SELECT COALESCE(array_agg(name ORDER BY name), '{}') FROM named WHERE object IS NULL),
				(SELECT COALESCE(array_agg(relname::text ORDER BY relname), '{}') FROM pg_class
					WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relpersistence = 'u' AND relname <> $1
						AND (oid IN (SELECT object FROM named) OR relispartition)),
				(SELECT COALESCE(array_agg(i.indexrelid::regclass::text ORDER BY 1), '{}') FROM pg_index i
					WHERE NOT i.indisvalid AND i.indrelid IN (SELECT object FROM named))`, changesTable).Scan(&d.Missing, &d.Unlogged, &d.Invalid)
	})
	if err != nil {
		return d, fmt.Errorf("projections: examining the tables: %w", err)
	}
	return d, nil
}
