package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Migrate creates the topics and brings the database's tables up to date.
func Migrate(ctx context.Context, args []string, std settings.IO) error {
	s, err := settings.Parse("migrate", args, std, nil)
	if err != nil {
		return err
	}
	if err := s.NeedCluster(); err != nil {
		return err
	}
	log, err := s.Logger(std.Err)
	if err != nil {
		return err
	}
	client, err := s.NewClient(s.Brokers(), log)
	if err != nil {
		return err
	}
	defer client.Close()
	client.AddBases(s.BaseSources()...)
	pool, err := projections.Open(ctx, s.DatabaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	return migrate(ctx, client, journals.All(), database{pool, s.DatabaseURL}, log)
}

// database is a Postgres with the tables of a venue, or for them.
type database struct {
	pool *pgxpool.Pool
	url  string
}

// found creates missing topics and tables, and reports whether the identity journal is empty: only then may a new
// master key be created. The values in an existing log cannot be opened with another key, which would be noticed too
// late after a restore without the key.
func found(ctx context.Context, s *settings.Settings, brokers []string, table journals.Table, rows database, log *slog.Logger) (fresh bool, err error) {
	client, err := s.NewClient(brokers, log)
	if err != nil {
		return false, err
	}
	defer client.Close()
	client.AddBases(s.BaseSources()...)
	if err := migrate(ctx, client, table, rows, log); err != nil {
		return false, err
	}
	return emptyIdentity(ctx, client)
}

// migrate creates the topics of the journals and the tables of the read models, and checks the topics' settings. It rebuilds
// the rows of a build before version 0.1.0.
func migrate(ctx context.Context, client *journal.Client, table journals.Table, rows database, log *slog.Logger) error {
	client.AddBases(projections.Bases{Pool: rows.pool})
	names := table.Names()
	if err := client.EnsureTopics(ctx, names...); err != nil {
		return err
	}
	if err := client.CheckTopics(ctx, names...); err != nil {
		return err
	}
	if err := migrateTables(ctx, rows.pool, log); err != nil {
		return err
	}
	r := renewal{client: client, table: table, url: rows.url, live: rows.pool, log: log}
	if err := r.run(ctx); err != nil {
		return fmt.Errorf("migrate: rebuilding the read models: %w", err)
	}
	return nil
}

// migrateTables brings the database's tables up to date.
func migrateTables(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	if err := projections.CheckSession(ctx, pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := projections.Migrate(ctx, pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	switch err := projections.GrantReaders(ctx, pool); {
	case errors.Is(err, projections.ErrNoReaderRole):
		log.Warn("nobody can read the read models as a member of perpetua_reader until that role is made", "error", err)
	case err != nil:
		return fmt.Errorf("migrate: %w", err)
	}
	if err := jobs.Migrate(ctx, pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
