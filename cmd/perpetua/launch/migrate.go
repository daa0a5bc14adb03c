package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

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
	return migrate(ctx, client, journals.All(), s.DatabaseURL, log)
}

// found makes topics and tables where they are not there yet, and reports whether the identity journal is yet to be founded:
// only then may there be a new master key. What an older log holds sealed can't be opened with another key, and after a
// restore without the key that would be noticed too late.
func found(ctx context.Context, s *settings.Settings, brokers []string, table journals.Table, databaseURL string, log *slog.Logger) (fresh bool, err error) {
	client, err := s.NewClient(brokers, log)
	if err != nil {
		return false, err
	}
	defer client.Close()
	if err := migrate(ctx, client, table, databaseURL, log); err != nil {
		return false, err
	}
	return emptyIdentity(ctx, client)
}

// migrate makes what the journals and the read models are kept in, and checks the topics' settings.
func migrate(ctx context.Context, client *journal.Client, table journals.Table, databaseURL string, log *slog.Logger) error {
	names := table.Names()
	if err := client.EnsureTopics(ctx, names...); err != nil {
		return err
	}
	if err := client.CheckTopics(ctx, names...); err != nil {
		return err
	}
	pool, err := projections.Open(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
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
