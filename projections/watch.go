package projections

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Watch tells where the rows of partition 0 of a journal stand, to a process in which no runner of them works: it
// reads the checkpoint.
type Watch struct {
	Pool    *pgxpool.Pool
	Journal string
}

// Wait returns once the rows have reached a sequence. A database that does not answer is an error.
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

// watchPatience bounds how long Position and Err wait for the database.
const watchPatience = time.Second

// Position returns where the rows stand, or the position before genesis if the database does not answer.
func (w Watch) Position() record.Position {
	c, err := w.read()
	if err != nil {
		return record.Before
	}
	return c.Position
}

// Err returns why the checkpoint can't be read, if it can't.
func (w Watch) Err() error {
	_, err := w.read()
	return err
}

func (w Watch) read() (Checkpoint, error) {
	ctx, cancel := context.WithTimeout(context.Background(), watchPatience)
	defer cancel()
	return ReadCheckpoint(ctx, w.Pool, w.Journal, 0)
}
