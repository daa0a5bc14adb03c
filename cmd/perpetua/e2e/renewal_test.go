package e2e

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestStartOnRowsBeforeTheFirstRelease starts a venue on the database of a build before version 0.1.0. A start that is
// killed in the middle of the rebuild leaves the rows as they were, and the next one makes them from the log.
func TestStartOnRowsBeforeTheFirstRelease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	v := newWholeVenue(t, "--log-level", "info")
	v.postgres = projectiontest.UnreleasedURL(t)
	v.start() // with an empty log
	t.Cleanup(v.stop)
	db, obstacle := v.database(), v.database()
	defer db.Close(ctx)
	defer obstacle.Close(ctx)
	count := func(sql string, args ...any) (n int) {
		t.Helper()
		if err := db.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	v.fund("10000", "ANNA")
	waitFor(t, "the balance in the rows", func() bool {
		return count("SELECT count(*) FROM balances WHERE customer_code = 'ANNA' AND balance = 10000") == 1
	})
	v.stop()
	const old = "SELECT count(*) FROM schema_versions WHERE is_applied AND version_id BETWEEN 1 AND 24"
	if n := count(old); n != 0 {
		t.Errorf("after the first start %d migrations of the earlier build are in force", n)
	}
	// What the earlier build has left: tables that were adopted by no start, and rows that differ from the log.
	if _, err := db.Exec(ctx, `DELETE FROM schema_versions WHERE version_id > 24; UPDATE schema_versions SET is_applied = true;
		DROP SCHEMA analytics CASCADE; DROP SCHEMA lake CASCADE;
		DROP TABLE bases, signed_trees, cosigned_trees, archive_heads, liabilities, order_history, balance_history, position_history, owner_history, document_history, trigger_history, history_bounds, proposals, onboarding_proposals;
		ALTER TABLE orders DROP COLUMN sweeping;
		DROP FUNCTION IF EXISTS history_partitions, history_written;
		UPDATE balances SET balance = 1 WHERE customer_code = 'ANNA';
		CREATE VIEW balances_by_currency AS SELECT currency, sum(balance) AS balance FROM balances GROUP BY currency;
		GRANT SELECT ON balances_by_currency TO PUBLIC; COMMENT ON TABLE trades IS 'what the desk looks at first'`); err != nil {
		t.Fatal(err)
	}
	built := func() []string {
		t.Helper()
		rows, err := db.Query(ctx, builtByOthers)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	before := built()
	if _, err := obstacle.Exec(ctx, "BEGIN; SELECT FROM balances FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	v.launch()
	waitFor(t, "the start to write balances", func() bool {
		return count("SELECT count(*) FROM pg_stat_activity WHERE $1::integer = ANY (pg_blocking_pids(pid))",
			int32(obstacle.PgConn().PID())) > 0
	})
	v.kill()
	if _, err := obstacle.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	const spoiled = "SELECT count(*) FROM balances WHERE customer_code = 'ANNA' AND balance = 1"
	if count(old) != 24 || count(spoiled) != 1 {
		t.Error("a start that was killed has changed rows")
	}

	v.start()
	if count(old) != 0 || count(spoiled) != 0 {
		t.Error("the rows were not rebuilt")
	}
	if said := v.output.said(); !strings.Contains(said, "rebuilding the read models: the new rows equal the log at ") ||
		!strings.Contains(said, "rebuilding the read models: the live tables equal the new ones; ") {
		t.Errorf("the start does not tell of the rebuild:\n%s", said)
	}
	made := regexp.MustCompile(`(^| )(bases|signed_trees|cosigned_trees|archive_heads|liabilities|(onboarding_)?proposals|(order|balance|position|owner|document|trigger)_history\w*|history_\w+)[ .]`)
	later := made.MatchString // of what the start has made
	if after := slices.DeleteFunc(built(), later); !slices.Equal(after, before) {
		t.Errorf("there was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if out, err := v.command("audit").CombinedOutput(); err != nil {
		t.Errorf("perpetua audit: %v\n%s", err, out)
	}
}
