package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// Runner applies one journal partition to the rows of a set of projections.
//
// Any number of runners may run for the same partition. The runner with the partition's advisory lock in its session
// applies entries. The others stand by: they follow the checkpoint and become active when that session ends. The lock
// only saves work. If two runners apply at the same time, the checkpoint's compare-and-set accepts one of them and the
// other stands by again.
//
// A batch that fails is retried until it succeeds and never skipped. The retries use smaller batches, so that the error
// message finally names the failing record. While Postgres is down, the runner backs off. Only an error of the log ends
// a runner; then nothing was written since the last batch.
type Runner struct {
	pool        *pgxpool.Pool
	log         Log
	name        string
	partition   int32
	projections []Projection
	logger      *slog.Logger
	metrics     runnerMetrics
	tracer      *trace.Tracer // nil: no tracing
	along       Along         // nil: none

	mu     sync.Mutex
	at     Checkpoint
	active bool
	err    error
	failed error         // the error of the last attempt; nil after the next successful one
	moved  chan struct{} // closed and replaced when at or err changes
	wanted chan struct{} // receives a value when a caller waits for an entry that is not applied yet
}

// NewRunner returns a runner that applies the projections, in the given order, to partition 0 of the rules' journal. The
// database must be migrated before Run is called.
func NewRunner(pool *pgxpool.Pool, client *journal.Client, rules decide.Rules, projections ...Projection) *Runner {
	return Config{Pool: pool, Log: partitionLog{client, rules, 0}, Journal: rules.Journal(), Logger: client.Logger(),
		Tracer: client.Tracer()}.Runner(projections...)
}

// Config configures a runner for a partition or a log other than NewRunner's.
type Config struct {
	Pool      *pgxpool.Pool
	Log       Log // NewLog returns the log of a partition
	Journal   string
	Partition int32
	Logger    *slog.Logger  // nil: no logging
	Tracer    *trace.Tracer // nil: no tracing
}

// Runner returns a runner that applies the projections in the given order.
func (c Config) Runner(projections ...Projection) *Runner {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runner{pool: c.Pool, log: c.Log, name: c.Journal, partition: c.Partition, projections: projections,
		logger: c.Logger, tracer: c.Tracer, moved: make(chan struct{}), wanted: make(chan struct{}, 1)}
	r.at = Checkpoint{Journal: c.Journal, Partition: c.Partition, Position: record.Before}
	r.metrics = newRunnerMetrics(r)
	return r
}

// The back-off between attempts and the timeouts of a session.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
	pollEvery  = 40 * time.Millisecond
	answers    = 10 * time.Second // the limit for an answer of Postgres to a runner that is idle or stands by
	longest    = 2 * time.Minute  // the limit for a transaction; after it the connection is considered dead
)

// Run applies entries until the context ends or the log is damaged. It returns the error of either.
func (r *Runner) Run(ctx context.Context) error {
	pause, limit := firstPause, maxBatch
	for {
		applied, err := r.session(ctx, &limit, math.MaxInt64)
		switch {
		case ctx.Err() != nil:
			err = fmt.Errorf("projections: the runner of %s/%d: %w", r.name, r.partition, context.Cause(ctx))
			r.publish(func() { r.err = err })
			return err
		case record.Final(err):
			r.logger.Error("projections: the log is at fault, nothing was touched", "journal", r.name, "partition", r.partition, "error", err)
			r.publish(func() { r.err = err })
			return err
		case errors.Is(err, errMoved):
			r.logger.Info("projections: another runner applies, standing by", "journal", r.name, "partition", r.partition)
			pause = firstPause // not an error
		default:
			r.metrics.failures.Inc()
			r.publish(func() { r.failed = err })
			r.logger.Warn("projections: trying again", "journal", r.name, "partition", r.partition, "in", pause, "error", err)
		}
		if applied {
			pause = firstPause
		}
		if !sleep(ctx, pause) {
			continue
		}
		pause = min(2*pause, lastPause)
	}
}

// Replay applies entries at least up to a sequence. It returns errors instead of retrying. It is for rows in a separate
// schema. The log should be a Bounded one.
func (r *Runner) Replay(ctx context.Context, sequence int64) error {
	limit := maxBatch
	_, err := r.session(ctx, &limit, sequence)
	return err
}

// session opens one connection, waits for the partition's lock and applies entries until an error occurs or the rows
// have reached the sequence last. The lock and all other state of an attempt end with the connection. applied reports
// whether any entries were applied.
func (r *Runner) session(ctx context.Context, limit *int, last int64) (applied bool, err error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return false, err
	}
	defer disconnect(ctx, conn)
	at, err := r.lock(ctx, conn)
	if err != nil {
		return false, err
	}
	defer r.publish(func() { r.active = false }) // before the connection ends: then another runner may be active
	// From here on, this session owns the rows as long as its connection lasts. The server may already have ended the
	// session (a crash, a network failure), and another runner may be active. So the code below does not rely on the
	// lock. It relies on the checkpoint: each transaction finds it where the previous one left it, or fails.
	reading, stop := context.WithCancel(ctx)
	entries, wait := startFeed(reading, r.log.From(at))
	defer wait()
	defer stop()
	work := &work{entries: entries, ready: r.prepare, idle: func() error { return alive(ctx, conn) }}
	defer work.wait()
	for at.Sequence < last {
		next, err := work.next(ctx, *limit, r.wanted)
		if err != nil {
			return applied, err
		}
		if at, err = r.apply(ctx, conn, at, next); err != nil {
			// Prepared work is lost with the session. The next session reads the checkpoint again and starts there, so
			// it does not matter whether a COMMIT without an answer took effect.
			if refusedStatement(err) {
				*limit = max(1, len(next.entries)/2) // until the batch is the failing record alone, which the message then names
			}
			return applied, err
		}
		applied, *limit = true, min(2**limit, maxBatch)
	}
	return applied, nil
}

// connect takes a connection out of the pool permanently. It is closed when the session ends.
func (r *Runner) connect(ctx context.Context) (*pgx.Conn, error) {
	acquired, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to Postgres: %w", err)
	}
	conn := acquired.Hijack()
	// The few statements are planned once. The settings make each plan use an index, even if a table was small when the
	// statement was planned.
	if _, err := conn.Exec(ctx, `SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;
		SET enable_hashjoin = off; SET enable_mergejoin = off`); err != nil {
		disconnect(ctx, conn)
		return nil, fmt.Errorf("setting up the session: %w", err)
	}
	return conn, nil
}

func disconnect(ctx context.Context, conn *pgx.Conn) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(closing) // the connection may be broken already
}

// alive checks that the server answers. After a crash, the last transactions may be lost, and a runner that waits for
// the next record would not notice.
func alive(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	if err := conn.Ping(ctx); err != nil {
		return fmt.Errorf("while there was nothing to apply: %w", err)
	}
	return nil
}

// lock waits until this session holds the partition's lock and returns the position of the rows. While it waits, it
// publishes the checkpoint.
func (r *Runner) lock(ctx context.Context, conn *pgx.Conn) (record.Position, error) {
	for {
		locked, c, err := r.tryLock(ctx, conn)
		if err != nil {
			return record.Before, err
		}
		// The position may decrease: a crash of Postgres may have lost transactions that a runner has published. Callers
		// of Wait then wait again. While another runner has the lock, the last error of this one says nothing about the rows.
		r.publish(func() {
			if r.at, r.active = c, locked; !locked {
				r.failed = nil
			}
		})
		if locked {
			return c.Position, nil
		}
		if !sleep(ctx, pollEvery) {
			return record.Before, ctx.Err()
		}
	}
}

// tryLock tries to get the lock and then reads the checkpoint. The order matters: the previous holder may commit until
// its session ends and the lock is free. A checkpoint that was read before the lock could be outdated, and the first
// transaction would fail.
func (r *Runner) tryLock(ctx context.Context, conn *pgx.Conn) (locked bool, c Checkpoint, err error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	// The lock belongs to the session and is released when the connection ends for any reason. The key includes the
	// schema, so that a rebuild in another schema can run at the same time.
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended(
		format('perpetua projections %s %s/%s', current_schema(), $1::text, $2::integer), 0))`, r.name, r.partition).Scan(&locked)
	if err != nil {
		return false, c, fmt.Errorf("asking for the runner's lock: %w", err)
	}
	c, err = ReadCheckpoint(ctx, conn, r.name, r.partition)
	return locked, c, err
}

// prepare converts entries to the writes of their transaction.
func (r *Runner) prepare(p *prepared) {
	p.batch.reset()
	for _, family := range r.projections {
		p.batch.family = family.Name()
		family.Project(p.entries, &p.batch)
	}
}

// traced starts the trace of a transaction, or returns nil if tracing is off.
func (r *Runner) traced(entries []record.Entry) *trace.Batch {
	if r.tracer == nil {
		return nil
	}
	b := r.tracer.StartBatch("project " + r.name)
	for _, e := range entries {
		b.Add(trace.RecordOf(r.name, e))
	}
	return b
}

// apply brings the rows from the position old to the position of the last entry, in one transaction.
func (r *Runner) apply(ctx context.Context, conn *pgx.Conn, old record.Position, p *prepared) (record.Position, error) {
	first, last := p.entries[0], p.entries[len(p.entries)-1]
	if first.Position.Sequence != old.Sequence+1 {
		return old, fmt.Errorf("the reader went from sequence %d to %d", old.Sequence, first.Position.Sequence)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	traced := r.traced(p.entries)
	err := r.commit(ctx, conn, old, p)
	traced.End(err)
	if err != nil {
		return old, fmt.Errorf("applying sequences %d to %d: %w", first.Position.Sequence, last.Position.Sequence, err)
	}
	// Publish after the commit: a waiting reader reads immediately and must find the rows, and the metrics of their transaction.
	c := Checkpoint{Journal: r.name, Partition: r.partition, Position: last.Position, Time: last.Record.Time}
	r.metrics.applied(len(p.entries), time.Since(start))
	r.publish(func() { r.at, r.failed = c, nil })
	return last.Position, nil
}

// commit runs the transaction. If a step fails, the caller closes the connection, which rolls the transaction back.
//
// The checkpoint is written first. A second runner with the same entries waits at its row until this transaction ends.
// It then finds that the checkpoint has moved, before it has written anything. A crash before the COMMIT leaves nothing
// of the batch. A crash after it leaves the whole batch or, since commits do not wait for the disk, loses it together
// with other transactions of the last milliseconds. No state in between is possible, so a reader of the checkpoint can
// continue from it.
func (r *Runner) commit(ctx context.Context, conn *pgx.Conn, old record.Position, p *prepared) error {
	if err := moveCheckpoint(ctx, conn, r.name, r.partition, old, p.entries, &p.batch.before); err != nil {
		return err
	}
	if err := p.batch.copy(ctx, conn); err != nil {
		return err
	}
	if err := p.batch.run(ctx, conn); err != nil {
		return err
	}
	if r.along != nil {
		if err := r.along(ctx, runnerTx{conn}, p.entries); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}

// refusedStatement reports whether Postgres rejected a statement, rather than being down or busy.
func refusedStatement(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	for _, class := range []string{"08", "40", "53", "55", "57", "58"} { // connection, rollback, resources, state, operator, system
		if strings.HasPrefix(pg.Code, class) {
			return false
		}
	}
	return true
}

// publish changes the state that Position, Wait, Active and Err return, and wakes waiting callers.
func (r *Runner) publish(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, err := r.at.Position, r.err
	change()
	if !r.at.Position.Equal(before) || !errors.Is(r.err, err) {
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

// Wait returns when the rows contain the record with the sequence, applied by any runner. It returns the context's
// error, or the error that ended this runner.
func (r *Runner) Wait(ctx context.Context, sequence int64) error {
	for requested := false; ; {
		r.mu.Lock()
		at, err, moved := r.at.Position.Sequence, r.err, r.moved
		r.mu.Unlock()
		if at >= sequence {
			return nil
		}
		if err != nil {
			return err
		}
		if !requested { // only once: a caller that waits for a distant record must not shorten every transaction
			requested = true
			select {
			case r.wanted <- struct{}{}:
			default: // already signaled
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
	}
}

// Failing returns the error of the last attempt, which is being retried, or nil if it succeeded or another runner applies.
func (r *Runner) Failing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Position returns the position of the rows that this runner has seen last.
func (r *Runner) Position() record.Position { return r.Checkpoint().Position }

// Checkpoint returns that position with the journal and the time of the record.
func (r *Runner) Checkpoint() Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// Active reports whether this runner applies entries. Otherwise, it stands by.
func (r *Runner) Active() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active
}

// Err returns the error that ended the runner, or nil while it runs.
func (r *Runner) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
