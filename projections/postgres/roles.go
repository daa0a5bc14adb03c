package postgres

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// roles makes the roles Owner and perpetua_reader. The setting perpetua.password is the owner's password.
//
//go:embed roles.sql
var roles string

// Objects names what the migrations make: it sets perpetua.readable and other lists of names for one transaction.
//
//go:embed objects.sql
var Objects string

// ownership gives Owner what Objects names where the superuser has run the migrations.
//
//go:embed ownership.sql
var ownership string

// separate ensures that the venue's role exists and owns the database. It connects as the superuser. In a data directory of an
// earlier version, in which the venue was the superuser, the role also gets the objects that Objects names. The objects of
// administrators stay theirs. It runs in one transaction, so an interrupted start changes nothing.
func separate(ctx context.Context, admin, password string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT set_config('perpetua.password', $1, true)", password); err != nil {
			return err
		}
		for _, sql := range []string{"SET LOCAL synchronous_commit = on", roles, Objects, ownership} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("making the role %s the owner of the database: %w", Owner, err)
	}
	return nil
}
