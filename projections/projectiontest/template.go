package projectiontest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
)

// The template databases. Tests copy them, because copying tables takes a fraction of the time of creating them. A
// template is created for the first test that needs it. Like the server, the templates belong to the process and not to
// a test.
var (
	rowsTemplate = sync.OnceValues(func() (string, error) {
		return makeTemplate("template1", func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := projections.Migrate(ctx, pool)
			return err
		})
	})
	venueTemplate = sync.OnceValues(func() (string, error) {
		rows, err := rowsTemplate()
		if err != nil {
			return "", err
		}
		return makeTemplate(rows, func(ctx context.Context, pool *pgxpool.Pool) error {
			if err := projections.GrantReaders(ctx, pool); err != nil && !errors.Is(err, projections.ErrNoReaderRole) {
				return err
			}
			return jobs.Migrate(ctx, pool)
		})
	})
)

// templates contains the names of the templates created.
var templates struct {
	mu    sync.Mutex
	names []string
}

// makeTemplate copies a database and migrates the copy.
func makeTemplate(from string, migrate func(context.Context, *pgxpool.Pool) error) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	name := newName()
	if err := copyDatabase(name, from); err != nil {
		return "", err
	}
	templates.mu.Lock()
	templates.names = append(templates.names, name)
	templates.mu.Unlock()
	at, err := urlOf(name)
	if err != nil {
		return "", err
	}
	pool, err := open(ctx, at)
	if err != nil {
		return "", err
	}
	defer pool.Close() // Postgres does not copy a database with open connections
	return name, migrate(ctx, pool)
}

// dropTemplates removes the templates from a server that outlives the tests.
func dropTemplates() (err error) {
	templates.mu.Lock()
	defer templates.mu.Unlock()
	for _, name := range templates.names {
		err = errors.Join(err, dropDatabase(name))
	}
	return err
}

func newName() string { return "test_" + rand.Text()[:16] }

// objectInUse is the SQLSTATE for a database with open connections.
const objectInUse = "55006"

// copyDatabase copies a database. Postgres waits five seconds for open connections to end. On a busy machine the
// backend of a closed connection may take longer.
func copyDatabase(name, from string) error {
	for deadline := time.Now().Add(5 * time.Minute); ; {
		sql := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " TEMPLATE " + pgx.Identifier{from}.Sanitize() + copyOption
		if databaseOwner != nil {
			sql += " OWNER " + pgx.Identifier{databaseOwner.Username()}.Sanitize()
		}
		err := execute(sql)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != objectInUse || time.Now().After(deadline) {
			return err
		}
	}
}

func dropDatabase(name string) error {
	return execute("DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize() + " WITH (FORCE)")
}

// urlOf returns the URL of a database on the server.
func urlOf(name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	if databaseOwner != nil {
		u.User = databaseOwner
	}
	return u.String(), nil
}

// administrator returns the connections to the server as its administrator. A new connection for each statement would cost more
// than most statements.
var administrator = sync.OnceValues(func() (*pgxpool.Pool, error) {
	if server == "" {
		return nil, errors.New("projectiontest.Main was not called")
	}
	config, err := pgxpool.ParseConfig(server)
	if err != nil {
		return nil, err
	}
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true } // a test may have ended the server's sessions
	return pgxpool.NewWithConfig(context.Background(), config)
})

func execute(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	pool, err := administrator()
	if err == nil {
		_, err = pool.Exec(ctx, sql)
	}
	return err
}

// serverVersion returns the major version of the server.
func serverVersion() (version int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	pool, err := administrator()
	if err == nil {
		err = pool.QueryRow(ctx, "SELECT current_setting('server_version_num')::int / 10000").Scan(&version)
	}
	return version, err
}
