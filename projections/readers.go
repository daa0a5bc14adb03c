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

// CreateReaderRole is the statement that creates ReaderRole. An administrator runs it if the venue's user may not create
// roles. The next migration then grants the role its privileges.
const CreateReaderRole = "CREATE ROLE " + ReaderRole + " NOLOGIN; ALTER ROLE " + ReaderRole + " SET statement_timeout = '1min'"

// ErrNoReaderRole says that ReaderRole does not exist and that the database user may not create it. Only members of that
// role are affected.
var ErrNoReaderRole = errors.New("projections: the role " + ReaderRole + " does not exist, and the user of the database may not make roles; an administrator runs: " + CreateReaderRole)

// SQLSTATEs of statements about roles.
const (
	insufficientPrivilege = "42501"
	duplicateObject       = "42710"
	uniqueViolation       = "23505" // another session has created the role at the same moment
)

// revokeTemporary lets only the owner of the database make temporary tables, and those to whom the owner has granted it by name.
// Another user than the owner could not change this.
const revokeTemporary = `DO $$ BEGIN
	IF EXISTS (SELECT FROM pg_database d, aclexplode(COALESCE(d.datacl, acldefault('d', d.datdba))) a
			WHERE d.datname = current_database() AND d.datdba = current_user::regrole AND a.grantee = 0 AND a.privilege_type = 'TEMPORARY') THEN
		EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
	END IF;
END $$`

// GrantReaders creates ReaderRole if it does not exist, and grants it the right to read what postgres.Objects names as
// readable, except for sealed columns. If the user owns the database, GrantReaders revokes everybody's right to make temporary
// tables in it. It MUST be called after Migrate. Nodes may call it concurrently.
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
		if _, err := tx.Exec(ctx, `SELECT grant_readers(regexp_split_to_array(current_setting('perpetua.readable'), '\s+'))`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, revokeTemporary)
		return err
	})
	if err != nil {
		return fmt.Errorf("projections: granting the role %s what it may read: %w", ReaderRole, err)
	}
	return nil
}

// AddReader creates a user who may log in and read everything that ReaderRole may, or sets the password and timeout of
// that user. Queries of the user are canceled after the timeout. It is set for the user, since members of a role do not
// inherit its settings. The pool's user must be allowed to create roles. AddReader does not change a user who is not a
// member of ReaderRole, because that user has another purpose.
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
		// These statements accept no parameters; format quotes the values.
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

// sqlState returns the SQLSTATE of an error, or "" for an error that is not from Postgres.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
