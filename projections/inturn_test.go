package projections_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// sleepy is a database that takes its time for a statement or a transaction, and notes the times at which they begin.
type sleepy struct {
	pgx.Rows
	pgx.Tx
	takes  time.Duration
	start  time.Time
	begins chan time.Duration
}

func (s *sleepy) began() { s.begins <- time.Since(s.start) }

func (s *sleepy) Exec(context.Context, string, ...any) (tag pgconn.CommandTag, err error) {
	s.began()
	time.Sleep(s.takes)
	return tag, nil
}

func (s *sleepy) Query(context.Context, string, ...any) (pgx.Rows, error) { s.began(); return s, nil }
func (s *sleepy) QueryRow(context.Context, string, ...any) pgx.Row        { s.began(); return s }
func (s *sleepy) Begin(context.Context) (pgx.Tx, error)                   { s.began(); return s, nil }
func (s *sleepy) Close()                                                  { time.Sleep(s.takes) }
func (s *sleepy) Scan(...any) error                                       { time.Sleep(s.takes); return nil }
func (s *sleepy) Commit(context.Context) error                            { time.Sleep(s.takes); return nil }
func (s *sleepy) Rollback(context.Context) error                          { return pgx.ErrTxClosed }
func (s *sleepy) Conn() *pgx.Conn                                         { return nil }

// TestInTurn: two statements run at a time. Those that wait for a slow one run after a quarter of a second.
func TestInTurn(t *testing.T) {
	ms := time.Millisecond
	for name, run := range map[string]func(ctx context.Context, db projections.Executor){
		"Exec": func(ctx context.Context, db projections.Executor) { _, _ = db.Exec(ctx, "") },
		"Query": func(ctx context.Context, db projections.Executor) {
			rows, _ := db.Query(ctx, "")
			rows.Close()
		},
		"QueryRow": func(ctx context.Context, db projections.Executor) { _ = db.QueryRow(ctx, "").Scan() },
		"transaction": func(ctx context.Context, db projections.Executor) {
			_ = pgx.BeginFunc(ctx, db, func(pgx.Tx) error { return nil })
		},
	} {
		for _, c := range []struct {
			takes time.Duration
			want  []time.Duration
		}{
			{100 * ms, []time.Duration{0, 0, 100 * ms, 100 * ms, 200 * ms, 200 * ms}},
			{time.Hour, []time.Duration{0, 0, 250 * ms, 250 * ms, 250 * ms, 250 * ms}},
		} {
			synctest.Test(t, func(t *testing.T) {
				s := &sleepy{takes: c.takes, start: time.Now(), begins: make(chan time.Duration, len(c.want))}
				db := projections.InTurn(s, 2)
				var running sync.WaitGroup
				defer running.Wait()
				for range c.want {
					running.Go(func() { run(t.Context(), db) })
				}
				var got []time.Duration
				for range c.want {
					got = append(got, <-s.begins)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%s of %v: began after %v, want %v", name, c.takes, got, c.want)
				}
			})
		}
	}
}

// TestInTurnGivesUp: a statement whose context ends does not wait.
func TestInTurnGivesUp(t *testing.T) {
	pool := projectiontest.Open(t, projectiontest.URL(t))
	db := projections.InTurn(pool, 1)
	rows, err := db.Query(t.Context(), "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.QueryRow(ended, "SELECT 1").Scan(new(int)); err == nil {
		t.Error("a canceled query has run")
	}
	rows.Close()
	if err := db.QueryRow(t.Context(), "SELECT 1").Scan(new(int)); err != nil {
		t.Error(err)
	}
	if opened := pool.Stat().TotalConns(); opened > 1 {
		t.Errorf("%d connections are open", opened)
	}
}
