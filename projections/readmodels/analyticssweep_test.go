package readmodels_test

import (
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
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

// migratedAgain applies the first records to tables, and has these come from a build without the column. It returns the migrated tables,
// which go on with the other records, and a reader of their views.
func migratedAgain(t *testing.T, o *projectiontest.Owner, applied int) (*rebuilt, *analyzed) {
	t.Helper()
	url := projectiontest.MigratedURL(t)
	old := projectiontest.Open(t, url)
	apply(t, old, "trading", readmodels.Trading(), o.Entries[:applied])
	_, err := old.Exec(t.Context(), before48)
	must(t, err)
	_, err = projections.Migrate(t.Context(), old)
	must(t, err)
	return newRebuiltAt(t, url, o.Entries), &analyzed{pool: asReader(t, url)}
}

// swept returns an owner after an order that traded in several records, and the number of records up to the last one after which the
// order continued to trade.
func swept(t *testing.T) (o *projectiontest.Owner, amid int) {
	t.Helper()
	o = projectiontest.NewOwner(t, 7)
	o.Play(100)
	o.Sweep(false, false)
	for amid = len(o.Entries); trading.Sweeping(o.Entries[amid-1].Record.Events).IsZero(); {
		amid--
	}
	return o, amid
}

// booksFrom compares the books as of the records from one on with those of the fold.
func (a *analyzed) booksFrom(t *testing.T, entries []record.Entry, from int, compared func(record.Entry) bool) {
	t.Helper()
	s := trading.NewState()
	for i, e := range entries {
		s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		if i >= from && compared(e) {
			a.book(t, s, projectiontest.Symbols()[0], e.Record.Sequence)
		}
	}
}

func every(record.Entry) bool { return true }

// TestBooksAfterAnUpgrade migrates the tables of an earlier build, in which an order has traded in several records. The views have no
// books of that time until a rebuild.
func TestBooksAfterAnUpgrade(t *testing.T) {
	o, _ := swept(t)
	upgraded := len(o.Entries)
	o.Play(100)
	r, a := migratedAgain(t, o, upgraded)
	books := func(from int) {
		t.Helper()
		for at := range o.Entries {
			if _, err := a.pool.Exec(t.Context(), "SELECT * FROM analytics.book_at($1, $2)", projectiontest.Symbols()[0], at); (err == nil) != (at >= from) {
				t.Errorf("as of %d: %v", at, err)
			}
		}
		a.booksFrom(t, o.Entries, from, func(e record.Entry) bool {
			return e.Record.Sequence%50 == 0 || !trading.Sweeping(e.Record.Events).IsZero()
		})
	}
	books(upgraded - 1)
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
	o, amid := swept(t)
	rests := len(o.Entries)
	o.Play(20)
	url := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, url)
	apply(t, live, "trading", readmodels.Trading(), o.Entries[:amid])
	applyAsBefore(t, live, o.Entries[:rests], amid)
	taker := trading.Sweeping(o.Entries[amid-1].Record.Events)
	tag, err := live.Exec(t.Context(), "UPDATE orders SET sweeping = true WHERE code = $1 AND live", taker) // as it was
	must(t, err)
	check(t, "orders that rest", tag.RowsAffected(), int64(1))
	_, err = live.Exec(t.Context(), "SELECT history_written('trading', $1, $2)", amid, rests-1)
	must(t, err)
	r := newRebuiltAt(t, url, o.Entries)
	a := &analyzed{pool: asReader(t, url)}
	a.booksFrom(t, o.Entries, rests-1, every)
	r.audit()
}

// TestBooksAfterAnUpgradeAmidTrades migrates the tables of an earlier build while an order trades in several records. The books are
// right from the next of these records on, and a rebuild makes the earlier ones.
func TestBooksAfterAnUpgradeAmidTrades(t *testing.T) {
	o, amid := swept(t)
	r, a := migratedAgain(t, o, amid)
	a.booksFrom(t, o.Entries, amid, every)
	for _, line := range r.rebuild(false, func() {}) {
		t.Log(line)
	}
	a.booksFrom(t, o.Entries, amid-3, every)
	r.audit()
}
