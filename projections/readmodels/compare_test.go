package readmodels_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

func TestRowsEqualAFoldOfTheLog(t *testing.T) {
	ctx, seed := t.Context(), rand.Uint64()
	t.Logf("seed %d", seed)
	o := projectiontest.NewOwner(t, seed)
	o.Play(700)
	for range 25 { // of which one is 8 o'clock
		o.PassHour()
		o.Play(10)
	}
	o.Play(500)
	o.Import()
	o.PassHour()
	pool := projectiontest.Database(t)
	apply(t, pool, "trading", readmodels.Trading(), o.Entries)
	last := o.Entries[len(o.Entries)-1].Position.Sequence

	differences, err := readmodels.Compare(ctx, pool, o.State, last)
	must(t, err)
	check(t, "differences", differences, nil)
	broken, err := readmodels.Broken(ctx, pool)
	must(t, err)
	check(t, "broken invariants", len(broken), 0)
	for _, b := range broken {
		t.Error(b)
	}
	if _, err := readmodels.Compare(ctx, pool, o.State, last+1); !errors.Is(err, readmodels.ErrMoved) {
		t.Errorf("another position: %v", err)
	}

	count := map[string]int{}
	for _, e := range o.Entries {
		for _, event := range e.Record.Events {
			count[event.EventType()]++
		}
	}
	t.Log(count)
	for _, kind := range []string{"trade.executed", "order.opened", "order.partially_filled", "order.filled", "order.canceled",
		"order.rejected", "order.amended", "order.expired", "withdrawal.completed", "withdrawal.canceled", "leverage.set", "fee_profile.set",
		"opening.imported", "position.opened"} {
		if count[kind] == 0 {
			t.Errorf("no %s: the commands were not varied enough", kind)
		}
	}

	// Whatever is changed behind the journal's back is told, each in addition to what was changed before.
	told := 0
	for _, sabotage := range []string{
		"UPDATE balances SET balance = balance + 0.00000001 WHERE customer_code = 'C0'",
		"UPDATE orders SET limit_price = limit_price + 0.1 WHERE code = (SELECT min(code::text)::uuid FROM orders WHERE live)",
		"UPDATE orders SET status = 'open', live = true WHERE code = (SELECT code FROM orders WHERE reason IS NOT NULL LIMIT 1)",
		"UPDATE orders SET live = false WHERE code = (SELECT max(code::text)::uuid FROM orders WHERE live AND reason IS NULL)",
		"UPDATE orders SET sweeping = true WHERE code = (SELECT code FROM orders WHERE live AND reason IS NULL ORDER BY code OFFSET 1 LIMIT 1)",
		"UPDATE positions SET cost = cost + 1 WHERE symbol = (SELECT symbol FROM positions WHERE amount <> 0 LIMIT 1)",
		"UPDATE venue_balances SET balance = 0 WHERE account = 'external'",
		"UPDATE customers SET broker = 'gamma' WHERE customer_code = 'C0'",
		"UPDATE transactions SET status = 'pending' WHERE code = (SELECT code FROM transactions WHERE type = 'withdrawal' AND status <> 'pending' LIMIT 1)",
	} {
		tag, err := pool.Exec(ctx, sabotage)
		must(t, err)
		differences, err := readmodels.Compare(ctx, pool, o.State, last)
		must(t, err)
		if tag.RowsAffected() == 0 || len(differences) <= told {
			t.Errorf("%s: %d rows, differences %v", sabotage, tag.RowsAffected(), differences)
		}
		told = len(differences)
	}
}

func TestInvariantsAreHeld(t *testing.T) {
	ctx := t.Context()
	o := projectiontest.NewOwner(t, 21)
	o.Play(600)
	pool := projectiontest.Database(t)
	apply(t, pool, "trading", readmodels.Trading(), o.Entries)
	for what, sabotage := range map[string]string{
		"records":       "DELETE FROM records WHERE sequence = 5",
		"checkpoint":    "UPDATE checkpoints SET sequence = sequence - 1",
		"balance":       "UPDATE transactions SET amount = amount + 1 WHERE sequence = (SELECT max(sequence) FROM transactions)",
		"venue balance": "DELETE FROM venue_postings WHERE sequence = (SELECT max(sequence) FROM venue_postings)",
		"record":        "UPDATE venue_postings SET amount = amount + 1 WHERE sequence = (SELECT max(sequence) FROM venue_postings)",
		"positions":     "UPDATE positions SET amount = amount + 1 WHERE customer_code = 'C0'",
		"clearing":      "UPDATE positions SET cost = cost + 1 WHERE customer_code = 'C0'",
		"order":         "UPDATE orders SET filled_amount = filled_amount + 1 WHERE code = (SELECT order_code FROM trades LIMIT 1)",
		"trade":         "DELETE FROM trades WHERE (sequence, ordinal) = (SELECT sequence, ordinal FROM trades LIMIT 1)",
	} {
		tx, err := pool.Begin(ctx)
		must(t, err)
		tag, err := tx.Exec(ctx, sabotage)
		must(t, err)
		broken, err := readmodels.Broken(ctx, tx)
		must(t, err)
		must(t, tx.Rollback(ctx))
		if tag.RowsAffected() == 0 || !slices.ContainsFunc(broken, func(s string) bool { return len(s) > len(what) && s[:len(what)+1] == what+":" }) {
			t.Errorf("%s: %d rows changed, found %v", what, tag.RowsAffected(), broken)
		}
	}
}

func TestCompareWithAnEmptyState(t *testing.T) {
	o := projectiontest.NewOwner(t, 22)
	o.Play(100)
	pool := projectiontest.Database(t)
	apply(t, pool, "trading", readmodels.Trading(), o.Entries)
	differences, err := readmodels.Compare(t.Context(), pool, trading.NewState(), o.Entries[len(o.Entries)-1].Position.Sequence)
	must(t, err)
	if len(differences) == 0 {
		t.Error("no differences")
	}
}
