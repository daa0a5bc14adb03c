package launch

import (
	"log/slog"
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
