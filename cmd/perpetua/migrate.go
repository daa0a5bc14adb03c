package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// migrateCommand creates the topics and brings the database's tables up to date.
func migrateCommand(ctx context.Context, args []string, std stdio) error {
	s, err := parseSettings("migrate", args, std, nil)
	if err != nil {
		return err
	}
	if err := s.needCluster(); err != nil {
		return err
	}
	log, err := newLogger(s, std.err)
	if err != nil {
		return err
	}
	client, err := newAdminClient(s, s.brokers(), log)
	if err != nil {
		return err
	}
	defer client.Close()
	return migrate(ctx, client, s.DatabaseURL)
}

// needCluster says what is missing for a command that brings up nothing by itself.
func (s *settings) needCluster() error {
	switch {
	case len(s.brokers()) == 0:
		return usagef("--kafka-brokers is needed (or $PERPETUA_KAFKA_BROKERS)")
	case s.DatabaseURL == "":
		return usagef("--database-url is needed (or $PERPETUA_DATABASE_URL)")
	}
	return nil
}

// newAdminClient returns a client for what is done before a node runs.
func newAdminClient(s *settings, brokers []string, log *slog.Logger) (*journal.Client, error) {
	options, err := kafkaOptions(s)
	if err != nil {
		return nil, err
	}
	return journal.NewClient(journal.Config{Brokers: brokers, Prefix: s.TopicPrefix, Options: options, Logger: log.With("part", "journal")})
}

// migrate makes what the journals and the read models are kept in, and checks the topics' settings.
func migrate(ctx context.Context, client *journal.Client, databaseURL string) error {
	names := journalNames()
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

func journalNames() []string {
	var names []string
	for _, r := range rulesOfJournals() {
		names = append(names, r.Journal())
	}
	return names
}
