package projections_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// BenchmarkMerge merges tables of orders and of postings while a runner applies records. None of their rows differ, 5,000 of
// each, or all. It reports how long the comparison took, what the merge says of the longest time for which runners waited,
// and the longest time for which a session that takes the lock of a runner over and over had to wait.
func BenchmarkMerge(b *testing.B) {
	for _, size := range []int{500_000, 2_000_000} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			m := newMergeBench(b, size)
			b.Run("differ=0", func(b *testing.B) { m.run(b, "") })
			b.Run("differ=5000", func(b *testing.B) {
				m.run(b, fmt.Sprintf(`UPDATE orders SET average_fill_price = 1 WHERE created_sequence %% %d = 0;
					UPDATE venue_postings SET balance = 1 WHERE sequence %% %[1]d = 0`, size/5000))
			})
			if size == 500_000 {
				b.Run("differ=all", func(b *testing.B) {
					m.run(b, "UPDATE orders SET average_fill_price = 1; UPDATE venue_postings SET balance = 1")
				})
			}
		})
	}
}

// mergeBench is a database with live and new rows, a runner of the live ones, and a replay of the new ones.
type mergeBench struct {
	live    *pgxpool.Pool
	log     *projectiontest.Log
	entries []record.Entry // not yet in the log
	replay  func(ctx context.Context, live map[string]projections.Checkpoint) error
}

func newMergeBench(b *testing.B, size int) *mergeBench {
	b.Helper()
	const first = 1000 // entries in the log
	m := &mergeBench{entries: projectiontest.NewVenue(7).Entries(200_000)}
	url := projectiontest.MigratedURL(b)
	m.live = projectiontest.Open(b, url)
	beside, remove, err := projections.OpenScratch(b.Context(), url, "rebuilt")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(remove)
	fill := fmt.Sprintf(`INSERT INTO orders SELECT md5(i::text)::uuid, 'C' || i %% 1000, 'alpha', 'BTCUSDC_PERP', 'buy', 'limit',
			'filled', false, 1.5, 1.5, NULL, 97500.0, 65000.5, NULL, NULL, NULL, NULL, 65000.5, 'GTC', NULL, false, false,
			md5(i::text)::uuid::text, NULL, '2026-01-01', '2026-01-01', i, 0, i FROM generate_series(10000001, %d) i;
		INSERT INTO venue_postings SELECT i, 0, 'fees', 'trade_fee', 'USDC', 1.5, i, 'BTCUSDC_PERP', NULL, '2026-01-01'
			FROM generate_series(10000001, %[1]d) i`, 10_000_000+size)
	for _, pool := range []*pgxpool.Pool{m.live, beside} {
		if _, err := pool.Exec(b.Context(), fill); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := m.live.Exec(b.Context(), "VACUUM ANALYZE"); err != nil {
		b.Fatal(err)
	}
	m.log = projectiontest.NewLog(m.entries[:first]...)
	m.entries = m.entries[first:]
	r, stop := start(b, m.live, m.log)
	b.Cleanup(func() { _ = stop() })
	wait(b, r, first-1)
	bound := projections.NewBounded(m.log)
	second := projections.Config{Pool: beside, Log: bound, Journal: "trading"}.Runner(readmodels.Trading()...)
	m.replay = func(ctx context.Context, live map[string]projections.Checkpoint) error {
		bound.Raise(live["trading"].Position.Sequence)
		return second.Replay(ctx, live["trading"].Position.Sequence)
	}
	return m
}

func (m *mergeBench) run(b *testing.B, damage string) {
	ctx := b.Context()
	for b.Loop() {
		b.StopTimer()
		if _, err := m.live.Exec(ctx, damage); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		waited, stop := m.work(b)
		merge, err := projections.OpenMerge(ctx, m.live, "rebuilt", m.replay)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if _, err := merge.Compare(ctx); err != nil {
			b.Fatal(err)
		}
		compared := time.Since(start)
		at, err := projections.ReadCheckpoint(ctx, m.live, "trading", 0)
		if err == nil {
			err = m.replay(ctx, map[string]projections.Checkpoint{"trading": at})
		}
		if err != nil {
			b.Fatal(err)
		}
		done, err := merge.Apply(ctx)
		if err != nil {
			b.Fatal(err)
		}
		merge.Close()
		n := stop()
		b.ReportMetric(compared.Seconds(), "s-compare")
		b.ReportMetric(done.Blocked.Seconds(), "s-blocked")
		b.ReportMetric(time.Duration(waited.Load()).Seconds(), "s-waited")
		b.ReportMetric(float64(done.Rows), "rows")
		b.ReportMetric(float64(n), "records")
	}
}

// work adds records to the log, 1,000 a second, and takes the lock of a runner over and over. waited is the longest time that
// this took, in nanoseconds. stop ends both and returns how many records were added.
func (m *mergeBench) work(b *testing.B) (waited *atomic.Int64, stop func() int) {
	ctx, cancel := context.WithCancel(b.Context())
	waited, added, done := new(atomic.Int64), 0, make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				n := min(20, len(m.entries))
				m.log.Append(m.entries[:n]...)
				m.entries, added = m.entries[n:], added+n
			}
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		for ctx.Err() == nil {
			start := time.Now()
			_, err := m.live.Exec(ctx, "BEGIN; LOCK TABLE checkpoints IN ROW EXCLUSIVE MODE; COMMIT")
			if err != nil && ctx.Err() == nil {
				b.Error(err)
			}
			waited.Store(max(waited.Load(), int64(time.Since(start))))
		}
	}()
	return waited, func() int { cancel(); <-done; <-done; return added }
}
