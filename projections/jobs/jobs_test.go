package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

// database has the tables of jobs, and one that calls for them: each row wants its registration looked at from a time on.
func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := projectiontest.Database(t)
	for range 2 { // the second time there is nothing to do
		if err := jobs.Migrate(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), "CREATE TABLE wanted (webhook uuid, due timestamptz)"); err != nil {
		t.Fatal(err)
	}
	return pool
}

func id(n byte) scalar.ID { return scalar.ID{n} }

// want adds a row, and the job for it if there is an inserter, in one transaction.
func want(t testing.TB, pool *pgxpool.Pool, with *jobs.Inserter, webhook scalar.ID, due time.Time) {
	t.Helper()
	err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), "INSERT INTO wanted VALUES ($1, $2)", webhook, due); err != nil || with == nil {
			return err
		}
		return with.Insert(context.Background(), tx, []scalar.ID{webhook, webhook})
	})
	if err != nil {
		t.Error(err)
	}
}

func inserter(t *testing.T) *jobs.Inserter {
	t.Helper()
	i, err := jobs.NewInserter()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// queueOn returns a queue whose work is to delete what is due.
func queueOn(t *testing.T, pool *pgxpool.Pool, node string) *jobs.Queue {
	return &jobs.Queue{Pool: pool, Node: node, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Due: func(ctx context.Context, tx pgx.Tx, webhook scalar.ID) (at time.Time, open bool, err error) {
			var first *time.Time
			err = tx.QueryRow(ctx, "SELECT min(due) FROM wanted WHERE webhook = $1", webhook).Scan(&first)
			if first != nil {
				at = *first
			}
			return at, first != nil, err
		},
		Open: func(ctx context.Context, tx pgx.Tx) ([]scalar.ID, error) {
			rows, err := tx.Query(ctx, "SELECT DISTINCT webhook FROM wanted")
			if err != nil {
				return nil, err
			}
			return pgx.CollectRows(rows, func(r pgx.CollectableRow) (id scalar.ID, err error) {
				err = r.Scan((*[16]byte)(&id))
				return id, err
			})
		},
		Work: func(ctx context.Context, j *jobs.Job) error {
			for {
				if _, err := pool.Exec(ctx, "DELETE FROM wanted WHERE webhook = $1 AND due <= now()", j.Webhook); err != nil {
					return err
				}
				if rested, err := j.Rest(ctx, false); rested || err != nil {
					return err
				}
			}
		}}
}

func run(t *testing.T, q *jobs.Queue) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// eventually waits until a query counts so many rows.
func eventually(t *testing.T, pool *pgxpool.Pool, rows int, query string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		var n int
		if err := pool.QueryRow(ctx, query, args...).Scan(&n); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if n == rows {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %d rows, want %d", query, n, rows)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

const (
	left    = "SELECT count(*) FROM wanted"
	pending = "SELECT count(*) FROM perpetua_jobs.river_job WHERE state IN ('available', 'running', 'scheduled', 'retryable', 'pending')"
)

// TestNoRowIsForgotten has rows come while jobs of the same registrations end. The queue looks for missing jobs by itself as
// well, but here it is told that there is nothing: so each row's own job must see to it, or another that sees the row.
func TestNoRowIsForgotten(t *testing.T) {
	pool, with := database(t), inserter(t)
	q := queueOn(t, pool, "a")
	q.Open = func(context.Context, pgx.Tx) ([]scalar.ID, error) { return nil, nil }
	run(t, q)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 100 {
				want(t, pool, with, id(byte(n%3+w/2)), time.Now())
			}
		})
	}
	writers.Wait()
	eventually(t, pool, 0, left)
	eventually(t, pool, 0, pending)
}

// TestARowAtTheLastMoment comes when its registration's job has just seen that nothing is left, and is about to end.
func TestARowAtTheLastMoment(t *testing.T) {
	pool, with := database(t), inserter(t)
	q := queueOn(t, pool, "a")
	q.Open = func(context.Context, pgx.Tx) ([]scalar.ID, error) { return nil, nil }
	look, written := q.Due, make(chan struct{})
	var once sync.Once
	q.Due = func(ctx context.Context, tx pgx.Tx, webhook scalar.ID) (time.Time, bool, error) {
		at, open, err := look(ctx, tx, webhook)
		once.Do(func() {
			go func() {
				defer close(written)
				want(t, pool, with, webhook, time.Now())
			}()
			for waiting := false; !waiting; { // for this very transaction, unless nothing holds it up
				select {
				case <-written:
					waiting = true
				case <-time.After(5 * time.Millisecond):
					_ = pool.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
				}
			}
		})
		return at, open, err
	}
	run(t, q)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return with.Insert(t.Context(), tx, []scalar.ID{id(1)}) })
	if err != nil {
		t.Fatal(err)
	}
	<-written
	eventually(t, pool, 0, left)
}

// TestWhatIsDueLater waits for its time, unless there is something to do before.
func TestWhatIsDueLater(t *testing.T) {
	pool, with := database(t), inserter(t)
	want(t, pool, with, id(1), time.Now().Add(time.Hour))
	run(t, queueOn(t, pool, "a"))
	eventually(t, pool, 1, pending+" AND scheduled_at > now() + interval '50 minutes'")
	want(t, pool, with, id(1), time.Now())
	eventually(t, pool, 1, left)
	eventually(t, pool, 1, pending+" AND scheduled_at > now() + interval '50 minutes'")
	soon := time.Now().Add(400 * time.Millisecond)
	if _, err := pool.Exec(t.Context(), "UPDATE wanted SET due = $1", soon); err != nil {
		t.Fatal(err)
	}
	want(t, pool, with, id(1), soon)
	eventually(t, pool, 0, left)
	if time.Now().Before(soon) {
		t.Error("it was done before its time")
	}
}

// TestAJobScheduledByAWrongClock is done when a queue starts whose clock is right: the row is due earlier than its job says.
func TestAJobScheduledByAWrongClock(t *testing.T) {
	pool, with := database(t), inserter(t)
	want(t, pool, with, id(1), time.Now().Add(96*time.Hour))
	stop := run(t, queueOn(t, pool, "a"))
	eventually(t, pool, 1, pending+" AND scheduled_at > now() + interval '95 hours'")
	stop()
	if _, err := pool.Exec(t.Context(), "UPDATE wanted SET due = now()"); err != nil {
		t.Fatal(err)
	}
	run(t, queueOn(t, pool, "b"))
	eventually(t, pool, 0, left)
}

// TestAJobFromBeforeTheClockWasSetBack is done while a queue runs: it was scheduled five seconds later, and then Postgres's clock
// was set back by days. A job that is early is not done, but scheduled again.
func TestAJobFromBeforeTheClockWasSetBack(t *testing.T) {
	pool, with := database(t), inserter(t)
	run(t, queueOn(t, pool, "a"))
	want(t, pool, with, id(1), time.Now().Add(96*time.Hour))
	want(t, pool, with, id(2), time.Now().Add(96*time.Hour))
	eventually(t, pool, 2, pending+" AND scheduled_at > now() + interval '95 hours'")
	if _, err := pool.Exec(t.Context(), "UPDATE wanted SET due = now() WHERE webhook = $1", id(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "UPDATE perpetua_jobs.river_job SET created_at = scheduled_at - interval '5 seconds' WHERE scheduled_at > now()"); err != nil {
		t.Fatal(err)
	}
	eventually(t, pool, 1, left)
	eventually(t, pool, 1, pending+" AND scheduled_at > now() + interval '95 hours' AND created_at < now() + interval '1 hour'")
}

// TestMissingJobs: rows without jobs get them, when a queue starts and while it runs.
func TestMissingJobs(t *testing.T) {
	pool := database(t)
	want(t, pool, nil, id(1), time.Now())
	want(t, pool, nil, id(2), time.Now())
	run(t, queueOn(t, pool, "a"))
	eventually(t, pool, 0, left)
	want(t, pool, nil, id(3), time.Now())
	eventually(t, pool, 0, left)
}

// TestAFailedJobComesAgain, and is not made twice meanwhile.
func TestAFailedJobComesAgain(t *testing.T) {
	pool, with := database(t), inserter(t)
	q := queueOn(t, pool, "a")
	good, tries := q.Work, 0
	q.Work = func(ctx context.Context, j *jobs.Job) error {
		if tries++; tries < 3 {
			return errors.New("something is away")
		}
		return good(ctx, j)
	}
	run(t, q)
	want(t, pool, with, id(1), time.Now())
	want(t, pool, with, id(1), time.Now())
	eventually(t, pool, 0, left)
}

// TestAnotherTakesOver what a process had that died: of which Postgres sees that its connections end.
func TestAnotherTakesOver(t *testing.T) {
	pool, with := database(t), inserter(t)
	dying := queueOn(t, pool, "dying")
	begun, release := make(chan struct{}), make(chan struct{})
	rested := make(chan string, 1)
	dying.Work = func(ctx context.Context, j *jobs.Job) error {
		close(begun)
		<-release
		mine, err := j.Rest(context.WithoutCancel(ctx), false)
		rested <- fmt.Sprint(mine, err)
		return nil
	}
	stop := run(t, dying)
	want(t, pool, with, id(1), time.Now())
	<-begun
	// Its lock goes, as at its death, and it does not come back to make another: that takes the end of its job.
	if _, err := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); err != nil {
		t.Fatal(err)
	}
	run(t, queueOn(t, pool, "living"))
	eventually(t, pool, 0, left)
	close(release)
	if got := <-rested; got != "true <nil>" {
		t.Errorf("who was taken for dead ended the job again: %s", got)
	}
	stop()
}

// TestNobodyLeads: no process takes a job from another that lives, however long that has had it, and none has to resign before it
// ends. What an elected leader of River's would see to is seen to all the same.
func TestNobodyLeads(t *testing.T) {
	pool, with := database(t), inserter(t)
	q := queueOn(t, pool, "a")
	begun, release := make(chan struct{}, 10), make(chan struct{})
	good := q.Work
	q.Work = func(ctx context.Context, j *jobs.Job) error {
		begun <- struct{}{}
		<-release
		return good(ctx, j)
	}
	run(t, q)
	want(t, pool, with, id(1), time.Now())
	<-begun
	for _, sql := range []string{
		"UPDATE perpetua_jobs.river_job SET attempted_at = now() - interval '1 day' WHERE state = 'running'",
		`INSERT INTO perpetua_jobs.river_job (state, args, kind, max_attempts, queue, finalized_at)
			VALUES ('completed', '{}', 'webhook', 1, 'webhooks', now() - interval '2 minutes')`,
		`INSERT INTO perpetua_jobs.river_job (state, args, kind, max_attempts, queue, scheduled_at)
			VALUES ('retryable', '{"webhook_id": "02000000-0000-0000-0000-000000000000"}', 'webhook', 5, 'webhooks', now() - interval '1 second')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run(t, queueOn(t, pool, "b"))
	eventually(t, pool, 0, "SELECT count(*) FROM perpetua_jobs.river_job WHERE finalized_at < now() - interval '1 minute'")
	eventually(t, pool, 0, "SELECT count(*) FROM perpetua_jobs.river_job WHERE state = 'retryable'")
	eventually(t, pool, 0, "SELECT count(*) FROM perpetua_jobs.river_leader")
	eventually(t, pool, 1, "SELECT count(*) FROM perpetua_jobs.river_job WHERE state = 'running' AND attempted_at < now() - interval '1 hour'")
	close(release)
	eventually(t, pool, 0, left)
	if len(begun) > 1 { // beside the one that was left over
		t.Errorf("the job ran %d times", 1+len(begun))
	}
}
