package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Forget empties the tables of a journal's projections and deletes its checkpoint, its anchors, its base, its archive's head, and
// the bounds of its history, in one transaction. Its signed trees stay, but owners no longer look for those trees in the log. Forget is
// the deliberate reset after a log was recreated. An active runner finds that its checkpoint is gone, and starts over.
func Forget(ctx context.Context, pool Executor, journal string, projections ...Projection) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := durable(ctx, tx); err != nil {
			return err
		}
		for _, table := range []string{"checkpoints", "anchors", "records", "bases", "archive_heads"} { // checkpoints first, in the lock order of runners
			if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE journal = $1", journal); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "UPDATE history_bounds SET kept = -1, built = -1, written = -1 WHERE journal = $1", journal); err != nil {
			return err
		}
		// The signer must never contradict a signed tree, so these rows stay.
		if _, err := tx.Exec(ctx, "UPDATE signed_trees SET forgotten = true WHERE journal = $1", journal); err != nil {
			return err
		}
		for _, p := range projections {
			for _, table := range p.Tables() {
				if _, err := tx.Exec(ctx, "TRUNCATE "+pgx.Identifier{table}.Sanitize()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("projections: forgetting %s: %w", journal, err)
	}
	return nil
}
