package projections_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

// start runs a runner over the log of the trading journal until the test ends or stop is called, which returns what Run returned.
func start(t testing.TB, pool *pgxpool.Pool, log projections.Log, more ...projections.Projection) (r *projections.Runner, stop func() error) {
	t.Helper()
	return startOf(t, "trading", pool, log, append(readmodels.Trading(), more...)...)
}

// startOf is start of any journal.
func startOf(t testing.TB, name string, pool *pgxpool.Pool, log projections.Log, list ...projections.Projection) (r *projections.Runner, stop func() error) {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	r = projections.Config{Pool: pool, Log: log, Journal: name, Logger: logger}.Runner(list...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() error {
		cancel()
		if stopped {
			return nil
		}
		stopped = true
		return <-done
	}
	t.Cleanup(func() { stop() })
	return r, stop
}

func wait(t testing.TB, r *projections.Runner, sequence int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Wait(ctx, sequence); err != nil {
		t.Fatalf("waiting for %d at %v: %v", sequence, r.Position(), err)
	}
}

func digests(t testing.TB, pool *pgxpool.Pool) map[string]projections.Digest {
	t.Helper()
	return projectiontest.Digests(t, pool)
}

func same(t testing.TB, got, want map[string]projections.Digest) {
	t.Helper()
	for name, w := range want {
		if got[name] != w {
			t.Errorf("table %s has %v, want %v", name, got[name], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d tables, want %d", len(got), len(want))
	}
}

// project brings a new database to the end of the entries, cut into batches of at most chunk.
func project(t testing.TB, entries []record.Entry, chunk int) *pgxpool.Pool {
	t.Helper()
	pool := projectiontest.Database(t)
	log := projectiontest.NewLog(entries...)
	log.Chunk = chunk
	r, stop := start(t, pool, log)
	wait(t, r, entries[len(entries)-1].Position.Sequence)
	stop()
	return pool
}

func TestRebuildGivesTheSameRows(t *testing.T) {
	entries := projectiontest.NewVenue(7).Entries(9000) // two anchors beside the genesis
	want := digests(t, project(t, entries, 0))
	filled := map[string]bool{"records": true, "anchors": true, "checkpoints": true} // rows of every journal
	for _, p := range readmodels.Trading() {
		for _, name := range p.Tables() {
			filled[name] = true
		}
	}
	for name, d := range want {
		if (d.Rows != 0) != (filled[name]) {
			t.Errorf("table %s has %d rows", name, d.Rows)
		}
	}
	if got := want["anchors"].Rows; got != 3 {
		t.Errorf("%d anchors, want those of 0, 4096 and 8192", got)
	}
	same(t, digests(t, project(t, entries, 1000)), want)
}

func TestAnyBatchesGiveTheSameRows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	entries := projectiontest.NewVenue(seed).Entries(400)
	want := digests(t, project(t, entries, 0))
	for _, chunk := range []int{1, 2, 7, 100} {
		same(t, digests(t, project(t, entries, chunk)), want)
	}
}

func TestTwoRunnersApplyOnce(t *testing.T) {
	entries := projectiontest.NewVenue(11).Entries(3000)
	want := digests(t, project(t, entries, 0))

	pool := projectiontest.Database(t)
	log := projectiontest.NewLog(entries[:1500]...)
	log.Chunk = 50
	first, stop := start(t, pool, log)
	second, stopSecond := start(t, pool, log)
	wait(t, first, 1499)
	wait(t, second, 1499) // whichever stands by sees what the other one applied
	if first.Active() == second.Active() {
		t.Errorf("both runners active: %v", first.Active())
	}
	if second.Active() {
		second, stop = first, stopSecond
	}
	log.Append(entries[1500:2000]...)
	wait(t, second, 1999)
	log.Append(entries[2000:2500]...)
	stop() // the one that applies; the other takes over
	log.Append(entries[2500:]...)
	wait(t, second, 2999)
	if !second.Active() {
		t.Error("the runner that is left stands by")
	}
	same(t, digests(t, pool), want)
}

// brokenLog is a log whose readers fail.
type brokenLog struct{ projections.Log }

func (brokenLog) From(record.Position) projections.Reader { return brokenReader{} }

type brokenReader struct{}

func (brokenReader) Poll(context.Context) ([]record.Entry, error) {
	return nil, errors.New("nothing can be read")
}

func (brokenReader) Close() {}

// watchedConn is a connection that says when it is closed.
type watchedConn struct {
	net.Conn
	closing func()
}

func (c watchedConn) Close() error {
	c.closing()
	return c.Conn.Close()
}

// TestARunnerIsNotActiveWithoutItsConnection: the end of a session lets another runner become active.
func TestARunnerIsNotActiveWithoutItsConnection(t *testing.T) {
	cfg := projectiontest.Database(t).Config()
	var r *projections.Runner
	active := make(chan bool, 1)
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return watchedConn{c, func() {
			select {
			case active <- r.Active():
			default:
			}
		}}, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r = projections.Config{Pool: pool, Log: brokenLog{}, Journal: "trading"}.Runner(readmodels.Trading()...)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	if <-active {
		t.Error("the runner is active while its connection ends")
	}
	stop()
	<-done
}

func TestCompareAndSetHoldsWithoutTheLock(t *testing.T) {
	// Two schemas' worth of lock keys, one set of tables: the runners hold different locks and race for every batch.
	entries := projectiontest.NewVenue(12).Entries(320)
	want := digests(t, project(t, entries, 0))
	url := projectiontest.MigratedURL(t)
	pool := projectiontest.Open(t, url)
	if _, err := pool.Exec(t.Context(), "CREATE SCHEMA other"); err != nil {
		t.Fatal(err)
	}
	beside, err := projections.Open(t.Context(), url+"&search_path=other,public")
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	log := projectiontest.NewLog(entries[:300]...)
	log.Chunk = 5
	first, stop := start(t, pool, log)
	second, stopSecond := start(t, beside, log)
	for sequence := 299; sequence < 320; sequence++ {
		if sequence >= 300 { // both stand at the tip, so both apply it, and one of them must lose
			log.Append(entries[sequence])
		}
		wait(t, first, int64(sequence))
		wait(t, second, int64(sequence))
		if sequence == 299 && !(first.Active() && second.Active()) {
			t.Error("a runner stands by: they do not race")
		}
	}
	if n := log.Readers(); n < 10 {
		t.Errorf("%d readers: the runners hardly ever raced", n)
	}
	stop()
	stopSecond()
	same(t, digests(t, pool), want)
}

// saboteur adds a statement of its own to the end of the transactions that hold a record, a number of times.
type saboteur struct {
	statement string
	sequence  int64
	times     atomic.Int64
}

func (*saboteur) Name() string     { return "saboteur" }
func (*saboteur) Tables() []string { return nil }

func (s *saboteur) Project(entries []record.Entry, batch *projections.Batch) {
	first, last := entries[0].Record.Sequence, entries[len(entries)-1].Record.Sequence
	if first <= s.sequence && s.sequence <= last && s.times.Add(-1) >= 0 {
		batch.Queue(s.statement)
	}
}

func TestConnectionsCutInMidTransaction(t *testing.T) {
	entries := projectiontest.NewVenue(13).Entries(1000)
	want := digests(t, project(t, entries, 0))
	pool := projectiontest.Database(t)
	log := projectiontest.NewLog(entries[:200]...)
	cut := &saboteur{statement: "SELECT pg_terminate_backend(pg_backend_pid())", sequence: 200}
	cut.times.Store(3)
	r, stop := start(t, pool, log, cut)
	wait(t, r, 199)
	log.Append(entries[200:]...)
	wait(t, r, 999)
	stop()
	if left := cut.times.Load(); left >= 0 {
		t.Errorf("%d cuts never came", left+1)
	}
	same(t, digests(t, pool), want)
}

func TestPostgresAway(t *testing.T) {
	entries := projectiontest.NewVenue(19).Entries(600)
	want := digests(t, project(t, entries, 0))
	direct := projectiontest.MigratedURL(t)
	proxy, url := projectiontest.NewProxy(t, direct)
	proxy.Away(true) // Postgres comes after us
	pool, err := projections.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	log := projectiontest.NewLog(entries[:200]...)
	r, stop := start(t, pool, log)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Wait(short, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait without Postgres: %v", err)
	}
	proxy.Away(false)
	wait(t, r, 199)
	proxy.Away(true)
	log.Append(entries[200:]...)
	if _, err := projections.Read(t.Context(), pool, "trading"); err == nil {
		t.Error("a read without Postgres succeeds")
	}
	if r.Err() != nil {
		t.Errorf("the runner gave up: %v", r.Err())
	}
	proxy.Away(false)
	wait(t, r, 599)
	stop()
	same(t, digests(t, pool), want)
}

// TestACrashWhileNothingComes loses what was applied, as a crash of Postgres may, while no record follows that would
// have the runner look: it notices that its session is gone, and the rows come back.
func TestACrashWhileNothingComes(t *testing.T) {
	entries := projectiontest.NewVenue(23).Entries(200)
	want := digests(t, project(t, entries, 0))
	pool := projectiontest.Database(t)
	log := projectiontest.NewLog(entries...)
	r, stop := start(t, pool, log)
	wait(t, r, 199)
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		var truncate string
		if err := tx.QueryRow(t.Context(), `SELECT 'TRUNCATE ' || string_agg(format('%I', tablename), ', ') FROM pg_tables
			WHERE schemaname = current_schema() AND tablename <> 'schema_versions'`).Scan(&truncate); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), truncate); err != nil { // nobody reads the checkpoint before this is committed
			return err
		}
		var ended int
		err := tx.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_locks
			WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&ended)
		if err == nil && ended != 1 {
			err = fmt.Errorf("%d sessions hold the lock", ended)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); ; {
		c, err := projections.ReadCheckpoint(t.Context(), pool, "trading", 0)
		if err != nil {
			t.Fatal(err)
		}
		if c.Position.Equal(entries[199].Position) {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the rows stay at %v", c.Position)
		}
	}
	stop()
	same(t, digests(t, pool), want)
}

func TestForget(t *testing.T) {
	entries := projectiontest.NewVenue(20).Entries(300)
	pool := project(t, entries, 0)
	want := digests(t, pool)
	log := projectiontest.NewLog(entries[:299]...) // a log that lost a record
	if r, _ := start(t, pool, log); r.Wait(t.Context(), 299) != nil || !record.Final(waitErr(t, r)) {
		t.Fatal("the loss went unnoticed")
	}
	if err := projections.Forget(t.Context(), pool, "trading", readmodels.Trading()...); err != nil {
		t.Fatal(err)
	}
	for name, d := range digests(t, pool) {
		if d.Rows != 0 {
			t.Errorf("table %s still has %d rows", name, d.Rows)
		}
	}
	log.Append(entries[299])
	r, stop := start(t, pool, log)
	wait(t, r, 299)
	stop()
	same(t, digests(t, pool), want)
}

func waitErr(t testing.TB, r *projections.Runner) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return r.Wait(ctx, 1<<40)
}

func TestAFailingRecordIsNeverSkipped(t *testing.T) {
	entries := projectiontest.NewVenue(18).Entries(300)
	want := digests(t, project(t, entries, 0))
	pool := projectiontest.Database(t)
	fail := &saboteur{statement: "SELECT 1 / (SELECT 0)", sequence: 10}
	fail.times.Store(10) // 300 entries, 150, 75, …, 1: what the log names in the end is the one record
	r, stop := start(t, pool, projectiontest.NewLog(entries...), fail)
	wait(t, r, 299)
	stop()
	if left := fail.times.Load(); left >= 0 {
		t.Errorf("%d failures never came", left+1)
	}
	same(t, digests(t, pool), want)
}

func TestAStoppedRunnerLeavesWholeBatches(t *testing.T) {
	entries := projectiontest.NewVenue(14).Entries(3000)
	want := digests(t, project(t, entries, 0))
	pool := projectiontest.Database(t)
	log := projectiontest.NewLog(entries...)
	log.Chunk = 30
	for sequence := int64(0); sequence < 2900; sequence += 290 {
		r, stop := start(t, pool, log)
		wait(t, r, sequence)
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Fatalf("Run returned %v", err)
		}
	}
	r, stop := start(t, pool, log)
	wait(t, r, 2999)
	stop()
	same(t, digests(t, pool), want)
}

func TestDivergedLogTouchesNothing(t *testing.T) {
	entries := projectiontest.NewVenue(15).Entries(100)
	pool := project(t, entries, 0)
	before := digests(t, pool)
	for name, log := range map[string]*projectiontest.Log{
		"truncated": projectiontest.NewLog(entries[:60]...),
		"recreated": projectiontest.NewLog(projectiontest.NewVenue(16).Entries(200)...),
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := start(t, pool, log)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var diverged *record.DivergedError
			if err := r.Wait(ctx, 150); !errors.As(err, &diverged) {
				t.Errorf("Wait returned %v", err)
			}
			if !errors.As(r.Err(), &diverged) || r.Active() {
				t.Errorf("Err %v, active %v", r.Err(), r.Active())
			}
			same(t, digests(t, pool), before)
		})
	}
}

func TestPositions(t *testing.T) {
	ctx := t.Context()
	entries := projectiontest.NewVenue(17).Entries(5000)
	pool := projectiontest.Database(t)
	known, err := projections.Known(ctx, pool, "trading", 0)
	if err != nil || len(known) != 0 {
		t.Fatalf("a new database knows %v, %v", known, err)
	}
	log := projectiontest.NewLog(entries...)
	r, stop := start(t, pool, log)
	wait(t, r, 4999)
	stop()
	known, err = projections.Known(ctx, pool, "trading", 0)
	want := []record.Position{entries[0].Position, entries[4096].Position, entries[4999].Position}
	if err != nil || len(known) != 3 || !known[0].Equal(want[0]) || !known[1].Equal(want[1]) || !known[2].Equal(want[2]) {
		t.Errorf("known positions %v, %v; want %v", known, err, want)
	}
	for sequence, want := range map[int64]record.Position{-1: record.Before, 0: want[0], 4095: want[0], 4096: want[1], 9999: want[1]} {
		if got, err := projections.Anchor(ctx, pool, "trading", 0, sequence); err != nil || !got.Equal(want) {
			t.Errorf("anchor of %d: %v, %v; want %v", sequence, got, err, want)
		}
	}
	unmigrated, err := projections.Open(ctx, projectiontest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer unmigrated.Close()
	if known, err := projections.Known(ctx, unmigrated, "trading", 0); err != nil || len(known) != 0 {
		t.Errorf("an unmigrated database knows %v, %v", known, err)
	}
}

func TestMigrateTwice(t *testing.T) {
	pool, err := projections.Open(t.Context(), projectiontest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	counts := make(chan int, 2)
	for range 2 {
		go func() {
			n, err := projections.Migrate(t.Context(), pool)
			if err != nil {
				t.Error(err)
			}
			counts <- n
		}()
	}
	if a, b := <-counts, <-counts; min(a, b) != 0 || max(a, b) == 0 {
		t.Errorf("the two applied %d and %d migrations", a, b)
	}
	if d := digests(t, pool); len(d) == 0 {
		t.Error("no tables")
	}
}

// TestARunnerThatStandsByDoesNotFail: two runners lose Postgres. One applies again, and the other stands by without an error of its own.
func TestARunnerThatStandsByDoesNotFail(t *testing.T) {
	entries := projectiontest.NewVenue(29).Entries(300)
	direct := projectiontest.MigratedURL(t)
	proxy, url := projectiontest.NewProxy(t, direct)
	pool, err := projections.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	log := projectiontest.NewLog(entries[:200]...)
	first, _ := start(t, pool, log)
	second, _ := start(t, pool, log)
	wait(t, first, 199)
	wait(t, second, 199)
	proxy.Away(true)
	log.Append(entries[200:]...)
	eventually := func(what string, is func() bool) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%s: active %v, %v; errors %v, %v", what, first.Active(), second.Active(), first.Failing(), second.Failing())
			}
		}
	}
	eventually("both fail", func() bool { return first.Failing() != nil && second.Failing() != nil })
	proxy.Away(false)
	wait(t, first, 299)
	wait(t, second, 299)
	eventually("neither fails", func() bool { return first.Failing() == nil && second.Failing() == nil })
	if first.Active() == second.Active() {
		t.Errorf("both runners active: %v", first.Active())
	}
}

// TestPostgresIsLostWithItsMachine: a runner that stands by leaves a server that no longer answers and ends no connection, and applies
// on the one that new connections find. Its pool has an idle connection to the lost server.
func TestPostgresIsLostWithItsMachine(t *testing.T) {
	entries := projectiontest.NewVenue(31).Entries(300)
	direct := projectiontest.MigratedURL(t)
	proxy, proxied := projectiontest.NewProxy(t, direct)
	var lost atomic.Bool
	pool, err := projections.OpenMoving(t.Context(), func() string {
		if lost.Load() {
			return direct
		}
		return proxied
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	log := projectiontest.NewLog(entries[:200]...)
	active, stop := start(t, projectiontest.Open(t, direct), log)
	wait(t, active, 199)
	standby, _ := start(t, pool, log)
	wait(t, standby, 199)
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost.Store(true)
	proxy.Mute()
	stop()
	log.Append(entries[200:]...)
	wait(t, standby, 299)
}
