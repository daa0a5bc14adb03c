package tools

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
)

// needTables returns an error that names the database if it lacks tables of this build.
func needTables(ctx context.Context, db projections.Querier, at *pgx.ConnConfig) error {
	have, newest, err := projections.SchemaVersion(ctx, db)
	switch {
	case err != nil:
		return err
	case have == 0:
		return fmt.Errorf("the database %s at %s:%d has no tables of a venue: perpetua migrate and perpetua run make them, "+
			"and --database-url names another database", at.Database, at.Host, at.Port)
	case have < newest:
		return fmt.Errorf("the tables in the database %s at %s:%d are at migration %d of %d: run perpetua migrate",
			at.Database, at.Host, at.Port, have, newest)
	}
	return nil
}

// needTablesOf is needTables for a pool.
func needTablesOf(ctx context.Context, pool *pgxpool.Pool) error {
	return needTables(ctx, pool, pool.Config().ConnConfig)
}
