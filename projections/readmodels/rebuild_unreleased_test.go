package readmodels_test

import (
	"maps"
	"testing"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestRebuildOfUnreleased rebuilds the rows of a build before version 0.1.0, which lack what that build did not write. What
// others have built on the tables remains.
func TestRebuildOfUnreleased(t *testing.T) {
	ctx := t.Context()
	o := projectiontest.NewOwner(t, 41)
	o.Play(400)
	url := projectiontest.UnreleasedURL(t)
	_, err := projections.Migrate(ctx, projectiontest.Open(t, url))
	must(t, err)
	r := newRebuiltAt(t, url, o.Entries)
	must(t, projections.GrantReaders(ctx, r.live))
	r.exec("GRANT UPDATE (name) ON brokers TO perpetua_reader",
		"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO perpetua_reader",
		"CREATE VIEW positions_by_symbol AS SELECT symbol, sum(abs(amount)) / 2 AS held FROM positions GROUP BY symbol",
		"GRANT SELECT ON positions_by_symbol TO perpetua_reader", "COMMENT ON TABLE trades IS 'what the desk looks at first'")
	built, want := r.built(), r.digests()
	r.exec("UPDATE orders SET triggered = updated - interval '1 second' WHERE triggered IS NULL", "DELETE FROM candles WHERE price = 'mark'")
	if maps.Equal(r.digests(), want) {
		t.Fatal("the rows lack nothing")
	}
	outdated := func() bool {
		t.Helper()
		is, err := projections.Outdated(ctx, r.live)
		must(t, err)
		return is
	}
	r.rebuild(true, nil)
	if !outdated() {
		t.Error("rows that were only compared are no longer outdated")
	}
	r.rebuild(false, func() {
		if !outdated() {
			t.Error("rows are no longer outdated before they are written")
		}
	})
	if outdated() {
		t.Error("rows that were rebuilt are outdated")
	}
	if got := r.digests(); !maps.Equal(got, want) {
		t.Errorf("the tables hold %v, the log says %v", got, want)
	}
	check(t, "what others built", r.built(), built)
	if n, err := projections.Migrate(ctx, r.live); n != 0 || err != nil || outdated() {
		t.Errorf("the next start applies %d migrations, %v; outdated: %v", n, err, outdated())
	}
}
