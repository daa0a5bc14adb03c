package projections_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// mute is a database that does not answer before the context of a batch ends.
type mute struct {
	pgx.BatchResults
	ctx context.Context
}

func (mute) SendBatch(ctx context.Context, _ *pgx.Batch) pgx.BatchResults {
	return &mute{ctx: ctx}
}

func (s *mute) Close() error {
	<-s.ctx.Done()
	return s.ctx.Err()
}

// TestLimited: a batch that Postgres does not answer ends after half a minute, and earlier if its own context does.
func TestLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := projections.Limited(mute{}, 1).SendBatch(ctx, &pgx.Batch{}).Close()
		if took := time.Since(start); took != 30*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", took, err)
		}
		cancel()
		if err := projections.Limited(mute{}, 1).SendBatch(ctx, &pgx.Batch{}).Close(); !errors.Is(err, context.Canceled) {
			t.Errorf("of a canceled request: %v", err)
		}
	})
}

// held is a database whose batches run until they are closed. It gives none to a context that has ended, as a pool does.
type held struct{ running *int }

type heldBatch struct {
	pgx.BatchResults
	held
	runs bool
}

func (h held) SendBatch(ctx context.Context, _ *pgx.Batch) pgx.BatchResults {
	if ctx.Err() != nil {
		return heldBatch{held: h}
	}
	*h.running++
	return heldBatch{held: h, runs: true}
}

func (h heldBatch) Close() error {
	if h.runs {
		*h.running--
	}
	return nil
}

// TestLimitedLeavesConnections: no more batches run at once than the limit allows. One that waited in vain gives up no other's turn.
func TestLimitedLeavesConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0
		db := projections.Limited(held{&running}, 2)
		first, second := db.SendBatch(t.Context(), &pgx.Batch{}), db.SendBatch(t.Context(), &pgx.Batch{})
		inVain := db.SendBatch(t.Context(), &pgx.Batch{}) // waits for 30 seconds
		inVain.Close()
		var third pgx.BatchResults
		go func() { third = db.SendBatch(t.Context(), &pgx.Batch{}) }()
		synctest.Wait()
		if running != 2 || third != nil {
			t.Fatalf("%d batches run, want 2", running)
		}
		first.Close()
		synctest.Wait()
		if running != 2 || third == nil {
			t.Fatalf("%d batches run after one has ended, want 2", running)
		}
		second.Close()
		third.Close()
		if running != 0 {
			t.Errorf("%d batches run after all have ended", running)
		}
	})
}

// TestLimitedKeepsTheConnection: the end of the limit does not close the connection of a batch that was answered, and a batch that was
// ended leaves none in use.
func TestLimitedKeepsTheConnection(t *testing.T) {
	pool := projectiontest.Open(t, projectiontest.MigratedURL(t))
	read := func(ctx context.Context, sql string) (process int, err error) {
		_, err = projections.Read(ctx, projections.Limited(pool, 4), "trading", projections.Statement{SQL: sql, Collect: func(rows pgx.Rows) (err error) {
			process, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
			return err
		}})
		return process, err
	}
	const process = "SELECT pg_backend_pid()"
	first, err := read(t.Context(), process)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := read(t.Context(), process); err != nil || again != first {
		t.Errorf("the second read used the process %d and not %d: %v", again, first, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := read(ctx, "SELECT 1 FROM pg_sleep(3600)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read that took too long: %v", err)
	}
	for pool.Stat().AcquiredConns() > 0 { // the pool closes the connection in the background
		runtime.Gosched()
	}
}
