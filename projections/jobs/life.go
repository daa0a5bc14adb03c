package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// life is a connection that holds an advisory lock on the name of a process. Postgres releases the lock when the
// process or its machine dies. So a process that can acquire the lock of a name knows that the process of that name is
// dead.
type life struct {
	conn *pgx.Conn
	name string
}

// within is the timeout for Postgres.
const within = 10 * time.Second

const lockOf = `hashtextextended('perpetua jobs ' || $1::text, 0)`

// live acquires the lock of a name.
func (q *Queue) live(ctx context.Context, name string) (*life, error) {
	acquired, err := q.Pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to Postgres: %w", err)
	}
	l := &life{acquired.Hijack(), name}
	if _, err := l.conn.Exec(ctx, "SELECT pg_advisory_lock("+lockOf+")", name); err != nil {
		l.close()
		return nil, fmt.Errorf("saying that this process lives: %w", err)
	}
	return l, nil
}

func (l *life) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx)
}

// takeBack makes the running jobs of dead processes available.
func (l *life) takeBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	rows, err := l.conn.Query(ctx, `SELECT DISTINCT attempted_by[cardinality(attempted_by)] FROM `+table+`
		WHERE state = 'running' AND queue = $1 AND attempted_by[cardinality(attempted_by)] <> $2`, queue, l.name)
	if err != nil {
		return fmt.Errorf("jobs: looking for dead processes: %w", err)
	}
	others, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, other := range others {
		if err == nil {
			// The lock is held until the end of the transaction: two processes that find the same dead process act one
			// after the other.
			_, err = l.conn.Exec(ctx, `WITH dead AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(`+lockOf+`) AS it)
				UPDATE `+table+` SET state = 'available', scheduled_at = now()
				WHERE (SELECT it FROM dead) AND state = 'running' AND queue = $2 AND attempted_by[cardinality(attempted_by)] = $1`, other, queue)
		}
	}
	if err != nil {
		return fmt.Errorf("jobs: taking back what dead processes had: %w", err)
	}
	return nil
}
