package projections

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/schemas"
)

// migrations returns the numbers of the migrations in this build.
func migrations() (numbers []int64, err error) {
	files, err := fs.Glob(schemas.SQL, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("projections: migrations: %w", err)
	}
	for _, f := range files {
		number, _, _ := strings.Cut(path.Base(f), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("projections: the migration %s has no number: %w", f, err)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// SchemaVersion returns the number of the last migration applied to a database, or 0, and the number of the last
// migration in this build. It changes nothing.
func SchemaVersion(ctx context.Context, db Querier) (have, newest int64, err error) {
	ours, err := migrations()
	if err != nil {
		return 0, 0, err
	}
	newest = slices.Max(ours)
	if err := checkHome(ctx, db); err != nil {
		return 0, newest, err
	}
	err = db.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+versions+" WHERE is_applied").Scan(&have)
	if undefinedTable(err) {
		return 0, newest, nil
	}
	if err != nil {
		return 0, newest, fmt.Errorf("projections: the database's version: %w", err)
	}
	return have, newest, nil
}
