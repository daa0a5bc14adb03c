package webhooks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestPlans: of what waits for a later time no more is read than tells when something is due.
func TestPlans(t *testing.T) {
	pool := projectiontest.Database(t)
	hook := scalar.ID{1}
	for _, sql := range []string{
		"ALTER TABLE deliveries DISABLE TRIGGER USER", // which count what is listed
		fmt.Sprintf(`INSERT INTO webhooks (id, tenant, url, include_all_events, event_types, key_id, public_key, private_key, created_at, created_sequence, created_ordinal, sequence)
			VALUES ('%s', 't', 'u', true, '{}', 'k', '', '', now(), 0, 0, 0)`, hook),
		fmt.Sprintf(`INSERT INTO deliveries (id, webhook_id, tenant, notice_id, type, final, status, attempts, next_attempt_at, created_at, created_sequence, created_ordinal, sequence)
			SELECT gen_random_uuid(), '%s', 't', gen_random_uuid(), 'test', false, 'retrying', 1, now() + interval '1 hour', now(), n, 0, n FROM generate_series(1, 20000) n`, hook),
		"ANALYZE deliveries",
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	rows, err := pool.Query(t.Context(), "EXPLAIN "+strings.ReplaceAll(nextDue, "$1", "'"+hook.String()+"'"))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if plan := strings.Join(lines, "\n"); err != nil || !strings.Contains(plan, "using deliveries_retrying") && !strings.Contains(plan, "on deliveries_retrying") {
		t.Errorf("%v\n%s", err, plan)
	}
}
