package projections_test

import (
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestIdleSessionsKeepTheirLocks: a limit for idle sessions of the user ends neither the one that holds the lock of a schema, nor those
// of a pool.
func TestIdleSessionsKeepTheirLocks(t *testing.T) {
	at := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, at)
	if _, err := live.Exec(t.Context(), `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET idle_session_timeout = ''1s''', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	beside, remove, err := projections.OpenScratch(t.Context(), at, "audited")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	var limit string
	if err := beside.QueryRow(t.Context(), "SELECT current_setting('idle_session_timeout')").Scan(&limit); err != nil || limit != "0" {
		t.Errorf("idle_session_timeout is %s, %v", limit, err)
	}
	for idle := false; !idle; { // until the session with the lock has been idle for longer than the limit, or is gone
		if err := live.QueryRow(t.Context(), `SELECT COALESCE(bool_and(a.state = 'idle' AND clock_timestamp() - a.state_change > '1500ms'), true)
			FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&idle); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := projections.OpenScratch(t.Context(), at, "audited"); !errors.Is(err, projections.ErrInUse) {
		t.Errorf("a second process gets the schema: %v", err)
	}
}
