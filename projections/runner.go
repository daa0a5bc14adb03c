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

// Runner keeps the rows of a set of projections in step with one journal partition.
//
// Any number of runners may run for the same partition. The one whose session holds the partition's advisory lock
// applies entries; the others stand by, following the checkpoint, and take over when that session ends. The lock only
// saves work: should two ever apply at once, the checkpoint's compare-and-set lets one through and sends the other
// back to stand by.
//
// A batch that fails is tried again until it works, in smaller pieces so that the record at fault gets named, and
// never skipped. While Postgres is away the runner backs off and goes on later. Only a fault of the log itself ends
// it: then nothing was touched since the last batch.
type Runner struct {
	pool        *pgxpool.Pool
	log         Log
	name        string
	partition   int32
	projections []Projection
	logger      *slog.Logger
	metrics     runnerMetrics
	tracer      *trace.Tracer // nil for none
	along       Along         // nil for nothing

	mu     sync.Mutex
	at     Checkpoint
	active bool
	err    error
	failed error         // of the last attempt, until something is applied
	moved  chan struct{} // closed and replaced when at moves or err is set
	wanted chan struct{} // holds something once somebody waits for what is not applied yet
}

// NewRunner returns a runner that applies the projections, in their order, to partition 0 of the rules' journal. The
// database must have been migrated before Run.
func NewRunner(pool *pgxpool.Pool, client *journal.Client, rules decide.Rules, projections ...Projection) *Runner {
	return Config{Pool: pool, Log: partitionLog{client, rules, 0}, Journal: rules.Journal(), Logger: client.Logger(),
		Tracer: client.Tracer()}.Runner(projections...)
}

// Config is a runner's surroundings, for runners of other partitions and logs than NewRunner's.
type Config struct {
	Pool      *pgxpool.Pool
	Log       Log // NewLog for a partition of a journal
	Journal   string
	Partition int32
	Logger    *slog.Logger  // none if nil
	Tracer    *trace.Tracer // nothing is traced if nil
}

// Runner returns a runner that applies the projections in their order.
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

// Back-off between attempts, and how often a runner that stands by polls the checkpoint.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
	pollEvery  = 40 * time.Millisecond
	answers    = 10 * time.Second // within which Postgres answers a runner that has nothing to do
	longest    = 2 * time.Minute  // of a transaction; beyond that the connection is taken for dead
)

// Run applies entries until the context ends, whose error it then returns, or the log turns out to be at fault.
func (r *Runner) Run(ctx context.Context) error {
	pause, limit := firstPause, maxBatch
	for {
		applied, err := r.session(ctx, &limit, math.MaxInt64)
		r.publish(func() { r.active = false })
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
			pause = firstPause // nothing is wrong
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

// Replay applies entries up to a sequence, at least, and returns what fails instead of trying again. It is for rows that
// nobody waits for, beside the live ones; the log should be a Bounded one.
func (r *Runner) Replay(ctx context.Context, sequence int64) error {
	limit := maxBatch
	_, err := r.session(ctx, &limit, sequence)
	return err
}

// session takes one connection, waits for the partition's lock on it and applies entries through it until something
// fails or the rows have reached a sequence. Everything about an attempt ends with its connection, the lock included.
// It says whether it applied any.
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
	// From here on the rows belong to this session, as long as its connection lasts. The server may have ended that
	// already (a crash, a network that is gone), and another runner may be at work: nothing below relies on the lock, only
	// on the checkpoint, which each transaction finds where the last one left it, or fails.
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
			// What was prepared is lost with the session. The next one reads the checkpoint anew and starts there, so it
			// does not matter whether a COMMIT that got no answer took effect.
			if fault(err) {
				*limit = max(1, len(next.entries)/2) // until the record at fault is alone, and the message names it
			}
			return applied, err
		}
		applied, *limit = true, min(2**limit, maxBatch)
	}
	return applied, nil
}

// connect takes a connection out of the pool for good: it is closed when the session ends.
func (r *Runner) connect(ctx context.Context) (*pgx.Conn, error) {
	acquired, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to Postgres: %w", err)
	}
	conn := acquired.Hijack()
	// The statements are few and are planned once: each looks its rows up by an index, however small the tables were
	// when it was planned.
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
	_ = conn.Close(closing) // it may be broken, which is why it ends
}

// alive asks whether the server still answers. A crash may take the last transactions along, and nothing would tell a
// runner that waits for the next record that what it applied is gone.
func alive(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	if err := conn.Ping(ctx); err != nil {
		return fmt.Errorf("while there was nothing to apply: %w", err)
	}
	return nil
}

// lock waits until this session holds the partition's lock, following the checkpoint meanwhile, and returns where the
// rows stand once it does.
func (r *Runner) lock(ctx context.Context, conn *pgx.Conn) (record.Position, error) {
	for {
		locked, c, err := r.tryLock(ctx, conn)
		if err != nil {
			return record.Before, err
		}
		// This may go back: Postgres may have crashed since, and lost what a runner published. Those who wait for it wait
		// again.
		r.publish(func() { r.at, r.active = c, locked })
		if locked {
			return c.Position, nil
		}
		if !sleep(ctx, pollEvery) {
			return record.Before, ctx.Err()
		}
	}
}

// tryLock tries to get the lock and then reads the checkpoint. In that order: the session that had the lock before may
// commit until it ends, and only then is the lock free. A checkpoint from before that would be one too old, and the
// first transaction in vain.
func (r *Runner) tryLock(ctx context.Context, conn *pgx.Conn) (locked bool, c Checkpoint, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	// The lock is the session's: it ends with the connection, however that ends, and needs nobody to give it up. The
	// schema is part of the key, so that a rebuild in another schema may run beside.
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended(
		format('perpetua projections %s %s/%s', current_schema(), $1::text, $2::integer), 0))`, r.name, r.partition).Scan(&locked)
	if err != nil {
		return false, c, fmt.Errorf("asking for the runner's lock: %w", err)
	}
	c, err = ReadCheckpoint(ctx, conn, r.name, r.partition)
	return locked, c, err
}

// prepare turns entries into what their transaction writes.
func (r *Runner) prepare(p *prepared) {
	p.batch.reset()
	for _, family := range r.projections {
		p.batch.family = family.Name()
		family.Project(p.entries, &p.batch)
	}
}

// traced begins to tell of the transaction that applies entries; nil if nothing is traced.
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

// apply brings the rows from the position old to that of the last entry, in one transaction.
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
	// Only now: who is woken by this reads at once, and must find the rows.
	c := Checkpoint{Journal: r.name, Partition: r.partition, Position: last.Position, Time: last.Record.Time}
	r.publish(func() { r.at, r.failed = c, nil })
	r.metrics.applied(len(p.entries), time.Since(start))
	return last.Position, nil
}

// commit runs the transaction. Where it fails, it is the end of the connection that rolls it back.
//
// The checkpoint comes first. A second runner at work on the same entries waits at its row until this transaction ends,
// and then finds it moved, before it has written anything. A crash before the COMMIT leaves nothing of the batch; one
// after it, all of it or, since commits are not waited for on disk, nothing of it and of what came before it for some
// milliseconds. There is no state in between, so whoever reads a checkpoint can go on from there.
func (r *Runner) commit(ctx context.Context, conn *pgx.Conn, old record.Position, p *prepared) error {
	if err := moveCheckpoint(ctx, conn, r.name, r.partition, old, p.entries); err != nil {
		return err
	}
	if err := p.batch.copy(ctx, conn); err != nil {
		return err
	}
	if err := p.batch.run(ctx, conn); err != nil {
		return err
	}
	if r.along != nil {
		if err := r.along(ctx, inside{conn}, p.entries); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}

// fault reports whether Postgres refused the statements themselves, in contrast to being away or busy.
func fault(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	for _, class := range []string{"08", "40", "53", "55", "57", "58"} { // connection, rollback, resources, state, intervention, system
		if strings.HasPrefix(pg.Code, class) {
			return false
		}
	}
	return true
}

// publish changes what Position, Wait, Active and Err show.
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

// Wait returns once the rows hold the record with the sequence, whichever runner applied it, or with the context's
// error, or with the error that ended this runner.
func (r *Runner) Wait(ctx context.Context, sequence int64) error {
	for asked := false; ; {
		r.mu.Lock()
		at, err, moved := r.at.Position.Sequence, r.err, r.moved
		r.mu.Unlock()
		if at >= sequence {
			return nil
		}
		if err != nil {
			return err
		}
		if !asked { // once: who waits for what is far away shall not have every transaction hurry
			asked = true
			select {
			case r.wanted <- struct{}{}:
			default: // it is known already
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
	}
}

// Failing returns why the last attempt to apply something failed, which is tried again; nil once one has worked.
func (r *Runner) Failing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Position returns where the rows stand, as far as this runner knows.
func (r *Runner) Position() record.Position { return r.Checkpoint().Position }

// Checkpoint returns the position with its journal and the time of its record.
func (r *Runner) Checkpoint() Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// Active reports whether this runner applies, or else stands by.
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

// sleep waits for d; false means that ctx ended first.
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
