package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// OpenBeside returns a pool on empty tables in a schema of their own, so that rows can be made there while the live ones are
// read: with a corrected projection, say. Switch then puts them in the place of the live ones. remove closes the pool and
// drops what is left of the schema. What an earlier process left there when it was killed is dropped; while another process
// has the schema, it is an error: the two would fill each other's tables, and one would switch to what the other has begun.
func OpenBeside(ctx context.Context, url, schema string) (pool *pgxpool.Pool, remove func(), err error) {
	return openEmpty(ctx, url, schema, migrated)
}

// OpenScratch is OpenBeside for rows that are compared and thrown away.
func OpenScratch(ctx context.Context, url, schema string) (pool *pgxpool.Pool, remove func(), err error) {
	return openEmpty(ctx, url, schema, unlogged)
}

func openEmpty(ctx context.Context, url, schema string, fill func(context.Context, *pgxpool.Pool) error) (pool *pgxpool.Pool, remove func(), err error) {
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

// openSchema makes a schema and returns a pool whose tables are in it.
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
	return pgxpool.NewWithConfig(ctx, cfg)
}

// migrated makes the tables of a schema.
func migrated(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := Migrate(ctx, pool)
	return err
}

// unlogged makes the tables of a schema that need not survive a crash, and so cost no write-ahead log.
func unlogged(ctx context.Context, pool *pgxpool.Pool) error {
	if err := migrated(ctx, pool); err != nil {
		return err
	}
	all, err := tables(ctx, pool)
	for _, table := range all {
		if err == nil {
			_, err = pool.Exec(ctx, "ALTER TABLE "+pgx.Identifier{table}.Sanitize()+" SET UNLOGGED")
		}
	}
	return err
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
		functions, err := functions(ctx, tx, schema)
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
		for _, function := range functions { // the tables that were dropped called the live ones
			statements = append(statements, "DROP FUNCTION IF EXISTS "+pgx.Identifier{current, function}.Sanitize(),
				"ALTER FUNCTION "+pgx.Identifier{schema, function}.Sanitize()+" SET SCHEMA "+pgx.Identifier{current}.Sanitize())
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

// functions returns the names of a schema's functions.
func functions(ctx context.Context, tx pgx.Tx, schema string) ([]string, error) {
	rows, err := tx.Query(ctx, "SELECT routine_name::text FROM information_schema.routines WHERE routine_schema = $1 ORDER BY 1", schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
