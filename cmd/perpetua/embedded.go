package main

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// embedded is what `perpetua run` brings up by itself because no address was given for it.
type embedded struct {
	broker   *broker.Broker   // nil if brokers were named
	postgres *postgres.Server // nil if a database was named

	brokers     []string
	databaseURL string
}

// startEmbedded starts the broker and Postgres side by side, each unless the settings name one, and returns where
// both are to be found.
func startEmbedded(ctx context.Context, s *settings, folder *dataFolder, log *slog.Logger) (*embedded, error) {
	e := &embedded{brokers: s.brokers(), databaseURL: s.DatabaseURL}
	g, starting := errgroup.WithContext(ctx)
	if len(e.brokers) == 0 {
		g.Go(func() (err error) {
			e.broker, err = broker.Start(starting, broker.Config{Dir: folder.path("kafka"), Sync: s.Sync, Logger: log.With("part", "broker")})
			if err == nil {
				e.brokers = e.broker.Addrs()
			}
			return err
		})
	}
	if e.databaseURL == "" {
		g.Go(func() (err error) {
			e.postgres, err = postgres.Start(starting, postgres.Config{Dir: folder.path("postgres"), Logger: log.With("part", "postgres")})
			if err == nil {
				e.databaseURL = e.postgres.URL()
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close stops what was started, the broker last: everything else follows it.
func (e *embedded) Close() error {
	var errs []error
	if e.postgres != nil {
		errs = append(errs, e.postgres.Close())
	}
	if e.broker != nil {
		errs = append(errs, e.broker.Close())
	}
	return errors.Join(errs...)
}
