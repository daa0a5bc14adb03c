package readmodels_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// applyAsBefore applies entries after the first n as a build without history does: rows and the checkpoint change, the
// tables of history don't.
func applyAsBefore(t *testing.T, pool *pgxpool.Pool, entries []record.Entry, n int) {
	t.Helper()
	apply(t, pool, "trading", readmodels.Trading(), entries)
	for _, sql := range []string{"DELETE FROM order_history WHERE until >= $1", "DELETE FROM balance_history WHERE until >= $1",
		"DELETE FROM position_history WHERE until >= $1", "UPDATE history_bounds SET built = -1, written = $1 - 1"} {
		_, err := pool.Exec(t.Context(), sql, n)
		must(t, err)
	}
}

// TestHistoryAfterAnEarlierBuild lets an earlier build apply records between those of this one. History begins after them,
// an audit finds no difference, and a rebuild makes the missing versions.
func TestHistoryAfterAnEarlierBuild(t *testing.T) {
	entries := played(t, 12)
	url := projectiontest.MigratedURL(t)
	pool := projectiontest.Open(t, url)
	apply(t, pool, "trading", readmodels.Trading(), entries[:300])
	applyAsBefore(t, pool, entries[:600], 300)
	begins := func(sequence int64) {
		t.Helper()
		for at := range int64(600) {
			_, _, err := ledger.BalancesAsOf(t.Context(), pool, "C0", at)
			var want error
			if at < sequence {
				want = &projections.HistoryError{Journal: "trading", Sequence: at, From: sequence}
			}
			check(t, fmt.Sprintf("as of %d", at), err, want)
		}
	}
	begins(599)
	before, _, err := ledger.BalancesAsOf(t.Context(), pool, "C0", 599)
	must(t, err)

	// The earlier build did not make the partition either.
	for _, table := range []string{"order_history", "balance_history", "position_history"} {
		_, err := pool.Exec(t.Context(), "ALTER TABLE "+table+" DETACH PARTITION "+table+"_0; DROP TABLE "+table+"_0")
		must(t, err)
	}
	r := newRebuiltAt(t, url, entries)
	begins(599)
	after, _, err := ledger.BalancesAsOf(t.Context(), pool, "C0", 599)
	must(t, err)
	check(t, "balances where history begins", after, before)
	r.audit()
	for _, line := range r.rebuild(false, func() {}) {
		t.Log(line)
	}
	begins(-1)
	r.audit()
}

// TestAuditWhileAnEarlierBuildApplies audits rows whose checkpoint an earlier build has moved last. Versions from before
// that are left over.
func TestAuditWhileAnEarlierBuildApplies(t *testing.T) {
	entries := played(t, 13)
	url := projectiontest.MigratedURL(t)
	r := newRebuiltAt(t, url, entries)
	n := len(entries) / 2
	applyAsBefore(t, r.live, entries, n)
	r.audit()
	_, err := r.live.Exec(t.Context(), "UPDATE history_bounds SET written = $1", len(entries)-1)
	must(t, err)
	if found := r.differences(); len(found) == 0 {
		t.Error("versions are missing, and the audit finds no difference")
	}
}

// TestHistoryOfAForgottenLog forgets a log, applies it again, and drops history: the answers begin where the history does.
func TestHistoryOfAForgottenLog(t *testing.T) {
	entries := played(t, 14)
	pool := projectiontest.Database(t)
	repartition(t, pool, 400, 1<<20)
	apply(t, pool, "trading", readmodels.Trading(), entries)
	must(t, projections.Forget(t.Context(), pool, "trading", readmodels.Trading()...))
	apply(t, pool, "trading", readmodels.Trading(), entries[:500])
	_, _, err := ledger.BalancesAsOf(t.Context(), pool, "C0", 30)
	must(t, err)
	apply(t, pool, "trading", readmodels.Trading(), entries)
	dropped, err := projections.DropHistory(t.Context(), pool, entries[400].Record.Time+1)
	must(t, err)
	check(t, "dropped partitions", dropped, 1)
	_, _, err = ledger.BalancesAsOf(t.Context(), pool, "C0", 398)
	check(t, "before the bound", err, error(&projections.HistoryError{Journal: "trading", Sequence: 398, From: 399, Dropped: true}))
}

// differences audits the live rows.
func (r *rebuilt) differences() []string {
	r.t.Helper()
	a := readmodels.Audit{Live: r.live, Replay: readmodels.Replay{Target: projectiontest.Database(r.t), Journals: r.journals}}
	_, found, err := a.Run(r.t.Context())
	must(r.t, err)
	return found
}

// audit fails if an audit finds differences.
func (r *rebuilt) audit() {
	r.t.Helper()
	check(r.t, "differences", r.differences(), nil)
}
