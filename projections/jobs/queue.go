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

// Due says when a registration has to be looked at next, as the rows stand in the transaction: false if not at all.
type Due func(ctx context.Context, tx pgx.Tx, webhook scalar.ID) (at time.Time, open bool, err error)

// Open returns the registrations that have something open, as the rows stand.
type Open func(ctx context.Context, tx pgx.Tx) ([]scalar.ID, error)

// Queue hands jobs out to this process. Those of a process that has died go to the others within seconds.
type Queue struct {
	Pool *pgxpool.Pool
	// Node names the process in River's tables, for people.
	Node string
	Due  Due
	Open Open
	// Work looks at a registration, and ends with the job's Rest. One that fails comes again a little later.
	Work   func(ctx context.Context, j *Job) error
	Logger *slog.Logger
}

const (
	// atOnce is how many registrations a process looks at at a time. Each costs little while its receiver lets it wait.
	atOnce = 1000
	// How often River looks for jobs: after a notification at most so often, without one so often.
	cooldown = 20 * time.Millisecond
	poll     = 300 * time.Millisecond
	// completedFor is how long jobs that are over are kept: nobody asks for them.
	completedFor = time.Minute
	// lookEvery is how often the queue looks for jobs that are missing, and for processes that have died.
	lookEvery = 2 * time.Second
	// again is when a job comes again that failed, and how long a queue waits that could not start.
	again = time.Second
	// patience is how long a stop waits for jobs to end by themselves.
	patience = 8 * time.Second
)

// Job is the turn of one registration.
type Job struct {
	Webhook scalar.ID
	job     *river.Job[args]
	queue   *Queue
	insert  *Inserter
	client  string
}

// Rest ends the job, unless something of the registration is due: then it reports false, and the job goes on. What is to be
// sent later gets a job of its own at its time. With yield the job ends in any case, and comes again at once.
func (j *Job) Rest(ctx context.Context, yield bool) (rested bool, err error) {
	err = pgx.BeginFunc(ctx, j.queue.Pool, func(tx pgx.Tx) error {
		// First the lock, then the look. Who makes rows inserts the job after them, in one transaction. If that transaction has
		// come to the job already, this one waits here until its rows can be seen; otherwise it waits for this one, finds the job
		// over, and inserts another.
		var by string
		err := tx.QueryRow(ctx, `SELECT attempted_by[cardinality(attempted_by)] FROM `+table+` WHERE id = $1 AND state = 'running' FOR UPDATE`,
			j.job.ID).Scan(&by)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && by != j.client {
			rested = true // somebody took this process for dead, and has the job now
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

// Timeout implements river.Worker: jobs end by themselves.
func (w *worker) Timeout(*river.Job[args]) time.Duration { return -1 }

// Run hands out jobs until the context ends, and then waits for those that are out. While Postgres is away it tries again.
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

// serve hands out jobs until the context ends or the connection does that says that this process lives.
func (q *Queue) serve(ctx context.Context) error {
	insert, err := NewInserter()
	if err != nil {
		return err
	}
	// A name of its own for each try: a job under an older one is nobody's.
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
		// River's elected leader would take a job that runs for long from whom has it, which takeBack knows better; and who leads
		// holds up its own stop for seconds where Postgres is gone. What else it does is tidy's.
		LeaderElectionDisabled: true})
	if err != nil {
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

// look makes jobs for rows that call for one and have none, and takes those of dead processes back, until the context ends.
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
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tidy forgets jobs that have been over for a while, and makes those available that are to wait no longer: an older build may have
// left some whose leader would have done so.
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

// fill makes the jobs that are missing: after a rebuild, or where River's tables were lost.
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
