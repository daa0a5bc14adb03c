// Package jobs maintains a queue of webhooks that a sender must visit, with the times of the visits: one job for each
// webhook, in River's tables.
//
// A job contains no deliveries. The rows say what to send, and the log says whether it is still due. So a webhook has at
// most one job, inserting it again changes nothing, and a job that is early or needless has no effect. River's tables
// are never a source of truth: they may be emptied at any time, and Queue then inserts the jobs that the rows require.
//
// A job is inserted in the transaction that writes the rows, so a row never exists without its job. A job ends in a
// transaction that has locked it and read the rows: a concurrent insertion waits for that end, or the end sees its rows.
//
// The tables have a separate schema. A rebuild of the rows replaces the tables of another schema and MUST NOT touch
// these.
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
	// migrating is the advisory lock of a process that creates the tables.
	migrating = 7_305_809_141_962_330_002
	// maxAttempts is how often a job may fail, for example while Postgres is down. After that, the queue creates another
	// job.
	maxAttempts = 1000
)

// args are the arguments of a job.
type args struct {
	Webhook scalar.ID `json:"webhook_id"`
}

// Kind implements river.JobArgs.
func (args) Kind() string { return "webhook" }

// live lists the states of an unfinished job. A webhook has at most one unfinished job.
var live = []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
	rivertype.JobStateRetryable, rivertype.JobStateScheduled}

// InsertOpts implements river.JobArgsWithInsertOpts.
func (args) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: maxAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: live}}
}

type client = river.Client[pgx.Tx]

// Migrate creates River's tables or brings them up to date. Any number of nodes may call it at the same time.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	// River uses one transaction for each version, so another transaction holds the lock. The pool may have no second connection.
	c := pool.Config() // Config returns a copy
	c.MinConns, c.MinIdleConns = 0, 0
	own, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return fmt.Errorf("jobs: opening the database pool: %w", err)
	}
	defer own.Close()
	m, err := rivermigrate.New(riverpgxv5.New(own), &rivermigrate.Config{Schema: Schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	// The transaction below would keep a lock on the table of versions, which River may change.
	if done, err := migrated(ctx, pool, m); err != nil {
		return fmt.Errorf("jobs: looking at the tables: %w", err)
	} else if done {
		return nil
	}
	err = pgx.BeginFunc(ctx, pool, func(lock pgx.Tx) error {
		if _, err := lock.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrating)); err != nil {
			return err
		}
		if _, err := own.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+Schema); err != nil {
			return err
		}
		done, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
		if err != nil || len(done.Versions) == 0 {
			return err
		}
		// The existence of the tables must survive a crash of Postgres; their content need not. This commit waits for
		// the disk, and all earlier commits are then on disk too. A session that has looked for the schema before another one
		// created it may not find it until it reads a table that it has not read in this transaction.
		_, err = lock.Exec(ctx, "SELECT FROM pg_description LIMIT 0; SET LOCAL synchronous_commit = on; COMMENT ON SCHEMA "+Schema+" IS 'work to be done, made of the rows'")
		return err
	})
	if err != nil {
		return fmt.Errorf("jobs: making the tables: %w", err)
	}
	return nil
}

// migrated reports whether River's tables are up to date. It first waits for the lock of a node that makes them, because the tables
// do not survive a crash of Postgres before. River's own check takes longer than all other statements of a start.
func migrated(ctx context.Context, pool *pgxpool.Pool, m *rivermigrate.Migrator[pgx.Tx]) (done bool, err error) {
	if _, err := pool.Exec(ctx, "SELECT pg_advisory_xact_lock_shared($1)", int64(migrating)); err != nil {
		return false, err
	}
	err = pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE n.nspname = $1 AND c.relname = 'river_migration' AND a.attname = 'line')`, Schema).Scan(&done)
	if err != nil || !done {
		return false, err
	}
	var versions []int64
	for _, v := range m.AllVersions() {
		versions = append(versions, int64(v.Version))
	}
	err = pool.QueryRow(ctx, "SELECT NOT EXISTS (SELECT unnest($1::bigint[]) EXCEPT SELECT version FROM "+Schema+".river_migration WHERE line = 'main')",
		versions).Scan(&done)
	return done, err
}

// Inserter inserts jobs within the caller's transactions.
type Inserter struct{ client *client }

// NewInserter returns an Inserter. It does not connect to Postgres.
func NewInserter() (*Inserter, error) {
	c, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Schema: Schema})
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	return &Inserter{c}, nil
}

// Insert makes the webhooks due now. A job that is scheduled for later is brought forward.
func (i *Inserter) Insert(ctx context.Context, tx pgx.Tx, webhooks []scalar.ID) error {
	if len(webhooks) == 0 {
		return nil
	}
	// Sort the ids: two transactions that insert the same jobs then block at the first common one, instead of
	// deadlocking.
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

// insert inserts a job for each webhook without an unfinished one, scheduled at the given time or, if it is zero, now.
// It returns the ids of the existing jobs.
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
	// River's elected leader would make scheduled jobs available, but leader election is disabled. An available job with
	// a later time is fetched at that time by the process that polls next.
	if _, err := tx.Exec(ctx, `UPDATE `+table+` SET state = 'available' WHERE id = ANY($1)`, later); err != nil {
		return nil, fmt.Errorf("jobs: scheduling %d: %w", len(later), err)
	}
	return there, nil
}
