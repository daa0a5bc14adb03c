package readmodels_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// onboarded plays a random history of n commands and projects it.
func onboarded(t *testing.T, seed uint64, n int) (*projectiontest.Registrar, *pgxpool.Pool) {
	t.Helper()
	r, pool := projectiontest.NewRegistrar(t, seed), projectiontest.Database(t)
	r.Play(n)
	apply(t, pool, "onboarding", readmodels.Onboarding(), r.Entries)
	return r, pool
}

func TestOnboardingRowsEqualAFoldOfTheLog(t *testing.T) {
	ctx, seed := t.Context(), rand.Uint64()
	t.Logf("seed %d", seed)
	r, pool := onboarded(t, seed, 2500)
	last := r.Entries[len(r.Entries)-1].Position.Sequence
	differences, err := readmodels.CompareOnboarding(ctx, pool, r.State, last)
	must(t, err)
	check(t, "differences", differences, nil)
	broken, err := readmodels.Broken(ctx, pool)
	must(t, err)
	if len(broken) > 0 {
		t.Errorf("broken: %q", broken)
	}
	if _, err := readmodels.CompareOnboarding(ctx, pool, r.State, last+1); !errors.Is(err, readmodels.ErrMoved) {
		t.Errorf("another position: %v", err)
	}
	if differences, err = readmodels.CompareOnboarding(ctx, pool, domain.NewState(), last); err != nil || len(differences) == 0 {
		t.Errorf("the rows equal an empty state: %v", err)
	}
}

// TestForgottenDeliveriesAreCompared: the state knows of most deliveries no more than that they were over some time ago, and no row
// may say otherwise.
func TestForgottenDeliveriesAreCompared(t *testing.T) {
	ctx := t.Context()
	r, pool := projectiontest.NewRegistrar(t, 3), projectiontest.Database(t)
	r.Play(300)
	alpha, hook := decide.Actor{Sub: "a", Broker: "alpha"}, scalar.ID{200}
	r.Do(alpha, &domain.CreateWebhook{ID: hook, URL: "https://receiver.example/", Types: []webhook.EventType{webhook.Test}, Key: r.SigningKey()})
	for range 4100 {
		r.Do(alpha, &domain.TestWebhook{ID: hook})
	}
	r.Do(alpha, &domain.DeleteWebhook{ID: hook})
	r.Play(300)
	apply(t, pool, "onboarding", readmodels.Onboarding(), r.Entries)
	last, total := r.Entries[len(r.Entries)-1].Position.Sequence, r.State.Totals()
	if r.State.Forgotten() == 0 || total.Deliveries != len(r.Deliveries) || total.Retained >= total.Deliveries {
		t.Fatalf("what closed by %d is forgotten: %+v", r.State.Forgotten(), total)
	}
	compared := func() int {
		differences, err := readmodels.CompareOnboarding(ctx, pool, r.State, last)
		must(t, err)
		return len(differences)
	}
	check(t, "how many differ", compared(), 0)
	var forgotten scalar.ID
	for _, id := range r.Deliveries {
		if _, known := r.State.Delivery(id); !known {
			forgotten = id
		}
	}
	for _, wrong := range []string{"status = 'pending'", "sequence = sequence + 1000000"} {
		_, err := pool.Exec(ctx, "UPDATE deliveries SET "+wrong+" WHERE id = $1", column.UUID(forgotten))
		must(t, err)
		check(t, "how many differ where "+wrong, compared(), 1)
		_, err = pool.Exec(ctx, "UPDATE deliveries SET status = 'canceled', sequence = LEAST(sequence, $2) WHERE id = $1", column.UUID(forgotten), r.State.Forgotten())
		must(t, err)
	}
	check(t, "how many differ as it was", compared(), 0)
	_, err := pool.Exec(ctx, "DELETE FROM deliveries WHERE id = $1", column.UUID(forgotten))
	must(t, err)
	check(t, "how many differ where one is not there", compared(), 1)
}

// TestOnboardingRowsComeBack takes all rows away, and has them made of the log again: they are the same, in every table, those
// of open deliveries among them.
func TestOnboardingRowsComeBack(t *testing.T) {
	ctx, seed := t.Context(), rand.Uint64()
	t.Logf("seed %d", seed)
	r, pool := onboarded(t, seed, 1500)
	before := projectiontest.Digests(t, pool)
	stillOpen := func() (rows []onboarding.Delivery, asOf int64) {
		rows, _, asOf, err := onboarding.Deliveries(ctx, pool, onboarding.DeliveryFilter{Statuses: []webhook.Status{webhook.Pending, webhook.Retrying}}, 10_000, 0)
		must(t, err)
		return rows, asOf
	}
	open, _ := stillOpen()
	must(t, projections.Forget(ctx, pool, "onboarding", readmodels.Onboarding()...))
	none, asOf := stillOpen()
	check(t, "what is left", [2]int64{int64(len(none)), asOf}, [2]int64{0, -1})
	apply(t, pool, "onboarding", readmodels.Onboarding(), r.Entries)
	after := projectiontest.Digests(t, pool)
	for table, want := range before {
		check(t, table, after[table], want)
	}
	again, _ := stillOpen()
	equalRows(t, "open deliveries", again, open)
	inState := 0
	for _, id := range r.Deliveries {
		if v, known := r.State.Delivery(id); known && v.Status.IsOpen() {
			inState++
		}
	}
	check(t, "the number of open deliveries", len(again), inState)
}

// TestARegistrarDoesAllThereIs: what random histories are to find, they must hold.
func TestARegistrarDoesAllThereIs(t *testing.T) {
	r := projectiontest.NewRegistrar(t, 5)
	r.Play(3000)
	count := map[string]int{}
	for _, e := range r.Entries {
		for _, event := range e.Record.Events {
			count[event.EventType()]++
		}
	}
	for _, shape := range domain.Rules().Registry().Shapes() {
		if count[shape.Type] == 0 && shape.Type != decide.TypeRulesActivated && shape.Type != decide.TypeDueSetAside && shape.Type != decide.TypeDuePutBack {
			t.Errorf("no %s: the commands were not varied enough", shape.Type)
		}
	}
}

// noFoldHas are the columns that no fold of the journal keeps: what is sealed, texts for people, receipts, and places of rows.
// TestOnboardingRowsSayWhatTheEventsSay holds them against the events.
var noFoldHas = []string{"owners.fields", "owners.sequence", "documents.name", "documents.updated_at", "documents.sequence", "holds.", "retentions.sequence",
	"retentions.ordinal", "retentions.actor", "retentions.time", "questionnaires.sequence", "responses.id", "responses.questionnaire_version_id", "responses.tenant", "responses.document_ids", "responses.answers",
	"responses.created_at", "responses.ordinal", "entitlements.sequence", "triggers.code", "triggers.reason_text", "triggers.reason", "triggers.started_sequence",
	"triggers.sequence", "webhooks.sequence", "deliveries.notice_id", "deliveries.type", "deliveries.next_attempt_at", "deliveries.created_at", "deliveries.sequence",
	"delivery_attempts.", "notices.", "owner_history.", "document_history.", "trigger_history.", "trigger_events.", "list_counts.", ".created_sequence", ".created_ordinal", ".place"}

// TestOnboardingIsComparedInEveryColumn changes one column at a time of all rows of a table, and wants the comparison with the
// fold to tell of it.
func TestOnboardingIsComparedInEveryColumn(t *testing.T) {
	ctx := t.Context()
	r, pool := projectiontest.NewRegistrar(t, 41), projectiontest.Database(t)
	r.Play(800)
	for _, id := range r.Webhooks {
		if w, known := r.State.Webhook(id); known {
			r.Do(decide.Actor{Sub: "a", Broker: w.Tenant}, &domain.RotateWebhook{ID: id, Overlap: scalar.Day,
				Key: domain.SigningKey{KeyID: "next", Public: make([]byte, 32), Private: r.Sealed()}})
		}
	}
	apply(t, pool, "onboarding", readmodels.Onboarding(), r.Entries)
	last := r.Entries[len(r.Entries)-1].Position.Sequence
	rows, err := pool.Query(ctx, `SELECT c.table_name::text, c.column_name::text, CASE c.data_type WHEN 'ARRAY' THEN c.udt_name ELSE c.data_type END::text
		FROM information_schema.columns c WHERE c.table_schema = current_schema() AND c.table_name = ANY($1) ORDER BY 1, c.ordinal_position`,
		onboarding.Projection.Tables())
	must(t, err)
	type column struct{ Table, Name, Kind string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	must(t, err)
	admin := asAdmin(t, pool)
	within := func(statements ...string) {
		t.Helper()
		must(t, pgx.BeginFunc(ctx, admin, func(tx pgx.Tx) error {
			for _, s := range append([]string{"SET LOCAL session_replication_role = replica"}, statements...) { // nothing counts
				if _, err := tx.Exec(ctx, s); err != nil {
					return fmt.Errorf("%s: %w", s, err)
				}
			}
			return nil
		}))
	}
	seen := 0
	for _, c := range columns {
		if slices.ContainsFunc(noFoldHas, func(s string) bool { return strings.Contains(c.Table+"."+c.Name, s) }) {
			continue
		}
		seen++
		name := fmt.Sprintf("%q", c.Name)
		within("CREATE TABLE kept AS TABLE "+c.Table,
			fmt.Sprintf("UPDATE %s SET %s = %s WHERE ctid = (SELECT ctid FROM %s ORDER BY %s IS NULL, ctid DESC LIMIT 1)", c.Table, name, spoilt(name, c.Kind), c.Table, name))
		differences, err := readmodels.CompareOnboarding(ctx, pool, r.State, last)
		if err != nil && c.Kind != "json" || err == nil && len(differences) == 0 { // of JSON, it may be one that cannot be read
			t.Errorf("%s.%s: %q, %v", c.Table, c.Name, differences, err)
		}
		within("TRUNCATE "+c.Table, "INSERT INTO "+c.Table+" SELECT * FROM kept", "DROP TABLE kept")
	}
	if seen < 90 {
		t.Errorf("only %d columns were changed", seen)
	}
	differences, err := readmodels.CompareOnboarding(ctx, pool, r.State, last)
	must(t, err)
	check(t, "differences once all is as it was", differences, nil)
}
