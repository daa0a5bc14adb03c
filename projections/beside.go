package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrInUse says that another process has the schema open.
var ErrInUse = errors.New("another process is at work in it")

// OpenBeside creates empty tables in a separate schema and returns a pool that uses it, so that rows can be built while
// the live ones are read. remove closes the pool and drops the schema. OpenBeside first drops the tables that a killed
// process left in the schema. It returns ErrInUse while another process has the schema open, because both would write to
// the same tables.
func OpenBeside(ctx context.Context, url, schema string) (pool *pgxpool.Pool, remove func(), err error) {
	return openEmpty(ctx, url, schema, migrated)
}

// OpenScratch is OpenBeside for rows that need not survive a crash of Postgres: those that are compared or merged, and
// then dropped.
func OpenScratch(ctx context.Context, url, schema string) (pool *pgxpool.Pool, remove func(), err error) {
	return openEmpty(ctx, url, schema, unlogged)
}

func openEmpty(ctx context.Context, url, schema string, fill func(context.Context, *pgxpool.Pool) error) (pool *pgxpool.Pool, remove func(), err error) {
	conn, err := Connect(ctx, url)
	if err != nil {
		return nil, nil, fmt.Errorf("projections: opening the schema %s: %w", schema, err)
	}
	drop := "DROP SCHEMA IF EXISTS " + pgx.Identifier{schema}.Sanitize() + " CASCADE"
	remove = func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), answers)
		defer cancel()
		if pool != nil {
			pool.Close()
			_, _ = conn.Exec(ending, drop) // otherwise the next OpenBeside drops it
		}
		// Unlock explicitly: the server releases the lock only some time after the connection closes, and the next
		// process may start before that.
		_, _ = conn.Exec(ending, "SELECT pg_advisory_unlock_all()")
		_ = conn.Close(ending)
	}
	var locked bool
	if err = stayIdle(ctx, conn); err != nil {
		remove()
		return nil, nil, fmt.Errorf("projections: opening the schema %s: %w", schema, err)
	}
	if err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended('perpetua schema ' || $1::text, 0))", schema).Scan(&locked); err == nil && !locked {
		err = ErrInUse
	}
	if err == nil {
		err = checkOurs(ctx, conn, schema)
	}
	if err == nil {
		_, err = conn.Exec(ctx, drop)
	}
	if err == nil {
		pool, err = openSchema(ctx, url, schema)
	}
	if err == nil {
		err = fill(ctx, pool)
	}
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("projections: opening the schema %s: %w", schema, err)
	}
	return pool, remove, nil
}

// openSchema creates a schema and returns a pool that uses it. With the setting perpetua.scratch, migrations make no views for
// analysts, which exist once in a database.
func openSchema(ctx context.Context, url, schema string) (*pgxpool.Pool, error) {
	live, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer live.Close()
	if _, err := live.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return nil, err
	}
	cfg := live.Config()
	cfg.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	cfg.ConnConfig.RuntimeParams["perpetua.scratch"] = "on"
	afterConnect(cfg, inSchema(schema))
	unhurried(cfg)
	return pgxpool.NewWithConfig(ctx, cfg)
}

// migrated creates the tables of a schema.
func migrated(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := Migrate(ctx, pool)
	return err
}

// unlogged creates the tables of a schema without write-ahead log, so they do not survive a crash.
func unlogged(ctx context.Context, pool *pgxpool.Pool) error {
	if err := migrated(ctx, pool); err != nil {
		return err
	}
	rows, err := pool.Query(ctx, `SELECT relname::text FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> ALL ($1)`, NotProjected())
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, table := range all {
		if err == nil {
			_, err = pool.Exec(ctx, "ALTER TABLE "+pgx.Identifier{table}.Sanitize()+" SET UNLOGGED")
		}
	}
	return err
}
