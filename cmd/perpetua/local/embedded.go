package local

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// Services are the embedded services: the broker and Postgres, each unless the settings name another one.
type Services struct {
	broker   *broker.Broker // nil if the settings name brokers
	database postgres.Config
	log      *slog.Logger

	mu       sync.Mutex
	postgres *postgres.Server // nil if the settings name a database
	closed   bool

	Brokers []string               // addresses of the brokers
	url     atomic.Pointer[string] // URL of the database
}

// DatabaseURL returns the current URL of Postgres.
func (e *Services) DatabaseURL() string { return *e.url.Load() }

// Dialer returns the function with which clients in this process connect to the broker; nil for the default.
func (e *Services) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if e.broker == nil {
		return nil
	}
	return e.broker.Dial
}

// Trimmer returns the broker, which trims the logs on it; nil if the settings name brokers.
func (e *Services) Trimmer() base.Trimmer {
	if e.broker == nil {
		return nil
	}
	return e.broker
}

// StartServices starts the broker and Postgres concurrently, each unless the settings name another one.
func StartServices(ctx context.Context, s *settings.Settings, folder *Folder, log *slog.Logger) (*Services, error) {
	e := &Services{Brokers: s.Brokers(), log: log,
		database: postgres.Config{Dir: folder.Path("postgres"), Logger: log.With("part", "postgres")}}
	e.url.Store(&s.DatabaseURL)
	g, starting := errgroup.WithContext(ctx)
	if len(e.Brokers) == 0 {
		if err := folder.CheckRetired(); err != nil {
			return nil, err
		}
		g.Go(func() (err error) {
			e.broker, err = broker.Start(starting, broker.Config{Dir: folder.Path("kafka"), Sync: s.Writer.Sync, SegmentBytes: s.SegmentBytes, Logger: log.With("part", "broker")})
			if err == nil {
				e.Brokers = e.broker.Addrs()
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

// Err returns the error that stopped the embedded broker, which cannot be restarted in this process. It is nil while
// the broker runs.
func (e *Services) Err() error {
	if e.broker == nil {
		return nil
	}
	return e.broker.Err()
}

// While returns a context that ends with ctx or when the embedded broker fails. The caller must call release.
func (e *Services) While(ctx context.Context) (_ context.Context, release func()) {
	if e.broker == nil {
		return ctx, func() {}
	}
	return e.broker.While(ctx)
}

// longestPause is the longest pause before Postgres is started again.
const longestPause = 30 * time.Second

// Supervise restarts Postgres when it dies, until the context ends. In the meantime, reads that need Postgres are
// answered with 503. If another process has taken its port, Postgres gets a new one. After each restart, Supervise
// calls moved. A Postgres that does not start, or soon dies again, is started after longer and longer pauses.
func (e *Services) Supervise(ctx context.Context, moved func() error) error {
	pause := time.Duration(0)
	for started := time.Now(); e.postgres != nil; started = time.Now() {
		select {
		case <-ctx.Done():
			return nil
		case <-e.postgres.Done():
		}
		if time.Since(started) > longestPause {
			pause = 0
		}
		e.log.Error("the embedded Postgres died; starting it again", "in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(max(2*pause, time.Second), longestPause)
		if err := e.restart(ctx); err != nil {
			e.log.Error("the embedded Postgres does not start", "error", err)
		} else if err := moved(); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// restart replaces the dead server with a new one.
func (e *Services) restart(ctx context.Context) error {
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

// Close stops the services, the broker last because all other parts follow it.
func (e *Services) Close() error {
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
