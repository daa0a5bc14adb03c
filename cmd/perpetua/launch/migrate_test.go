package launch

import (
	"log/slog"
	"net/url"
	"testing"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestAStartOpensTwoConnections until its tables are known to be up to date: one that the node then uses, and one that compares its
// session with that of the other.
func TestAStartOpensTwoConnections(t *testing.T) {
	proxy, at := projectiontest.NewProxy(t, projectiontest.VenueURL(t))
	pool := projectiontest.Open(t, at)
	if err := projections.Ping(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if err := migrateTables(t.Context(), pool, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if opened := proxy.Opened(); opened != 2 {
		t.Errorf("%d connections, want 2", opened)
	}
}

// TestMigrateWithOneConnection: the tables can be made with a pool of one connection.
func TestMigrateWithOneConnection(t *testing.T) {
	u, err := url.Parse(projectiontest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("pool_max_conns", "1")
	u.RawQuery = q.Encode()
	pool := projectiontest.Open(t, u.String())
	for range 2 {
		if err := migrateTables(t.Context(), pool, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
}
