package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
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

	brokers []string
	url     atomic.Pointer[string] // of the database
}

// databaseURL returns where Postgres is at present.
func (e *embedded) databaseURL() string { return *e.url.Load() }

// dialer returns how clients in this process connect to the broker; nil for as anybody does.
func (e *embedded) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if e.broker == nil {
		return nil
	}
	return e.broker.Dial
}

// startEmbedded starts the broker and Postgres side by side, each unless the settings name one, and returns where
// both are to be found.
func startEmbedded(ctx context.Context, s *settings, folder *dataFolder, log *slog.Logger) (*embedded, error) {
	e := &embedded{brokers: s.brokers(), log: log,
		database: postgres.Config{Dir: folder.path("postgres"), Logger: log.With("part", "postgres")}}
	e.url.Store(&s.DatabaseURL)
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
	if s.DatabaseURL == "" {
		g.Go(func() (err error) {
			e.postgres, err = postgres.Start(starting, e.database)
			if err == nil {
				url := e.postgres.URL()
				e.url.Store(&url)
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
// answered 503 and everything else goes on. Should another process have taken its port, it comes back at a new one,
// and moved is called.
func (e *embedded) supervise(ctx context.Context, moved func() error) error {
	for e.postgres != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-e.postgres.Done():
		}
		e.log.Error("the embedded Postgres died; starting it again")
		if err := e.restart(ctx); err != nil {
			e.log.Error("the embedded Postgres does not start", "error", err)
			if pause(ctx, time.Second) != nil {
				return nil
			}
			continue
		}
		if err := moved(); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// restart replaces the dead server by a new one.
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
	url := server.URL()
	e.url.Store(&url)
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
