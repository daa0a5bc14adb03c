package projections

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Watch follows the rows of partition 0 of a journal in a process without a runner for them. It reads the checkpoint.
type Watch struct {
	Pool    *pgxpool.Pool
	Journal string
}

// Wait returns when the rows have reached a sequence, or with an error if the database does not answer.
func (w Watch) Wait(ctx context.Context, sequence int64) error {
	for {
		c, err := ReadCheckpoint(ctx, w.Pool, w.Journal, 0)
		if err != nil || c.Position.Sequence >= sequence {
			return err
		}
		if !sleep(ctx, pollEvery) {
			return ctx.Err()
		}
	}
}

// watchPatience is the timeout of Position and Err for the database.
const watchPatience = time.Second

// Position returns the position of the rows, or the position before genesis if the database does not answer.
func (w Watch) Position() record.Position {
	c, err := w.read()
	if err != nil {
		return record.Before
	}
	return c.Position
}

// Err returns the error of reading the checkpoint, or nil.
func (w Watch) Err() error {
	_, err := w.read()
	return err
}

func (w Watch) read() (Checkpoint, error) {
	ctx, cancel := context.WithTimeout(context.Background(), watchPatience)
	defer cancel()
	return ReadCheckpoint(ctx, w.Pool, w.Journal, 0)
}
