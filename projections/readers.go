package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// ReaderRole is a role without login. Its members may read the read models except for sealed columns.
const ReaderRole = "perpetua_reader"

// CreateReaderRole makes ReaderRole, whose queries end after a minute. An administrator runs it where the venue's user may not
// make roles; the next migration then grants the role its privileges.
const CreateReaderRole = "CREATE ROLE " + ReaderRole + " NOLOGIN; ALTER ROLE " + ReaderRole + " SET statement_timeout = '1min'"

// ErrNoReaderRole says that ReaderRole does not exist and that the user of the database may not make it. Everything but
// reading as a member of that role works without it.
var ErrNoReaderRole = errors.New("projections: the role " + ReaderRole + " does not exist, and the user of the database may not make roles; an administrator runs: " + CreateReaderRole)

// SQLSTATEs of statements about roles.
const (
	insufficientPrivilege = "42501"
	duplicateObject       = "42710"
	uniqueViolation       = "23505" // another session has made the role at the same moment
)

// GrantReaders creates ReaderRole if it does not exist, and grants it the right to read what postgres.Objects names as readable,
// except for sealed columns. It MUST be called after Migrate. Nodes may call it concurrently.
func GrantReaders(ctx context.Context, pool *pgxpool.Pool) error {
	there, err := roleExists(ctx, pool, ReaderRole)
	if err == nil && !there {
		_, err = pool.Exec(ctx, CreateReaderRole)
		switch sqlState(err) {
		case insufficientPrivilege:
			return ErrNoReaderRole
		case duplicateObject, uniqueViolation:
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("projections: making the role %s: %w", ReaderRole, err)
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// Two sessions that change the privileges of one table concurrently would fail.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('perpetua readers', 0))"); err != nil {
			return err
		}
		if err := durable(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, postgres.Objects); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SELECT grant_readers(regexp_split_to_array(current_setting('perpetua.readable'), '\s+'))`)
		return err
	})
	if err != nil {
		return fmt.Errorf("projections: granting the role %s what it may read: %w", ReaderRole, err)
	}
	return nil
}

// AddReader makes a user who may log in and read what ReaderRole may, or gives that user another password and timeout.
// A query of the user ends after the timeout: settings of a role do not pass to its members, so it is the user's own. The
// user of the pool must be allowed to make roles. A user who is not a member of ReaderRole, and so was made for something
// else, is not changed.
func AddReader(ctx context.Context, db *pgx.Conn, name, password string, timeout time.Duration) error {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		there, err := roleExists(ctx, tx, name)
		if err != nil {
			return err
		}
		user := pgx.Identifier{name}.Sanitize()
		if !there {
			if _, err := tx.Exec(ctx, "CREATE ROLE "+user+" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE IN ROLE "+ReaderRole); err != nil {
				return err
			}
		}
		var member, other bool
		if err := tx.QueryRow(ctx, `SELECT pg_has_role($1, $2, 'MEMBER'), rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication FROM pg_roles WHERE rolname = $1`,
			name, ReaderRole).Scan(&member, &other); err != nil {
			return err
		}
		if !member || other || name == ReaderRole {
			return fmt.Errorf("the role %s exists and is not a reader", name)
		}
		// These take no parameters; format quotes the values.
		var statements string
		if err := tx.QueryRow(ctx, `SELECT format('ALTER ROLE %1$I PASSWORD %2$L; ALTER ROLE %1$I SET statement_timeout = %3$s; ALTER ROLE %1$I SET default_transaction_read_only = on',
			$1::text, $2::text, $3::bigint)`, name, password, timeout.Milliseconds()).Scan(&statements); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statements)
		return err
	})
	if sqlState(err) == insufficientPrivilege {
		return fmt.Errorf("projections: the user of the database may not make users; one who may runs: CREATE ROLE %[1]s LOGIN PASSWORD '…' IN ROLE %[2]s; ALTER ROLE %[1]s SET statement_timeout = %[3]d: %[4]w",
			pgx.Identifier{name}.Sanitize(), ReaderRole, timeout.Milliseconds(), err)
	}
	if err != nil {
		return fmt.Errorf("projections: making the reader %s: %w", name, err)
	}
	return nil
}

func roleExists(ctx context.Context, db Querier, name string) (there bool, err error) {
	err = db.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", name).Scan(&there)
	return there, err
}

// sqlState returns the SQLSTATE of an error; "" if it is none of Postgres.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
