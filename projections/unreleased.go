package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Builds before version 0.1.0 had the migrations 1 to lastUnreleased. Version 0.1.0 replaced them with fewer ones, up to
// lastOfFirstRelease, which make the same tables.
//
// Migrate keeps the tables of those builds and marks the new migrations as applied. A rebuild then makes the rows from the
// log, because the old ones lack values that this build writes. Until the rebuild, the old migrations count as applied.
// Their rows in the version table are never deleted: without them, an earlier build that starts on the same database would
// run its migrations again.
const (
	lastUnreleased     = 24
	lastOfFirstRelease = 37
)

// adopt marks the migrations of the first release as applied if a build before it has made the tables. The version table must be
// locked.
func adopt(ctx context.Context, tx pgx.Tx) error {
	var old, newest int64
	if err := tx.QueryRow(ctx, "SELECT COALESCE(max(version_id) FILTER (WHERE version_id <= $1), 0), COALESCE(max(version_id), 0) FROM "+versions,
		lastUnreleased).Scan(&old, &newest); err != nil {
		return err
	}
	switch {
	case newest == 0 || newest > lastUnreleased:
		return nil
	case old < lastUnreleased:
		return fmt.Errorf("the tables are at migration %d of a build before version 0.1.0, which had %d: let the last build before 0.1.0 "+
			"migrate them, or drop the database, whose rows come back from the log", old, lastUnreleased)
	}
	if err := durable(ctx, tx); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "INSERT INTO "+versions+" (version_id, is_applied) SELECT n, true FROM generate_series($1::bigint, $2::bigint) n",
		lastUnreleased+1, lastOfFirstRelease)
	return err
}

// hasVersions reports whether the current schema has the version table.
func hasVersions(ctx context.Context, db Querier) (there bool, err error) {
	err = db.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1)", versions).Scan(&there)
	return there, err
}

// unreleased is the condition of the migrations that a rebuild has not replaced yet.
var unreleased = fmt.Sprintf("is_applied AND version_id BETWEEN 1 AND %d", lastUnreleased)

// Outdated reports whether the rows are those of a build before version 0.1.0. A rebuild makes them from the log: see Merge.
func Outdated(ctx context.Context, db Querier) (outdated bool, err error) {
	there, err := hasVersions(ctx, db)
	if err == nil && there {
		err = db.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+versions+" WHERE "+unreleased+")").Scan(&outdated)
	}
	if err != nil {
		return false, fmt.Errorf("projections: whether the rows are outdated: %w", err)
	}
	return outdated, nil
}

// renew marks the rows as those of this build.
func (m *Merge) renew(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "UPDATE "+pgx.Identifier{m.target, versions}.Sanitize()+" SET is_applied = false WHERE "+unreleased)
	return err
}
