package readmodels_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestRebuildAfterChanges changes live rows at random between the comparison and the switch, while a runner applies
// records. Whatever was changed, the rows are then those of a fresh build.
func TestRebuildAfterChanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	o := projectiontest.NewOwner(t, 41)
	o.Play(800)
	entries := o.Entries
	r := newRebuilt(t, entries[:400])
	entries = entries[400:]
	admin, tables := asAdmin(t, r.live), spoilables(t, r.live)
	for round := range 4 {
		changed := 0
		r.rebuild(false, func() {
			for range 3 {
				n := min(len(entries), rng.IntN(40))
				r.logs[0].Append(entries[:n]...)
				entries = entries[n:]
				for range 8 {
					changed += r.changeRows(admin, tables, rng)
				}
			}
		})
		r.settle()
		got := r.digests()
		for table, digest := range r.fresh() {
			if got[table] != digest {
				t.Errorf("round %d: the table %s has %v, want %v", round, table, got[table], digest)
			}
		}
		if changed < 8 {
			t.Errorf("round %d: only %d changes", round, changed)
		}
	}
	// A runner may still be writing when a rebuild ends, and then leaves its keys to the next one.
	r.rebuild(false, func() { r.changeRows(admin, tables, rng) })
	if n := r.recorded(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// recorded returns how many keys of changed rows are recorded.
func (r *rebuilt) recorded() (n int) {
	r.t.Helper()
	must(r.t, r.live.QueryRow(r.t.Context(), "SELECT count(*) FROM changed_rows").Scan(&n))
	return n
}

// changeRows changes rows of a random one of the tables in a random manner. Half of the time, neither triggers of lists nor
// foreign keys see it. It returns 0 if a constraint forbids the change, else 1.
func (r *rebuilt) changeRows(admin *pgxpool.Pool, tables [][]spoilable, rng *rand.Rand) int {
	r.t.Helper()
	columns := tables[rng.IntN(len(tables))]
	c := columns[rng.IntN(len(columns))]
	if c.Table == "checkpoints" { // the runners compare and set it
		return 0
	}
	column := pgx.Identifier{c.Name}.Sanitize()
	some := fmt.Sprintf("ctid IN (SELECT ctid FROM %s ORDER BY random() LIMIT %d)", c.Table, 1+rng.IntN(3))
	statements := map[int][]string{
		0: {fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", c.Table, column, spoilt(column, c.Kind), some)}, // also a column of the key
		1: {fmt.Sprintf("DELETE FROM %s WHERE %s", c.Table, some)},
		2: {fmt.Sprintf("CREATE TEMPORARY TABLE old ON COMMIT DROP AS SELECT * FROM %s WHERE %s", c.Table, some),
			fmt.Sprintf("DELETE FROM %s t USING old WHERE t::text = old::text", c.Table),
			fmt.Sprintf("UPDATE old SET %s = %s", column, spoilt(column, c.Kind)), "INSERT INTO " + c.Table + " SELECT * FROM old"},
	}[rng.IntN(3)]
	if rng.IntN(2) == 0 {
		statements = append([]string{"SET LOCAL session_replication_role = replica"}, statements...)
	}
	err := pgx.BeginFunc(r.t.Context(), admin, func(tx pgx.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(r.t.Context(), s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
	if err != nil {
		if !strings.Contains(err.Error(), "SQLSTATE 23") { // a constraint
			r.t.Fatal(err)
		}
		return 0
	}
	return 1
}

// TestRebuildKilled ends every session of a rebuild between the comparison and the switch, as the death of its process would,
// and leaves its schema behind. The runners go on, nothing more is recorded, and another rebuild works.
func TestRebuildKilled(t *testing.T) {
	o := projectiontest.NewOwner(t, 43)
	o.Play(300)
	r := newRebuilt(t, o.Entries[:200])
	r.exec("UPDATE balances SET balance = balance + 1")
	ctx := t.Context()
	beside, remove, err := projections.OpenScratch(ctx, r.url, "rebuilt")
	must(t, err)
	defer remove()
	goals := make([]record.Position, len(r.runners))
	for i, runner := range r.runners {
		goals[i] = runner.Position()
	}
	admin := asAdmin(t, r.live)
	replay := readmodels.Replay{Target: beside, Journals: r.journals}
	_, err = readmodels.Rebuild{Replay: replay, Live: r.live, Schema: "rebuilt", Print: func(string) {},
		Confirm: func(context.Context) error {
			r.logs[0].Append(o.Entries[200:220]...)
			r.settle()
			if r.recorded() == 0 {
				t.Error("nothing is recorded")
			}
			_, err := admin.Exec(ctx, `SELECT pg_terminate_backend(pid, 10000) FROM pg_locks
				WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'
					AND (classid::bigint << 32 | objid::bigint) = hashtextextended('perpetua merge', 0)`)
			return err
		}}.Run(ctx, goals)
	if err == nil {
		t.Fatal("a rebuild without its session has succeeded")
	}
	left := r.recorded()
	r.logs[0].Append(o.Entries[220:]...)
	r.settle()
	if n := r.recorded(); n != left {
		t.Errorf("%d keys were recorded for nobody", n-left)
	}
	remove()
	r.rebuild(false, func() {})
	got := r.digests()
	for table, digest := range r.fresh() {
		if got[table] != digest {
			t.Errorf("the table %s has %v, want %v", table, got[table], digest)
		}
	}
	if n := r.recorded(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
