package projections

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/perpetua-exchange/perpetua/schemas"
)

// lockID identifies the Postgres advisory lock that protects migrations, so that several nodes may migrate at the same
// time.
const lockID = 7_305_809_141_962_330_001

// versions is goose's version table. Its rows do not come from a journal.
const versions = "schema_versions"

// Open returns a pool for the database at url, with the settings that runners and queries need. Settings in the url
// (pool_max_conns, application_name, …) have priority. Open does not connect, so it succeeds while Postgres is down.
func Open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	return OpenMoving(ctx, func() string { return url })
}

// OpenMoving is Open for a database that may change its host and port. Each new connection calls where to get the
// current address.
func OpenMoving(ctx context.Context, where func() string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(where())
	if err != nil {
		return nil, fmt.Errorf("projections: the database URL: %w", err)
	}
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		now, err := pgx.ParseConfig(where())
		if err != nil {
			return fmt.Errorf("projections: the database URL: %w", err)
		}
		c.Host, c.Port, c.Fallbacks = now.Host, now.Port, now.Fallbacks
		return nil
	}
	if !strings.Contains(where(), "pool_max_conns") {
		cfg.MaxConns = int32(min(max(16, 4*runtime.NumCPU()), 32)) // a server allows 100 connections by default, for all nodes together
	}
	cfg.MaxConnIdleTime = 5 * time.Minute
	afterConnect(cfg, stayIdle)
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if cfg.PingTimeout == 0 { // otherwise, an idle connection to a machine that is lost holds its next user for minutes
		cfg.PingTimeout = 5 * time.Second
	}
	for name, value := range map[string]string{
		"application_name":                    "perpetua",
		"timezone":                            "UTC",
		"client_encoding":                     "UTF8", // that of every text here; a role may have another default
		"standard_conforming_strings":         "on",   // the statements have patterns with backslashes
		"jit":                                 "off",  // compiling takes longer than running these queries
		"synchronous_commit":                  "off",  // rows can be rebuilt; see the package comment
		"idle_in_transaction_session_timeout": "60000",
		// If a runner's machine disappears, the server releases the runner's lock within half a minute.
		"tcp_keepalives_idle":     "10",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "4",
	} {
		if _, set := cfg.ConnConfig.RuntimeParams[name]; !set {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("projections: opening the database pool: %w", err)
	}
	return pool, nil
}

// Migrate brings the schema of the database up to date and returns the number of applied migrations. It takes an
// advisory lock, so any number of nodes may call it at the same time. The tables of a build before version 0.1.0 stay. The
// caller must rebuild their rows if Outdated returns true.
func Migrate(ctx context.Context, pool *pgxpool.Pool) (applied int, err error) {
	current := false
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, withoutLimits(pool.Config().ConnConfig, "SET LOCAL")); err != nil {
			return err
		}
		for _, check := range []func(context.Context, Querier) error{checkHome, checkEncoding} {
			if err := check(ctx, tx); err != nil {
				return err
			}
		}
		current, err = prepareVersions(ctx, tx)
		return err
	})
	if err == nil && !current {
		applied, err = runMigrations(ctx, pool.Config())
		pool.Reset() // a connection may have prepared statements for columns of another type
	}
	if err != nil {
		return 0, fmt.Errorf("projections: migrating the database: %w", err)
	}
	return applied, nil
}

// runMigrations applies the migrations that the database lacks, and returns their number.
func runMigrations(ctx context.Context, cfg *pgxpool.Config) (int, error) {
	files, err := fs.Sub(schemas.SQL, "sql")
	if err != nil {
		return 0, err
	}
	// Try every second for five minutes: another node may be creating an index on a large table.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID), lock.WithLockTimeout(1, 300))
	if err != nil {
		return 0, fmt.Errorf("the lock: %w", err)
	}
	unhurried(cfg)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithTableName(versions), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, err
	}
	done, err := provider.Up(ctx)
	if err != nil || len(done) == 0 {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := durable(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE "+versions+" SET is_applied = is_applied") // so that there is something to commit
		return err
	})
	return len(done), err
}

// prepareVersions makes the version table ready for migrations. It does nothing if there is no such table yet. current is true if
// no migration is left to apply.
func prepareVersions(ctx context.Context, tx pgx.Tx) (current bool, err error) {
	there, err := hasVersions(ctx, tx)
	if err != nil || !there {
		return false, err
	}
	// Two processes that adopt the tables at the same time would write the rows twice.
	if _, err := tx.Exec(ctx, "LOCK TABLE "+versions+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		return false, err
	}
	if err := raiseVersionID(ctx, tx); err != nil {
		return false, err
	}
	if err := adopt(ctx, tx); err != nil {
		return false, err
	}
	ours, err := migrations()
	if err != nil {
		return false, err
	}
	err = tx.QueryRow(ctx, "SELECT NOT EXISTS (SELECT unnest($1::bigint[]) EXCEPT SELECT version_id FROM "+versions+" WHERE is_applied)", ours).Scan(&current)
	return current, err
}

// raiseVersionID makes the next id of the version table higher than all ids in it. goose uses the first value of the sequence of ids in
// the transaction that creates it. With wal_level=minimal, Postgres does not log the next 32 values. A crash before the next checkpoint
// then resets the sequence to 1, and goose could not insert another version.
func raiseVersionID(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT setval(ids, highest) FROM (
			SELECT pg_get_serial_sequence($1, 'id')::regclass AS ids, (SELECT max(id) FROM `+versions+`) AS highest) v
		WHERE highest > COALESCE(pg_sequence_last_value(ids), 0)`, versions)
	return err
}

// durable makes the commit of a transaction wait until the transaction and all earlier ones are on disk. Rows that
// Postgres loses in a crash are restored from the log, but tables are not.
func durable(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = on")
	return err
}
