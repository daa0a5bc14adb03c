package readmodels_test

import (
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// TestBooksWhileAnOrderTrades compares the books of the views with those of the fold after each record of an order that trades in
// several records. Between two of them it is in no book, also if it was amended, and if its work is set aside.
func TestBooksWhileAnOrderTrades(t *testing.T) {
	for _, how := range []struct{ amended, setAside bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("%+v", how), func(t *testing.T) {
			o := projectiontest.NewOwner(t, 7)
			o.Play(100)
			symbol, from := projectiontest.Symbols()[0], len(o.Entries)
			o.Sweep(how.amended, how.setAside)
			o.Play(20)
			url := projectiontest.MigratedURL(t)
			a, rows := &analyzed{pool: asReader(t, url)}, projectiontest.Open(t, url)
			s, amid := trading.NewState(), 0
			for i, e := range o.Entries {
				s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
				if !trading.Sweeping(e.Record.Events).IsZero() {
					amid++
					apply(t, rows, "trading", readmodels.Trading(), o.Entries[:i+1])
					differences, err := readmodels.Compare(t.Context(), rows, s, e.Record.Sequence)
					must(t, err)
					check(t, "differences amid the trades", differences, nil)
					a.book(t, s, symbol, e.Record.Sequence)
				}
			}
			apply(t, rows, "trading", readmodels.Trading(), o.Entries)
			s = trading.NewState()
			for i, e := range o.Entries {
				s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
				if i >= from && (i%50 == 0 || i > from+260) {
					a.book(t, s, symbol, e.Record.Sequence)
				}
			}
			if amid < 2 {
				t.Errorf("only %d records leave an order that continues to trade", amid)
			}
		})
	}
}

// before48 makes the tables of the trading journal those of a build with the migrations up to 43, which is before all views.
const before48 = `DELETE FROM schema_versions WHERE version_id > 43;
	DROP SCHEMA analytics CASCADE; DROP SCHEMA lake CASCADE;
	ALTER TABLE orders DROP COLUMN sweeping; ALTER TABLE order_history DROP COLUMN sweeping;
	DROP TABLE owner_history, document_history, trigger_history, proposals, onboarding_proposals;
	DELETE FROM history_bounds WHERE journal = 'onboarding';
	DROP FUNCTION history_written(text, bigint, bigint, boolean);
	CREATE FUNCTION history_written(bigint, bigint) RETURNS void LANGUAGE sql AS ''`

// TestBooksAfterAnUpgrade migrates the tables of an earlier build, in which an order has traded in several records. The views have no
// books of that time until a rebuild.
func TestBooksAfterAnUpgrade(t *testing.T) {
	o := projectiontest.NewOwner(t, 7)
	o.Play(100)
	o.Sweep(false, false)
	upgraded := len(o.Entries)
	o.Play(100)
	url, symbol := projectiontest.MigratedURL(t), projectiontest.Symbols()[0]
	old := projectiontest.Open(t, url)
	apply(t, old, "trading", readmodels.Trading(), o.Entries[:upgraded])
	_, err := old.Exec(t.Context(), before48)
	must(t, err)
	_, err = projections.Migrate(t.Context(), old)
	must(t, err)
	r := newRebuiltAt(t, url, o.Entries)
	a := &analyzed{pool: asReader(t, url)}
	books := func(from int64) {
		t.Helper()
		s := trading.NewState()
		for _, e := range o.Entries {
			s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
			at := e.Record.Sequence
			switch _, err := a.pool.Exec(t.Context(), "SELECT * FROM analytics.book_at($1, $2)", symbol, at); {
			case (err == nil) != (at >= from):
				t.Errorf("as of %d: %v", at, err)
			case err == nil && (at%50 == 0 || !trading.Sweeping(e.Record.Events).IsZero()):
				a.book(t, s, symbol, at)
			}
		}
	}
	books(int64(upgraded - 1))
	r.audit()
	for _, line := range r.rebuild(false, func() {}) {
		t.Log(line)
	}
	books(0)
	r.audit()
}

// TestBooksAfterAnEarlierBuild has a build without the column apply the last records of an order that trades in several, and then this
// build the records after them. The order rests, also if the earlier build writes versions.
func TestBooksAfterAnEarlierBuild(t *testing.T) {
	o := projectiontest.NewOwner(t, 7)
	o.Play(100)
	o.Sweep(false, false)
	rests := len(o.Entries)
	o.Play(20)
	amid := rests
	for trading.Sweeping(o.Entries[amid-1].Record.Events).IsZero() {
		amid--
	}
	taker := trading.Sweeping(o.Entries[amid-1].Record.Events)
	url, symbol := projectiontest.MigratedURL(t), projectiontest.Symbols()[0]
	live := projectiontest.Open(t, url)
	apply(t, live, "trading", readmodels.Trading(), o.Entries[:amid])
	applyAsBefore(t, live, o.Entries[:rests], amid)
	tag, err := live.Exec(t.Context(), "UPDATE orders SET sweeping = true WHERE code = $1 AND live", taker) // as it was
	must(t, err)
	check(t, "orders that rest", tag.RowsAffected(), int64(1))
	_, err = live.Exec(t.Context(), "SELECT history_written('trading', $1, $2)", amid, rests-1)
	must(t, err)
	r := newRebuiltAt(t, url, o.Entries)
	a, s := &analyzed{pool: asReader(t, url)}, trading.NewState()
	for i, e := range o.Entries {
		s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		if i >= rests-1 {
			a.book(t, s, symbol, e.Record.Sequence)
		}
	}
	r.audit()
}

// TestBooksAfterAnUpgradeAmidTrades migrates the tables of an earlier build while an order trades in several records. The books are
// right from the next of these records on, and a rebuild makes the earlier ones.
func TestBooksAfterAnUpgradeAmidTrades(t *testing.T) {
	o := projectiontest.NewOwner(t, 7)
	o.Play(100)
	o.Sweep(false, false)
	amid := len(o.Entries)
	for trading.Sweeping(o.Entries[amid-1].Record.Events).IsZero() {
		amid--
	}
	url, symbol := projectiontest.MigratedURL(t), projectiontest.Symbols()[0]
	old := projectiontest.Open(t, url)
	apply(t, old, "trading", readmodels.Trading(), o.Entries[:amid])
	_, err := old.Exec(t.Context(), before48)
	must(t, err)
	_, err = projections.Migrate(t.Context(), old)
	must(t, err)
	r := newRebuiltAt(t, url, o.Entries)
	a := &analyzed{pool: asReader(t, url)}
	books := func(from int) {
		t.Helper()
		s := trading.NewState()
		for i, e := range o.Entries {
			s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
			if i >= from {
				a.book(t, s, symbol, e.Record.Sequence)
			}
		}
	}
	books(amid)
	for _, line := range r.rebuild(false, func() {}) {
		t.Log(line)
	}
	books(amid - 3)
	r.audit()
}
