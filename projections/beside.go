package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// OpenBeside returns a pool whose tables are in a schema of their own, which it creates, so that a corrected
// projection can be rebuilt there with Migrate and a runner while the live rows are being read. Switch then puts the
// new rows in the place of the old ones.
func OpenBeside(ctx context.Context, url, schema string) (*pgxpool.Pool, error) {
	live, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer live.Close()
	if _, err := live.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return nil, fmt.Errorf("projections: creating the schema %s: %w", schema, err)
	}
	cfg := live.Config()
	cfg.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("projections: opening the schema %s: %w", schema, err)
	}
	return pool, nil
}

// OpenScratch returns a pool on an empty schema for rows that are compared and thrown away, which remove does. What an
// earlier process left there when it was killed is dropped; while another process has the schema, it is an error.
func OpenScratch(ctx context.Context, url, schema string) (pool *pgxpool.Pool, remove func(), err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, nil, fmt.Errorf("projections: opening the schema %s: %w", schema, err)
	}
	drop := "DROP SCHEMA IF EXISTS " + pgx.Identifier{schema}.Sanitize() + " CASCADE"
	remove = func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), answers)
		defer cancel()
		if pool != nil {
			pool.Close()
			_, _ = conn.Exec(ending, drop) // otherwise the next one does it
		}
		_ = conn.Close(ending) // and with it the lock
	}
	var locked bool
	if err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended('perpetua schema ' || $1::text, 0))", schema).Scan(&locked); err == nil && !locked {
		err = errors.New("another process is at work in it")
	}
	if err == nil {
		_, err = conn.Exec(ctx, drop)
	}
	if err == nil {
		pool, err = scratch(ctx, url, schema)
	}
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("projections: opening the schema %s: %w", schema, err)
	}
	return pool, remove, nil
}

// scratch makes the tables of a schema, which need not survive a crash and so cost no write-ahead log.
func scratch(ctx context.Context, url, schema string) (*pgxpool.Pool, error) {
	pool, err := OpenBeside(ctx, url, schema)
	if err != nil {
		return nil, err
	}
	var all []string
	if _, err = Migrate(ctx, pool); err == nil {
		all, err = tables(ctx, pool)
	}
	for _, table := range all {
		if err == nil {
			_, err = pool.Exec(ctx, "ALTER TABLE "+pgx.Identifier{table}.Sanitize()+" SET UNLOGGED")
		}
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// Switch drops the live tables and puts those of the schema in their place, in one transaction: readers see the old
// rows or the new ones. The runner of the schema must have stopped; the live one finds its checkpoint moved and goes
// on from the new one.
func Switch(ctx context.Context, live *pgxpool.Pool, schema string) error {
	err := pgx.BeginFunc(ctx, live, func(tx pgx.Tx) error {
		if err := durable(ctx, tx); err != nil {
			return err
		}
		var current string
		if err := tx.QueryRow(ctx, "SELECT current_schema()").Scan(&current); err != nil {
			return err
		}
		views, err := relations(ctx, tx, schema, "VIEW")
		if err != nil {
			return err
		}
		tables, err := relations(ctx, tx, schema, "BASE TABLE")
		if err != nil {
			return err
		}
		if len(tables) == 0 {
			return fmt.Errorf("the schema %s has no tables", schema)
		}
		// Runners and readers come to the checkpoint first, so they wait here and never for each other.
		statements := []string{"LOCK TABLE " + pgx.Identifier{current, "checkpoints"}.Sanitize()}
		for _, view := range views { // they depend on the tables, and come back with them
			statements = append(statements, "DROP VIEW IF EXISTS "+pgx.Identifier{current, view}.Sanitize())
		}
		for _, table := range tables {
			statements = append(statements, "DROP TABLE IF EXISTS "+pgx.Identifier{current, table}.Sanitize(),
				"ALTER TABLE "+pgx.Identifier{schema, table}.Sanitize()+" SET SCHEMA "+pgx.Identifier{current}.Sanitize())
		}
		for _, view := range views {
			statements = append(statements, "ALTER VIEW "+pgx.Identifier{schema, view}.Sanitize()+" SET SCHEMA "+pgx.Identifier{current}.Sanitize())
		}
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, "DROP SCHEMA "+pgx.Identifier{schema}.Sanitize())
		return err
	})
	if err != nil {
		return fmt.Errorf("projections: switching to the schema %s: %w", schema, err)
	}
	return nil
}

// relations returns the names of a schema's tables or views.
func relations(ctx context.Context, tx pgx.Tx, schema, kind string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT table_name::text FROM information_schema.tables
		WHERE table_schema = $1 AND table_type = $2 ORDER BY 1`, schema, kind)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
