package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// projectedOrders is the number of orders in the projected flow.
const projectedOrders = 40_000

// memoryLog is a projections.Log of decoded entries, because reading the log is not measured.
type memoryLog struct{ entries []record.Entry }

func (l memoryLog) From(at record.Position) projections.Reader {
	return &memoryReader{l.entries[at.Sequence+1:]}
}

func (l memoryLog) Tip(context.Context) (int64, error) { return int64(len(l.entries)), nil }

type memoryReader struct{ left []record.Entry }

func (r *memoryReader) Poll(ctx context.Context) ([]record.Entry, error) {
	if len(r.left) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	n := min(len(r.left), 1000)
	out := r.left[:n]
	r.left = r.left[n:]
	return out, nil
}

func (r *memoryReader) Close() {}

// measureProjection measures how fast the runner writes the rows of a flow, as in a rebuild, compared with COPY of the
// resulting rows into the same tables with the same indexes.
func measureProjection(ctx context.Context, b *bench) error {
	server, err := postgres.Start(ctx, postgres.Config{Dir: filepath.Join(b.dir, "projection-postgres"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer server.Close()
	entries, err := flow(projectedOrders)
	if err != nil {
		return err
	}
	p := &projected{server: server.AdminURL(), entries: entries}
	var ours, theirs spent
	if err := b.pair(Row{Measure: "projection of records, orders, trades and ledger", Unit: "rows/s", Against: "COPY of the same rows", Aim: atLeast(0.6)},
		func() (float64, error) { return p.project(ctx, &ours) }, func() (float64, error) { return p.copy(ctx, &theirs) }); err != nil {
		return err
	}
	b.rows[len(b.rows)-1].Note = fmt.Sprintf("processor time per row: %s, beside %s", &ours, &theirs)
	return nil
}

// spent is the processor time used for rows: by this process, which makes them, and by Postgres.
type spent struct {
	rows           int
	here, postgres time.Duration
}

// begin starts to measure a round. The returned function adds the time used for the round's rows.
func (s *spent) begin() (end func(rows int)) {
	here, _ := processorTimeOf(os.Getpid())
	postgres := processorTimeBelow(os.Getpid())
	return func(rows int) {
		after, _ := processorTimeOf(os.Getpid())
		s.rows += rows
		s.here += after - here
		s.postgres += processorTimeBelow(os.Getpid()) - postgres
	}
}

// String returns both parts.
func (s *spent) String() string {
	n := float64(max(1, s.rows))
	return fmt.Sprintf("%.1f µs and %.1f µs in Postgres", microseconds(s.here)/n, microseconds(s.postgres)/n)
}

// projected holds the data that both sides write.
type projected struct {
	server    string
	databases int
	entries   []record.Entry
	tables    map[string]rowsOf // contents after the first projection
}

type rowsOf struct {
	columns []string
	rows    [][]any
}

// database creates an empty database with the tables.
func (p *projected) database(ctx context.Context) (*pgxpool.Pool, error) {
	conn, err := pgx.Connect(ctx, p.server)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	p.databases++
	name := fmt.Sprintf("bench_%d", p.databases)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	u, err := url.Parse(p.server)
	if err != nil {
		return nil, err
	}
	u.Path = "/" + name
	pool, err := projections.Open(ctx, u.String())
	if err != nil {
		return nil, err
	}
	if _, err := projections.Migrate(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func (p *projected) project(ctx context.Context, used *spent) (rowsPerSecond float64, err error) {
	pool, err := p.database(ctx)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	runner := projections.Config{Pool: pool, Log: memoryLog{p.entries}, Journal: "trading"}.Runner(readmodels.Trading()...)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	end := used.begin()
	start := time.Now()
	go func() { ended <- runner.Run(running) }()
	err = runner.Wait(ctx, p.entries[len(p.entries)-1].Position.Sequence)
	took := time.Since(start)
	stop()
	if ending := <-ended; err == nil && !errors.Is(ending, context.Canceled) {
		err = ending
	}
	if err == nil && p.tables == nil {
		return 0, p.keep(ctx, pool) // the warm-up round
	}
	end(p.rows())
	return float64(p.rows()) / took.Seconds(), err
}

func (p *projected) rows() (n int) {
	for _, t := range p.tables {
		n += len(t.rows)
	}
	return n
}

// keep reads the rows that the projections wrote.
func (p *projected) keep(ctx context.Context, pool *pgxpool.Pool) error {
	p.tables = make(map[string]rowsOf)
	names := []string{"records"} // not a table of any projection
	for _, projection := range readmodels.Trading() {
		names = append(names, projection.Tables()...)
	}
	for _, name := range names {
		rows, err := pool.Query(ctx, "SELECT * FROM "+pgx.Identifier{name}.Sanitize())
		if err != nil {
			return err
		}
		var t rowsOf
		for _, f := range rows.FieldDescriptions() {
			t.columns = append(t.columns, f.Name)
		}
		if t.rows, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() }); err != nil {
			return err
		}
		p.tables[name] = t
	}
	return nil
}

func (p *projected) copy(ctx context.Context, used *spent) (rowsPerSecond float64, err error) {
	pool, err := p.database(ctx)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	end := used.begin()
	start := time.Now()
	for name, t := range p.tables {
		if _, err := pool.CopyFrom(ctx, pgx.Identifier{name}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	end(p.rows())
	return float64(p.rows()) / took.Seconds(), nil
}
