package launch

import (
	"context"
	"fmt"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
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
	return migrate(ctx, client, journals.All(), s.DatabaseURL)
}

// migrate makes what the journals and the read models are kept in, and checks the topics' settings.
func migrate(ctx context.Context, client *journal.Client, table journals.Table, databaseURL string) error {
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
	return nil
}
