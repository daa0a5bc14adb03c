package readmodels_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// held is a position as a test compares it.
type held struct {
	symbol        string
	amount, entry fixed.Decimal
	cost          fixed.Money
	updated       scalar.Time
}

// pastTest compares rows as of past records with a fold to that record.
type pastTest struct {
	*testing.T
	pool *pgxpool.Pool
}

// customer compares the open orders, the balance, and the positions of a customer.
func (p pastTest) customer(s *trading.State, customer string, born, sequence int64) {
	p.Helper()
	what := fmt.Sprintf("of %s as of %d", customer, sequence)
	open, gotBorn, err := orders.OpenAsOf(p.Context(), p.pool, orders.Filter{Scope: orders.Scope{CustomerCode: customer}}, sequence)
	must(p.T, err)
	check(p.T, "registration "+what, gotBorn, born)
	want := []orders.Order{}
	s.EachOpenOrder(customer, func(o *order.Order, at int64) {
		want = append(want, orders.Order{Order: *o, Sequence: at, Sweeping: s.Sweeps(o.Code)})
	})
	byCode := func(a, b orders.Order) int { return slices.Compare(a.Code[:], b.Code[:]) }
	slices.SortFunc(open, byCode)
	slices.SortFunc(want, byCode)
	check(p.T, "orders "+what, open, want)

	balances, _, err := ledger.BalancesAsOf(p.Context(), p.pool, customer, sequence)
	must(p.T, err)
	var balance fixed.Money
	for _, b := range balances {
		balance += b.Balance
	}
	inState, _ := s.Balance(customer)
	check(p.T, "balance "+what, balance, inState)

	positions, _, err := ledger.PositionsAsOf(p.Context(), p.pool, customer, "", sequence)
	must(p.T, err)
	var got, all []held
	for _, h := range positions {
		got = append(got, held{h.Symbol, h.Amount, h.EntryPrice, h.Cost, h.Updated})
	}
	for _, h := range s.Positions(customer) {
		all = append(all, held{h.Symbol, h.Amount, h.EntryPrice, h.Cost, h.Updated})
	}
	check(p.T, "positions "+what, got, all)
}

// played returns the records of a random venue under the real rules.
func played(t *testing.T, seed uint64) []record.Entry {
	t.Helper()
	o := projectiontest.NewOwner(t, seed)
	o.Play(700)
	for range 10 {
		o.PassHour()
		o.Play(10)
	}
	o.Play(300)
	return o.Entries
}

// TestRowsAsOfEqualAFold compares rows as of a thousand random records with a fold to each of them: every customer's
// open orders, balance, and positions, and every order by its code.
func TestRowsAsOfEqualAFold(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	entries := played(t, seed)
	pool := projectiontest.Database(t)
	apply(t, pool, "trading", readmodels.Trading(), entries)
	random := rand.New(rand.NewPCG(seed, 3))
	wanted := make(map[int64]bool)
	for range 1000 {
		wanted[random.Int64N(int64(len(entries)))] = true
	}
	p := pastTest{t, pool}
	s, born := trading.NewState(), make(map[string]int64)
	placed, last := make(map[scalar.ID]int64), make(map[scalar.ID]orders.Order)
	var codes []scalar.ID
	for _, e := range entries {
		s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		at := e.Record.Sequence
		var triggered trading.Triggered
		for _, event := range e.Record.Events {
			if r, ok := event.(*trading.CustomerRegistered); ok {
				born[r.CustomerCode] = at
			}
			if o := triggered.Order(event, e.Record.Time); o != nil {
				if _, known := placed[o.Code]; !known {
					placed[o.Code] = at
					codes = append(codes, o.Code)
				}
				after := orders.Order{Order: *o, Sequence: at, Sweeping: s.Sweeps(o.Code)}
				if before := last[o.Code].Triggered; after.Triggered.IsZero() {
					after.Triggered = before
				}
				last[o.Code] = after
			}
		}
		if !wanted[at] || len(born) == 0 {
			continue
		}
		customers := make([]string, 0, len(born))
		for code := range born {
			customers = append(customers, code)
		}
		slices.Sort(customers)
		customer := customers[random.IntN(len(customers))]
		p.customer(s, customer, born[customer], at)
		if len(codes) == 0 {
			continue
		}
		code := codes[random.IntN(len(codes))]
		o, made, err := orders.ByCodeAsOf(t.Context(), pool, orders.Scope{CustomerCode: last[code].CustomerCode}, code, at)
		must(t, err)
		check(t, fmt.Sprintf("order %s as of %d", code, at), o, last[code])
		check(t, "its first record", made, placed[code])
	}
	for _, code := range codes[len(codes)/2:] { // before it was placed
		o, made, err := orders.ByCodeAsOf(t.Context(), pool, orders.Scope{CustomerCode: last[code].CustomerCode}, code, placed[code]-1)
		must(t, err)
		check(t, "an order before it was placed", o, orders.Order{})
		check(t, "its first record", made, placed[code])
	}
	_, _, err := ledger.BalancesAsOf(t.Context(), pool, "C0", int64(len(entries)))
	check(t, "after the last record", err, projections.ErrAhead)
}

// intervals finds versions of a row whose interval is empty, and those that do not begin where the one before them ends.
const intervals = `SELECT key || ' ' || since || ' ' || coalesce(until::text, 'now') FROM (
	SELECT key, since, until, lag(until, 1, since) OVER (PARTITION BY key ORDER BY since) AS ended FROM (%s) v) w
	WHERE since >= until OR since <> ended`

// TestIntervalsHaveNoGaps checks the intervals of every row, however the log is cut into transactions.
func TestIntervalsHaveNoGaps(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	entries := played(t, seed)
	pool := projectiontest.Database(t)
	apply(t, pool, "trading", readmodels.Trading(), entries[:len(entries)/3])
	apply(t, pool, "trading", readmodels.Trading(), entries[:len(entries)/3+1])
	apply(t, pool, "trading", readmodels.Trading(), entries)
	for table, key := range map[string]string{"order": "code::text", "balance": "customer_code || currency", "position": "customer_code || symbol"} {
		versions := fmt.Sprintf("SELECT %[1]s AS key, since, until FROM %[2]s_history UNION ALL SELECT %[1]s, sequence, NULL FROM %[2]ss", key, table)
		rows, err := pool.Query(t.Context(), fmt.Sprintf(intervals, versions))
		must(t, err)
		wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		check(t, "wrong intervals of "+table, len(wrong), 0)
		var n int
		must(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table+"_history").Scan(&n))
		if n == 0 {
			t.Errorf("no versions of %ss", table)
		}
	}
	// The first version of an order begins with the record that made it.
	var late int
	must(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM orders o WHERE created_sequence <> COALESCE(
		(SELECT min(since) FROM order_history h WHERE h.code = o.code), sequence)`).Scan(&late))
	check(t, "orders without their first version", late, 0)
}

// TestHistoryBegins reads as of records before the first one that the history answers for.
func TestHistoryBegins(t *testing.T) {
	entries := played(t, 7)
	pool := projectiontest.Database(t)
	apply(t, pool, "trading", readmodels.Trading(), entries)
	for _, dropped := range []bool{false, true} {
		_, err := pool.Exec(t.Context(), "UPDATE history_bounds SET kept = $1, built = $2", map[bool]int{true: 100, false: -1}[dropped], map[bool]int{true: 50, false: 100}[dropped])
		must(t, err)
		_, _, err = ledger.BalancesAsOf(t.Context(), pool, "C0", 99)
		check(t, "before the bound", err, error(&projections.HistoryError{Journal: "trading", Sequence: 99, From: 100, Dropped: dropped}))
		_, _, err = ledger.BalancesAsOf(t.Context(), pool, "C0", 100)
		must(t, err)
	}
}

// TestMoments finds the record that a time means.
func TestMoments(t *testing.T) {
	entries := played(t, 8)
	pool := projectiontest.Database(t)
	apply(t, pool, "trading", readmodels.Trading(), entries)
	last := entries[len(entries)-1].Record
	for i := 0; i < len(entries); i += 7 {
		at := entries[i].Record.Time
		end := i
		for end+1 < len(entries) && entries[end+1].Record.Time <= at {
			end++
		}
		m, err := projections.MomentOf(t.Context(), pool, "trading", at)
		must(t, err)
		check(t, fmt.Sprintf("the moment of record %d", i), m, projections.Moment{Sequence: int64(end), Final: end < len(entries)-1, Tip: last.Time})
	}
	m, err := projections.MomentOf(t.Context(), pool, "trading", entries[0].Record.Time-1)
	must(t, err)
	check(t, "before the genesis", m, projections.Moment{Sequence: -1, Final: true, Tip: last.Time})
	at, found, err := projections.TimeOf(t.Context(), pool, record.LogPosition{Journal: "trading", Sequence: 5})
	must(t, err)
	check(t, "the time of record 5", at, entries[5].Record.Time)
	check(t, "record 5", found, true)
	_, found, err = projections.TimeOf(t.Context(), pool, record.LogPosition{Journal: "trading", Sequence: last.Sequence + 1})
	must(t, err)
	check(t, "a record after the last", found, false)
}

// repartition gives empty tables of history partitions that end at the sequences.
func repartition(t *testing.T, pool *pgxpool.Pool, ends ...int64) {
	t.Helper()
	for _, table := range []string{"order_history", "balance_history", "position_history"} {
		sql := fmt.Sprintf("DROP TABLE %s_0", table)
		low := int64(0)
		for _, end := range ends {
			sql += fmt.Sprintf("; CREATE TABLE %[1]s_%[2]d PARTITION OF %[1]s FOR VALUES FROM (%[2]d) TO (%[3]d)", table, low, end)
			low = end
		}
		_, err := pool.Exec(t.Context(), sql)
		must(t, err)
	}
}

// TestDropHistory drops the partitions whose newest record is older than a time, and asks for records before and after them.
func TestDropHistory(t *testing.T) {
	entries := played(t, 9)
	pool := projectiontest.Database(t)
	repartition(t, pool, 400, 800, 1<<20)
	apply(t, pool, "trading", readmodels.Trading(), entries)
	drop := func(before scalar.Time, want int) {
		t.Helper()
		dropped, err := projections.DropHistory(t.Context(), pool, before)
		must(t, err)
		check(t, "dropped partitions", dropped, want)
	}
	read := func(sequence int64) ([]ledger.Balance, error) {
		found, _, err := ledger.BalancesAsOf(t.Context(), pool, "C0", sequence)
		return found, err
	}
	before, err := read(399)
	must(t, err)
	drop(entries[399].Record.Time, 0) // its newest record is not older
	_, err = read(0)
	must(t, err)
	drop(entries[399].Record.Time+1, 1)
	_, err = read(398)
	check(t, "before the bound", err, error(&projections.HistoryError{Journal: "trading", Sequence: 398, From: 399, Dropped: true}))
	after, err := read(399)
	must(t, err)
	check(t, "balances at the bound", after, before)
	drop(entries[len(entries)-1].Record.Time+scalar.Second, 1) // the last partition still gets versions
	_, err = read(798)
	check(t, "before the second bound", err, error(&projections.HistoryError{Journal: "trading", Sequence: 798, From: 799, Dropped: true}))
	_, err = read(799)
	must(t, err)
}

// TestDropHistoryWaitsForNobody drops while a reader uses the tables. It gives up, and the bound stays.
func TestDropHistoryWaitsForNobody(t *testing.T) {
	entries := played(t, 10)
	pool := projectiontest.Database(t)
	repartition(t, pool, 400, 1<<20)
	apply(t, pool, "trading", readmodels.Trading(), entries)
	for _, held := range []string{"SELECT FROM order_history", "SELECT FROM checkpoints FOR UPDATE",
		"SELECT pg_advisory_xact_lock(hashtextextended('perpetua merge', 0))"} {
		tx, err := pool.Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), held)
		must(t, err)
		dropped, err := projections.DropHistory(t.Context(), pool, entries[len(entries)-1].Record.Time)
		if dropped != 0 || !errors.Is(err, projections.ErrHistoryBusy) {
			t.Errorf("during %s: %d dropped, %v", held, dropped, err)
		}
		must(t, tx.Rollback(t.Context()))
	}
	_, _, err := ledger.BalancesAsOf(t.Context(), pool, "C0", 0)
	must(t, err)
	dropped, err := projections.DropHistory(t.Context(), pool, entries[len(entries)-1].Record.Time)
	must(t, err)
	check(t, "dropped partitions", dropped, 1)
}

// TestRebuildKeepsDroppedHistory rebuilds after a drop, and amid it an earlier build applies records: the dropped versions do not
// come back, and the others do.
func TestRebuildKeepsDroppedHistory(t *testing.T) {
	entries := played(t, 11)
	url := projectiontest.MigratedURL(t)
	repartition(t, projectiontest.Open(t, url), 400, 1<<20)
	r := newRebuiltAt(t, url, entries)
	_, err := r.live.Exec(t.Context(), "SELECT history_partitions(1 << 20)")
	must(t, err)
	dropped, err := projections.DropHistory(t.Context(), r.live, entries[400].Record.Time+1)
	must(t, err)
	check(t, "dropped partitions", dropped, 1)
	for _, line := range r.rebuild(false, func() {
		r.exec("UPDATE history_bounds SET built = 500", "DELETE FROM balance_history WHERE until = 500")
	}) {
		t.Log(line)
	}
	_, _, err = ledger.BalancesAsOf(t.Context(), r.live, "C0", 398)
	check(t, "before the bound", err, error(&projections.HistoryError{Journal: "trading", Sequence: 398, From: 399, Dropped: true}))
	_, _, err = ledger.BalancesAsOf(t.Context(), r.live, "C0", 399)
	must(t, err)
}

// TestPartitions makes the partitions of sequences. Each sequence is in one partition, which begins with a multiple of 2^20.
func TestPartitions(t *testing.T) {
	pool := projectiontest.Database(t)
	for sequence, want := range map[int64][2]int64{0: {0, 1 << 20}, 1 << 20: {1 << 20, 2 << 20}, 1<<26 - 1: {63 << 20, 64 << 20},
		1 << 26: {1 << 26, 1<<26 + 1<<21}, 1<<40 + 5: {1 << 40, 1<<40 + 1<<35}} {
		for range 2 {
			_, err := pool.Exec(t.Context(), "SELECT history_partitions($1)", sequence)
			must(t, err)
		}
		var bound string
		must(t, pool.QueryRow(t.Context(), "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = $1",
			fmt.Sprintf("order_history_%d", want[0])).Scan(&bound))
		check(t, fmt.Sprintf("the partition of %d", sequence), bound, fmt.Sprintf("FOR VALUES FROM ('%d') TO ('%d')", want[0], want[1]))
	}
}
