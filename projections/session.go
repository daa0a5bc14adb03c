package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrSharedSession says that a pooler between the venue and Postgres gives the sessions of a connection to other clients
// between transactions. The lock of a session then outlives its holder, and a runner may wait for it forever.
var ErrSharedSession = errors.New("a pooler changes the session of a connection between transactions, so the locks of the venue " +
	"would be lost: let the pooler pool by session (pool_mode=session in PgBouncer), or connect to Postgres directly")

// CheckSession returns ErrSharedSession if it finds that a connection does not keep the session in which it holds a lock. It may
// miss that while other clients of the pooler are busy, but it never returns ErrSharedSession for a connection that keeps such a
// session. Some poolers keep a session only from its first lock on, so CheckSession takes one. Nobody waits for that lock.
//
// One connection is the pool's and stays in it. The other one is new, since a pool may have a single connection.
func CheckSession(ctx context.Context, pool *pgxpool.Pool) error {
	acquired, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("projections: connecting to Postgres: %w", err)
	}
	defer acquired.Release()
	first := acquired.Conn()
	second, err := pgx.ConnectConfig(ctx, first.Config())
	if err != nil {
		return fmt.Errorf("projections: connecting to Postgres: %w", err)
	}
	defer disconnect(ctx, second)
	shared, err := sharedSession(ctx, first, second)
	if err != nil {
		disconnect(ctx, first) // it may hold the lock
		return fmt.Errorf("projections: asking for the session: %w", err)
	}
	if shared {
		return ErrSharedSession
	}
	return nil
}

// sharedSession reports whether a pooler gives the session in which the first connection holds a lock to others.
func sharedSession(ctx context.Context, first, second *pgx.Conn) (shared bool, err error) {
	// The order matters: the transaction of the second connection takes the session that the first one has just used, if the
	// pooler considers it free. The first one then gets another.
	var before, locked, other, after string
	at, err := oneRow(ctx, first, "SELECT "+sessionName+", pg_try_advisory_lock("+probeLock+")")
	if len(at) == 2 {
		before, locked = at[0], at[1] // another node may hold the lock
	}
	if err == nil {
		_, err = oneValue(ctx, second, "BEGIN")
	}
	if err == nil {
		other, err = oneValue(ctx, second, "SELECT "+sessionName)
	}
	if err == nil {
		after, err = oneValue(ctx, first, "SELECT "+sessionName)
	}
	if err != nil {
		return false, err
	}
	// The lock would remain in a session that goes to other clients. It does remain if a third client has that session now.
	holder := first
	if before == other {
		holder = second
	}
	if locked == "t" && (before == other || before == after) {
		_, err = oneValue(ctx, holder, "SELECT pg_advisory_unlock("+probeLock+")")
	}
	if err == nil {
		_, err = oneValue(ctx, second, "ROLLBACK")
	}
	return before != after || before == other, err
}

const (
	// sessionName selects the name of the session. Servers behind one address may have processes of the same number.
	sessionName = "pg_backend_pid() || ' of ' || extract(epoch FROM pg_postmaster_start_time())"
	// probeLock is the number of the lock that CheckSession takes.
	probeLock = "hashtextextended('perpetua session', 0)"
)

// oneValue returns the value that a query selects, or "" for a command.
func oneValue(ctx context.Context, conn *pgx.Conn, sql string) (string, error) {
	row, err := oneRow(ctx, conn, sql)
	if err != nil || len(row) == 0 {
		return "", err
	}
	return row[0], nil
}

// oneRow returns the row that a query selects, or nil for a command. It uses the simple protocol with any encoding and any form
// of strings: the connection may have another session at the next statement, so it prepares none.
func oneRow(ctx context.Context, conn *pgx.Conn, sql string) (row []string, err error) {
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 || len(results[0].Rows) == 0 {
		return nil, err
	}
	for _, value := range results[0].Rows[0] {
		row = append(row, string(value))
	}
	return row, nil
}

// inSchema returns a function that fails if the current schema of a new connection is not the given one. A pooler may drop the
// parameter search_path of a connection. The connection would then write to the live tables.
func inSchema(schema string) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		current, err := oneValue(ctx, conn, "SELECT COALESCE(current_schema(), '')")
		if err != nil {
			return err
		}
		if current != schema {
			return fmt.Errorf("a connection with search_path=%s is in the schema %q: a pooler has dropped that parameter, so name "+
				"Postgres itself in --database-url for this command", schema, current)
		}
		return nil
	}
}

// OtherSchemaError says that the tables of a venue are in another schema than the current one. A node would not find them, and the
// views for analysts, of which a database has one set, would not find new ones.
type OtherSchemaError struct{ Home, Current, User string }

// Error names both schemas, and says what to change.
func (e *OtherSchemaError) Error() string {
	return fmt.Sprintf("the tables of the venue are in the schema %s, and the search_path of the user %s leads to the schema %q: "+
		"remove that setting of the user or of the database, or add search_path=%s to --database-url", e.Home, e.User, e.Current, e.Home)
}

// checkHome returns an *OtherSchemaError if the tables of a venue are in another schema than the current one.
func checkHome(ctx context.Context, db Querier) error {
	var e OtherSchemaError
	err := db.QueryRow(ctx, `SELECT n.nspname::text, COALESCE(current_schema()::text, ''), current_user::text
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = $1 AND c.relkind = 'r' AND n.nspname <> ALL ('{audited,rebuilt}') AND n.nspname IS DISTINCT FROM current_schema()
			AND EXISTS (SELECT FROM pg_class o WHERE o.relnamespace = n.oid AND o.relname = 'checkpoints')
			AND NOT EXISTS (SELECT FROM pg_class o JOIN pg_namespace h ON h.oid = o.relnamespace WHERE h.nspname = current_schema() AND o.relname = $1)
			AND COALESCE(current_setting('perpetua.scratch', true), '') <> 'on'
		LIMIT 1`, versions).Scan(&e.Home, &e.Current, &e.User)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("projections: looking for the tables: %w", err)
	}
	return &e
}

// checkEncoding fails if the database cannot store every text. Tables that an earlier build has made in a database without an
// encoding stay in use, because it stores the bytes of every text.
func checkEncoding(ctx context.Context, db Querier) error {
	var encoding, name string
	if err := db.QueryRow(ctx, "SELECT current_setting('server_encoding'), current_database()::text").Scan(&encoding, &name); err != nil {
		return err
	}
	if encoding == "SQL_ASCII" {
		var made bool
		if err := db.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_class WHERE relname = $1)", versions).Scan(&made); err != nil || made {
			return err
		}
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database %s has the encoding %s: name one in --database-url that was made with ENCODING 'UTF8' TEMPLATE template0 "+
			"and gets its rows from the log", name, encoding)
	}
	return nil
}

// unhurried removes the limits that an administrator has set for the statements of the user, unless the URL names them. It is for
// work that takes as long as the tables are large. The limits are set after connecting, because a pooler may refuse parameters that it does not know.
func unhurried(cfg *pgxpool.Config) {
	statements := withoutLimits(cfg.ConnConfig, "SET")
	afterConnect(cfg, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statements)
		return err
	})
}

// withoutLimits returns the statements that remove these limits. set is SET for a session, or SET LOCAL for a transaction.
func withoutLimits(cfg *pgx.ConnConfig, set string) (statements string) {
	for _, name := range []string{"statement_timeout", "lock_timeout"} {
		if _, named := cfg.RuntimeParams[name]; !named {
			statements += set + " " + name + " = 0; "
		}
	}
	return statements
}

// afterConnect makes the connections of a pool also call f.
func afterConnect(cfg *pgxpool.Config, f func(context.Context, *pgx.Conn) error) {
	earlier := cfg.AfterConnect
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if earlier != nil {
			if err := earlier(ctx, conn); err != nil {
				return err
			}
		}
		return f(ctx, conn)
	}
}

// stayIdle removes the limit that an administrator has set for idle sessions of the user, unless the URL names it. Locks belong to
// sessions, and an audit or a rebuild holds one for as long as it reads the log. Postgres has the limit since version 14.
func stayIdle(ctx context.Context, conn *pgx.Conn) error {
	if _, set := conn.Config().RuntimeParams["idle_session_timeout"]; set {
		return nil
	}
	_, err := oneValue(ctx, conn, "SELECT set_config('idle_session_timeout', '0', false) WHERE current_setting('idle_session_timeout', true) <> '0'")
	return err
}

// checkOurs fails if a schema has tables and none of them is the venue's. It protects a schema that others have made under a name
// that the venue uses.
func checkOurs(ctx context.Context, db Querier, schema string) error {
	var others bool
	err := db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1)
		AND NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2)`,
		schema, versions).Scan(&others)
	if err == nil && others {
		err = errors.New("it is not the venue's, and would be dropped: rename it")
	}
	return err
}
