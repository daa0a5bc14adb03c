package projections_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

func TestRebuildBesideAndSwitch(t *testing.T) {
	ctx := t.Context()
	entries := projectiontest.NewVenue(23).Entries(900)
	want := digests(t, project(t, entries, 0))

	url := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, url)
	log := projectiontest.NewLog(entries[:500]...)
	r, stop := start(t, live, log)
	wait(t, r, 499)
	if _, err := live.Exec(ctx, "UPDATE orders SET amount = amount + 1"); err != nil { // what a bug may have left
		t.Fatal(err)
	}
	before := digests(t, live)
	read := func() {
		t.Helper()
		if _, _, err := orders.Open(ctx, live, orders.Filter{Scope: orders.Scope{Broker: "alpha"}}); err != nil {
			t.Fatal(err)
		}
	}
	read() // its statement stays prepared over the switch

	beside, remove, err := projections.OpenBeside(ctx, url, "rebuilt")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	if _, _, err := projections.OpenBeside(ctx, url, "rebuilt"); err == nil || !strings.Contains(err.Error(), "another process is at work in it") {
		t.Errorf("a second rebuild: %v", err)
	}
	second, stopSecond := start(t, beside, log)
	wait(t, second, 499)
	stopSecond()
	same(t, digests(t, live), before) // the live rows are untouched by it
	if err := projections.Switch(ctx, live, "rebuilt"); err != nil {
		t.Fatal(err)
	}
	read()
	var takers, market int
	if err := live.QueryRow(ctx, "SELECT (SELECT count(*) FROM trades WHERE role = 'taker'), (SELECT count(*) FROM market_trades)").Scan(&takers, &market); err != nil || takers == 0 || market != takers {
		t.Errorf("after the switch there are %d trades and %d in the view of the market's, %v", takers, market, err)
	}
	log.Append(entries[500:]...)
	wait(t, r, 899) // the live runner goes on
	stop()
	same(t, digests(t, live), want)
	if n, err := projections.Migrate(ctx, live); n != 0 || err != nil {
		t.Errorf("after the switch %d migrations were missing, %v", n, err)
	}
	if err := projections.Switch(ctx, live, "rebuilt"); err == nil {
		t.Error("switching to nothing succeeds")
	}
}
