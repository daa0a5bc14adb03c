// Package jobs keeps a queue of webhooks that a sender has to look at, and when: one job for each webhook, in River's tables.
//
// A job holds no deliveries. The rows say what to send, and the log says whether it is still due. So a webhook has at most
// one job, inserting it again changes nothing, and a job that is early or needless has no effect. River's tables are never
// a source of truth: they may be emptied at any time, and Queue then inserts the jobs that the rows call for.
//
// A job is inserted in the transaction that writes the rows, so a row never exists without its job. A job ends in a
// transaction that has locked it and read the rows: a concurrent insertion waits for that end, or the end sees its rows.
//
// The tables have their own schema. A rebuild of the rows replaces the tables of another schema and MUST NOT touch these.
package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

const (
	// Schema is the Postgres schema of River's tables.
	Schema = "perpetua_jobs"

	table = Schema + ".river_job"
	queue = "webhooks"
	// migrating is the advisory lock that a process holds while it makes the tables.
	migrating = 7_305_809_141_962_330_002
	// maxAttempts is how often a job may fail, for want of Postgres say. One that has failed so often is made anew.
	maxAttempts = 1000
)

// args are what a job says.
type args struct {
	Webhook scalar.ID `json:"webhook_id"`
}

// Kind implements river.JobArgs.
func (args) Kind() string { return "webhook" }

// live are the states of a job that is not over. There is at most one of them for a registration.
var live = []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
	rivertype.JobStateRetryable, rivertype.JobStateScheduled}

// InsertOpts implements river.JobArgsWithInsertOpts.
func (args) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: maxAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: live}}
}

type client = river.Client[pgx.Tx]

// Migrate makes River's tables, or brings them up to date. Any number of nodes may call it at once.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	// River takes a transaction for each of its versions, so the lock is held by a transaction beside them.
	err := pgx.BeginFunc(ctx, pool, func(lock pgx.Tx) error {
		if _, err := lock.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrating)); err != nil {
			return err
		}
		if _, err := pool.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+Schema); err != nil {
			return err
		}
		m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: Schema, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		done, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
		if err != nil || len(done.Versions) == 0 {
			return err
		}
		// That there are tables must survive a crash of Postgres, as what is in them need not. This commit waits until it is on
		// disk, and what came before it is there then.
		_, err = lock.Exec(ctx, "SET LOCAL synchronous_commit = on; COMMENT ON SCHEMA "+Schema+" IS 'work to be done, made of the rows'")
		return err
	})
	if err != nil {
		return fmt.Errorf("jobs: making the tables: %w", err)
	}
	return nil
}

// Inserter inserts jobs in the transactions of others.
type Inserter struct{ client *client }

// NewInserter returns an inserter. It connects to nothing.
func NewInserter() (*Inserter, error) {
	c, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Schema: Schema})
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	return &Inserter{c}, nil
}

// Insert has somebody look at the registrations now: a job that waits for a later time is brought forward.
func (i *Inserter) Insert(ctx context.Context, tx pgx.Tx, webhooks []scalar.ID) error {
	if len(webhooks) == 0 {
		return nil
	}
	// In one order everywhere, so that of two transactions that insert for the same ones one waits at the first, holding none.
	webhooks = slices.Clone(webhooks)
	slices.SortFunc(webhooks, func(a, b scalar.ID) int { return slices.Compare(a[:], b[:]) })
	there, err := i.insert(ctx, tx, slices.Compact(webhooks), time.Time{})
	if err != nil || len(there) == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE `+table+` SET state = 'available', scheduled_at = now()
		WHERE id = ANY($1) AND state IN ('available', 'scheduled', 'retryable') AND scheduled_at > now()`, there); err != nil {
		return fmt.Errorf("jobs: bringing %d forward: %w", len(there), err)
	}
	return nil
}

// insert inserts a job for each registration that has none, at a time; zero: now. It returns the ids of the jobs that were there.
func (i *Inserter) insert(ctx context.Context, tx pgx.Tx, webhooks []scalar.ID, at time.Time) (there []int64, err error) {
	params := make([]river.InsertManyParams, len(webhooks))
	for k, id := range webhooks {
		params[k] = river.InsertManyParams{Args: args{id}}
		if !at.IsZero() {
			params[k].InsertOpts = &river.InsertOpts{ScheduledAt: at}
		}
	}
	inserted, err := i.client.InsertManyTx(ctx, tx, params)
	if err != nil {
		return nil, fmt.Errorf("jobs: inserting %d: %w", len(webhooks), err)
	}
	var later []int64
	for _, j := range inserted {
		switch {
		case j.UniqueSkippedAsDuplicate:
			there = append(there, j.Job.ID)
		case !at.IsZero():
			later = append(later, j.Job.ID)
		}
	}
	if len(later) == 0 {
		return there, nil
	}
	// What is scheduled would wait for River's elected leader, of which there is none. A job that is available at a later time
	// is fetched at that time, by whoever polls.
	if _, err := tx.Exec(ctx, `UPDATE `+table+` SET state = 'available' WHERE id = ANY($1)`, later); err != nil {
		return nil, fmt.Errorf("jobs: scheduling %d: %w", len(later), err)
	}
	return there, nil
}
