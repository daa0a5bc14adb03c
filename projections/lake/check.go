package lake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// Checked is the result of Check.
type Checked struct {
	Files int      // in the catalog
	Read  int      // files whose bytes were compared
	Wrong []string // what is wrong with a file, for each that is missing or damaged
}

// namedFile is a file that the catalog names.
type namedFile struct {
	key  string // relative to the folder of the catalog
	size int64
}

// Check compares the files that the catalog names with the bucket: first their sizes, then their bytes with the hashes in their names.
// Prefix is that of FillerConfig. After an error, such as the end of the context, the result has what was found before.
func (c Catalog) Check(ctx context.Context, store archive.Store, prefix string) (is Checked, err error) {
	named, err := c.named(ctx)
	if err != nil {
		return is, fmt.Errorf("lake: reading the files of the catalog: %w", err)
	}
	is.Files = len(named)
	if is.Files == 0 {
		return is, nil
	}
	found, err := store.List(ctx, prefix+"main/")
	if err != nil {
		return is, err
	}
	sizes := make(map[string]int64, len(found))
	for _, o := range found {
		sizes[o.Key] = o.Size
	}
	var whole []string
	for _, f := range named {
		key := prefix + f.key
		switch size, ok := sizes[key]; {
		case !ok:
			is.Wrong = append(is.Wrong, key+" is missing")
		case size != f.size:
			is.Wrong = append(is.Wrong, fmt.Sprintf("%s has %d bytes instead of %d", key, size, f.size))
		default:
			whole = append(whole, key)
		}
	}
	for _, key := range whole {
		content, err := store.Read(ctx, key, maxFile)
		switch {
		case blob.Missing(err):
			is.Wrong = append(is.Wrong, key+" is missing")
			continue
		case err != nil:
			return is, err
		}
		if !strings.HasSuffix(key, "-"+hashInName(content)+suffix) {
			is.Wrong = append(is.Wrong, key+" has other bytes than its name says")
		}
		is.Read++
	}
	return is, nil
}

// named returns the files of the catalog in the order in which they were added.
func (c Catalog) named(ctx context.Context) ([]namedFile, error) {
	rows, err := c.Pool.Query(ctx, `SELECT s.path || t.path || f.path, f.file_size_bytes
		FROM lake.ducklake_data_file f JOIN lake.ducklake_table t USING (table_id) JOIN lake.ducklake_schema s USING (schema_id)
		WHERE f.end_snapshot IS NULL AND t.end_snapshot IS NULL ORDER BY f.data_file_id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f namedFile, err error) { return f, row.Scan(&f.key, &f.size) })
}

// hashInName returns the part of a file's name that depends on its bytes.
func hashInName(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:8])
}
