package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// CosignedTrees records the cosigned checkpoints of transparency logs. It implements transparency.CosignedTrees.
type CosignedTrees struct{ Pool *pgxpool.Pool }

var _ transparency.CosignedTrees = CosignedTrees{}

// PublishCosigned implements transparency.CosignedTrees.
func (s CosignedTrees) PublishCosigned(ctx context.Context, of transparency.Origin, c transparency.Checkpoint) error {
	_, err := s.Pool.Exec(ctx, `INSERT INTO cosigned_trees AS t (origin, size, checkpoint, verifier) VALUES ($1, $2, $3, $4)
		ON CONFLICT (origin) DO UPDATE SET size = excluded.size, checkpoint = excluded.checkpoint, verifier = excluded.verifier, cosigned = clock_timestamp()
		WHERE t.size <= excluded.size`, of.String(), c.Size, string(c.Note), c.Verifier)
	if err != nil {
		return fmt.Errorf("projections: publishing a cosigned checkpoint of %v: %w", of, err)
	}
	return nil
}

// Cosigned implements transparency.CosignedTrees.
func (s CosignedTrees) Cosigned(ctx context.Context, of transparency.Origin) (c transparency.Checkpoint, err error) {
	var note string
	err = s.Pool.QueryRow(ctx, `SELECT size, checkpoint, verifier FROM cosigned_trees WHERE origin = $1`, of.String()).Scan(&c.Size, &note, &c.Verifier)
	if errors.Is(err, pgx.ErrNoRows) {
		return transparency.Checkpoint{}, nil
	}
	if err != nil {
		return c, fmt.Errorf("projections: reading the cosigned checkpoint of %v: %w", of, err)
	}
	c.Note = []byte(note)
	return c, nil
}
