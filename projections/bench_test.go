package projections_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

const benchEntries = 40_000

// BenchmarkRunner projects a log that is in memory, from an empty database to its end: what a rebuild costs beside
// reading the log.
func BenchmarkRunner(b *testing.B) {
	entries := projectiontest.NewVenue(1).Entries(benchEntries)
	var rows int64
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		pool := projectiontest.Database(b)
		b.StartTimer()
		r, stop := start(b, pool, projectiontest.NewLog(entries...))
		wait(b, r, benchEntries-1)
		b.StopTimer()
		stop()
		rows = count(b, pool)
		pool.Close()
		b.StartTimer()
	}
	perSecond := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(float64(benchEntries)*perSecond, "records/s")
	b.ReportMetric(float64(rows)*perSecond, "rows/s")
}

// BenchmarkCopy writes the same final rows with COPY into tables with the same indexes: the limit that Postgres itself
// sets to the runner, which also has to change rows that it wrote before.
func BenchmarkCopy(b *testing.B) {
	source := project(b, projectiontest.NewVenue(1).Entries(benchEntries), 0)
	tables := make(map[string][][]any)
	columns := make(map[string][]string)
	for name := range digests(b, source) {
		rows, err := source.Query(b.Context(), "SELECT * FROM "+pgx.Identifier{name}.Sanitize())
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range rows.FieldDescriptions() {
			columns[name] = append(columns[name], f.Name)
		}
		if tables[name], err = pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() }); err != nil {
			b.Fatal(err)
		}
	}
	var rows int64
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		pool := projectiontest.Database(b)
		b.StartTimer()
		for name, values := range tables {
			if _, err := pool.CopyFrom(b.Context(), pgx.Identifier{name}, columns[name], pgx.CopyFromRows(values)); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		rows = count(b, pool)
		pool.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func count(b *testing.B, pool *pgxpool.Pool) (rows int64) {
	for _, d := range digests(b, pool) {
		rows += d.Rows
	}
	return rows
}

// BenchmarkLatency is the time from an entry's appearance in the log to its row being there for readers.
func BenchmarkLatency(b *testing.B) {
	v, pool := projectiontest.NewVenue(1), projectiontest.Database(b)
	log := projectiontest.NewLog(v.Entries(100)...)
	r, _ := start(b, pool, log)
	wait(b, r, 99)
	next := v.Entries(b.N)
	b.ResetTimer()
	for i := range next {
		log.Append(next[i])
		if err := r.Wait(context.Background(), next[i].Position.Sequence); err != nil {
			b.Fatal(err)
		}
	}
}
