package trading_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// TestAsOfAfterARebuild asks for orders, positions, and balances as of many records, rebuilds the rows from the log, and asks
// again: the same bytes come back. Before the rebuild, the versions of the first half are missing, as after an upgrade from a
// build without history.
func TestAsOfAfterARebuild(t *testing.T) {
	url := projectiontest.MigratedURL(t)
	pool := projectiontest.Open(t, url)
	v := fundedOn(t, tradingtest.On(t, pool, pool))
	var first, code string
	type question struct{ path, at string }
	answers := make(map[question]string)
	ask := func(q question) string {
		r := past(v, "broker-a", q.path, q.at).Want(200)
		return r.Header.Get(operation.HeaderLogPosition) + r.Body
	}
	trade(v, rand.New(rand.NewPCG(19, 1)), func() {
		at := v.Trading.Tip().String()
		if first == "" {
			first = at
			r := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "60000", `"reference_id":"long"`)).Want(201)
			code, at = r.Text("code"), v.Trading.Tip().String()
		}
		for _, path := range []string{a1 + "/orders", a1 + "/orders/" + code, a1 + "/orders/by-reference/long", a1 + "/positions", a1 + "/balances"} {
			q := question{path, at}
			answers[q] = ask(q)
		}
	})
	half := v.Trading.Tip().Sequence / 2
	if _, err := pool.Exec(t.Context(), "WITH o AS (DELETE FROM order_history WHERE until <= $1), b AS (DELETE FROM balance_history WHERE until <= $1), "+
		"p AS (DELETE FROM position_history WHERE until <= $1) UPDATE history_bounds SET built = $1", half); err != nil {
		t.Fatal(err)
	}
	past(v, "broker-a", a1+"/balances", first).Code(409, "HISTORY_NOT_BUILT")
	rebuild(t, url, v)
	for q, want := range answers {
		if got := ask(q); got != want {
			t.Fatalf("%s as of %s after the rebuild:\n%s\nwas\n%s", q.path, q.at, got, want)
		}
	}
}

// rebuild makes the rows of the trading journal again in another schema, and merges them into the live ones.
func rebuild(t *testing.T, url string, v *tradingtest.Venue) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	live := projectiontest.Open(t, url)
	beside, remove, err := projections.OpenScratch(ctx, url, readmodels.RebuildSchema)
	must(err)
	defer remove()
	replays := v.Replays(beside)
	m, err := projections.OpenMerge(ctx, live, readmodels.RebuildSchema, func(ctx context.Context, at map[string]projections.Checkpoint) error {
		for _, r := range replays {
			if err := r.Replay(ctx, at[r.Checkpoint().Journal].Position.Sequence); err != nil {
				return err
			}
		}
		return nil
	})
	must(err)
	defer m.Close()
	differences, err := m.Compare(ctx)
	must(err)
	if len(differences) != 3 {
		t.Errorf("%v, want differences in the three tables of history", differences)
	}
	_, err = m.Apply(ctx)
	must(err)
}
