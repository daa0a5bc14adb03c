package projections_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestMergeBeside makes rows beside live ones that somebody has damaged, at a later position than theirs, and merges them
// while the live runner runs.
func TestMergeBeside(t *testing.T) {
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
	read() // its statement stays prepared over the merge

	beside, remove, err := projections.OpenScratch(ctx, url, "rebuilt")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	if _, _, err := projections.OpenScratch(ctx, url, "rebuilt"); err == nil || !strings.Contains(err.Error(), "another process is at work in it") {
		t.Errorf("a second rebuild: %v", err)
	}
	second, stopSecond := start(t, beside, projectiontest.NewLog(entries[:700]...))
	wait(t, second, 699)
	stopSecond()
	same(t, digests(t, live), before) // the live rows are untouched by it
	follows := 0
	merge, err := projections.OpenMerge(ctx, live, "rebuilt", func(_ context.Context, live map[string]projections.Checkpoint) error {
		if at := live["trading"].Position.Sequence; at != 499 {
			t.Errorf("the live rows are at %d", at)
		}
		follows++
		if follows == 1 { // in Compare: longer than Apply takes
			if _, err := beside.Exec(ctx, "SELECT pg_sleep(1)"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer merge.Close()
	if _, err := merge.Apply(ctx); err == nil {
		t.Error("rows are merged that were not compared")
	}
	if differences, err := merge.Compare(ctx); err != nil || len(differences) < 10 {
		t.Errorf("differences: %v, %v", differences, err)
	}
	same(t, digests(t, live), before)
	done, err := merge.Apply(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if done.Blocked < time.Second {
		t.Errorf("the runners waited for %v, of a second in Compare", done.Blocked)
	}
	same(t, digests(t, live), digests(t, beside))
	read()
	log.Append(entries[500:]...)
	wait(t, r, 899) // the live runner continues where the new rows were
	stop()
	same(t, digests(t, live), want)
	if n, err := projections.Migrate(ctx, live); n != 0 || err != nil {
		t.Errorf("after the merge %d migrations were missing, %v", n, err)
	}
	if _, err := projections.OpenMerge(ctx, live, "nothing", nil); err == nil {
		t.Error("a schema that is not there is merged")
	}
	if _, err := live.Exec(ctx, "ALTER TABLE candles DROP COLUMN turnover; ALTER TABLE candles ALTER COLUMN trades TYPE text; DROP TABLE leverages"); err != nil {
		t.Fatal(err)
	}
	_, err = projections.OpenMerge(ctx, live, "rebuilt", nil)
	for _, wrong := range []string{"candles has no column turnover", "candles.trades is of type text and not bigint", "there is no table leverages"} {
		if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("live tables that somebody changed: %v", err)
		}
	}
}
