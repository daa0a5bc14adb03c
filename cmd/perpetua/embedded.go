package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// embedded is what `perpetua run` brings up by itself because no address was given for it.
type embedded struct {
	broker   *broker.Broker // nil if brokers were named
	database postgres.Config
	log      *slog.Logger

	mu       sync.Mutex
	postgres *postgres.Server // nil if a database was named
	closed   bool

	brokers     []string
	databaseURL string
}

// startEmbedded starts the broker and Postgres side by side, each unless the settings name one, and returns where
// both are to be found.
func startEmbedded(ctx context.Context, s *settings, folder *dataFolder, log *slog.Logger) (*embedded, error) {
	e := &embedded{brokers: s.brokers(), databaseURL: s.DatabaseURL, log: log,
		database: postgres.Config{Dir: folder.path("postgres"), Logger: log.With("part", "postgres")}}
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
			e.postgres, err = postgres.Start(starting, e.database)
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

// supervise starts Postgres again whenever it dies by itself, until the context ends. Meanwhile reads that need it are
// answered 503 and everything else goes on.
func (e *embedded) supervise(ctx context.Context) error {
	for e.postgres != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-e.postgres.Done():
		}
		e.log.Error("the embedded Postgres died; starting it again")
		if err := e.restart(ctx); err != nil {
			e.log.Error("the embedded Postgres does not start", "error", err)
			if pause(ctx, 5*time.Second) != nil {
				return nil
			}
		}
	}
	<-ctx.Done()
	return nil
}

// restart replaces the dead server by a new one, which must be at the same address: everybody knows that one.
func (e *embedded) restart(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	if err := e.postgres.Close(); err != nil {
		e.log.Warn("clearing up after Postgres", "error", err)
	}
	server, err := postgres.Start(ctx, e.database)
	if err != nil {
		return err
	}
	e.postgres = server
	if server.URL() != e.databaseURL {
		return fmt.Errorf("its port was taken meanwhile; restart perpetua")
	}
	return nil
}

// Close stops what was started, the broker last: everything else follows it.
func (e *embedded) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	var errs []error
	if e.postgres != nil {
		errs = append(errs, e.postgres.Close())
	}
	if e.broker != nil {
		errs = append(errs, e.broker.Close())
	}
	return errors.Join(errs...)
}
