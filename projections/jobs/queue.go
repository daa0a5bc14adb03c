package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Due returns when a webhook must be visited next, according to the rows in the transaction. open is false if nothing of
// it is open.
type Due func(ctx context.Context, tx pgx.Tx, webhook scalar.ID) (at time.Time, open bool, err error)

// Open returns the webhooks with open deliveries, according to the rows in the transaction.
type Open func(ctx context.Context, tx pgx.Tx) ([]scalar.ID, error)

// Queue runs the jobs of this process. The jobs of a dead process pass to the others within seconds.
type Queue struct {
	Pool *pgxpool.Pool
	// Node identifies the process in River's tables, for people.
	Node string
	Due  Due
	Open Open
	// Work visits a webhook and ends with the job's Rest. A job that fails is retried a little later.
	Work   func(ctx context.Context, j *Job) error
	Logger *slog.Logger
}

const (
	// atOnce is the greatest number of webhooks that a process visits concurrently. A visit costs little while it waits
	// for the receiver.
	atOnce = 1000
	// River looks for jobs at most once in cooldown after notifications, and every poll without them.
	cooldown = 20 * time.Millisecond
	poll     = 300 * time.Millisecond
	// completedFor is how long finished jobs are kept. Nothing reads them.
	completedFor = time.Minute
	// lookEvery is the interval of the checks for missing jobs and dead processes.
	lookEvery = 2 * time.Second
	// again is the time before a failed job is retried, and the pause of a queue that could not start.
	again = time.Second
	// patience is how long a stop waits for running jobs.
	patience = 8 * time.Second
)

// Job is one visit to a webhook.
type Job struct {
	Webhook scalar.ID
	job     *river.Job[args]
	queue   *Queue
	insert  *Inserter
	client  string
}

// Rest ends the job, unless deliveries of the webhook are due: then it returns false, and the job must continue. If
// deliveries are due later, Rest schedules another job. With yield the job ends in any case, and the next job follows
// immediately.
func (j *Job) Rest(ctx context.Context, yield bool) (rested bool, err error) {
	err = pgx.BeginFunc(ctx, j.queue.Pool, func(tx pgx.Tx) error {
		// Lock the job first, then read the rows. A transaction that writes rows inserts the job after them. If it has
		// reached the job already, this transaction waits here until the rows are visible. Otherwise, it waits for this
		// transaction, finds the job finished, and inserts another.
		var by string
		err := tx.QueryRow(ctx, `SELECT attempted_by[cardinality(attempted_by)] FROM `+table+` WHERE id = $1 AND state = 'running' FOR UPDATE`,
			j.job.ID).Scan(&by)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && by != j.client {
			rested = true // another process considered this one dead and has the job now
			return nil
		}
		if err != nil {
			return err
		}
		at, open, err := j.queue.Due(ctx, tx, j.Webhook)
		if err != nil || open && !yield && !at.After(time.Now()) {
			return err
		}
		if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j.job); err != nil {
			return err
		}
		rested = true
		if !open {
			return nil
		}
		_, err = j.insert.insert(ctx, tx, []scalar.ID{j.Webhook}, at)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("jobs: ending one: %w", err)
	}
	return rested, nil
}

// worker implements river.Worker.
type worker struct {
	river.WorkerDefaults[args]
	queue  *Queue
	insert *Inserter
	client string
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, j *river.Job[args]) error {
	return w.queue.Work(ctx, &Job{Webhook: j.Args.Webhook, job: j, queue: w.queue, insert: w.insert, client: w.client})
}

// NextRetry implements river.Worker.
func (w *worker) NextRetry(*river.Job[args]) time.Time { return time.Now().Add(again) }

// Timeout implements river.Worker. Jobs have no timeout.
func (w *worker) Timeout(*river.Job[args]) time.Duration { return -1 }

// Run runs jobs until the context ends, and then waits for running ones. While Postgres is down, it retries.
func (q *Queue) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := q.serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		q.Logger.Warn("the jobs of webhooks: trying again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
	return nil
}

// serve runs jobs until the context ends or the life connection fails.
func (q *Queue) serve(ctx context.Context) error {
	insert, err := NewInserter()
	if err != nil {
		return err
	}
	// Each attempt has a new name, so that jobs of an earlier attempt count as jobs of a dead process.
	name := q.Node + "/" + record.NewCommandID(time.Now()).String()
	life, err := q.live(ctx, name)
	if err != nil {
		return err
	}
	defer life.close()
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{queue: q, insert: insert, client: name}); err != nil {
		return err
	}
	c, err := river.NewClient(riverpgxv5.New(q.Pool), &river.Config{ID: name, Schema: Schema, Workers: workers, Logger: q.Logger,
		Queues: map[string]river.QueueConfig{queue: {MaxWorkers: atOnce}}, FetchCooldown: cooldown, FetchPollInterval: poll,
		JobTimeout: -1, SoftStopTimeout: patience,
		// River's elected leader would rescue jobs that run for a long time; takeBack detects dead processes more
		// precisely. A leader also delays its own stop by seconds if Postgres is down. tidy performs its other duties.
		LeaderElectionDisabled: true})
	if err != nil {
		return err
	}
	if err := q.bringForward(ctx, all); err != nil {
		return err
	}
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	err = q.look(ctx, life, insert)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience+patience/2)
	defer cancel()
	if stopped := c.Stop(stopping); err == nil {
		err = stopped
	}
	return err
}

// These conditions select waiting jobs.
const (
	all        = "true"
	fromFuture = "created_at > now()" // inserted before Postgres's clock was set back
)

// bringForward makes the waiting jobs of a condition available. They were scheduled by a clock that may have been wrong; a
// job that is early schedules another.
func (q *Queue) bringForward(ctx context.Context, which string) error {
	_, err := q.Pool.Exec(ctx, `UPDATE `+table+` SET state = 'available', scheduled_at = now()
		WHERE queue = $1 AND state IN ('available', 'scheduled', 'retryable') AND scheduled_at > now() AND `+which, queue)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("jobs: bringing waiting ones forward: %w", err)
	}
	return nil
}

// look periodically inserts missing jobs, frees the jobs of dead processes, and brings forward the jobs from before
// Postgres's clock was set back, until the context ends.
func (q *Queue) look(ctx context.Context, l *life, insert *Inserter) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := l.takeBack(ctx); err != nil {
			return err
		}
		if err := q.fill(ctx, insert); err != nil {
			return err
		}
		if err := q.tidy(ctx); err != nil {
			return err
		}
		if err := q.bringForward(ctx, fromFuture); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tidy deletes old finished jobs, and makes scheduled jobs available at their time. Older builds, which had a leader,
// may have left such jobs.
func (q *Queue) tidy(ctx context.Context) error {
	_, err := q.Pool.Exec(ctx, `WITH gone AS (DELETE FROM `+table+` WHERE queue = $1 AND state IN ('completed', 'discarded', 'cancelled')
			AND finalized_at < now() - make_interval(secs => $2))
		UPDATE `+table+` SET state = 'available' WHERE queue = $1 AND state IN ('scheduled', 'retryable') AND scheduled_at <= now()`,
		queue, completedFor.Seconds())
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("jobs: forgetting those that are over: %w", err)
	}
	return nil
}

// fill inserts missing jobs: after a rebuild, or if River's tables were emptied.
func (q *Queue) fill(ctx context.Context, insert *Inserter) error {
	err := pgx.BeginFunc(ctx, q.Pool, func(tx pgx.Tx) error {
		open, err := q.Open(ctx, tx)
		if err != nil || len(open) == 0 {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT w.id FROM unnest($1::uuid[]) AS w (id) WHERE NOT EXISTS (SELECT FROM `+table+` j
			WHERE j.args @> jsonb_build_object('webhook_id', w.id) AND j.state IN ('available', 'pending', 'running', 'retryable', 'scheduled'))
			ORDER BY 1`, open)
		if err != nil {
			return err
		}
		missing, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (id scalar.ID, err error) {
			err = r.Scan((*[16]byte)(&id))
			return id, err
		})
		if err != nil || len(missing) == 0 {
			return err
		}
		_, err = insert.insert(ctx, tx, missing, time.Time{})
		return err
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("jobs: making those that are missing: %w", err)
	}
	return nil
}
