package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
)

// dropHistoryEvery is the time between two attempts to drop old history.
const dropHistoryEvery = 10 * time.Minute

// dropsHistory reports whether this node drops old history. Several nodes may: each partition is dropped once.
func (n *Node) dropsHistory() bool {
	age, err := n.Settings.HistoryAge()
	return err == nil && age > 0 && n.Roles.Projector
}

// dropHistory drops old history at intervals until the context ends. Nothing depends on it, so errors are logged and tried again.
func (n *Node) dropHistory(ctx context.Context) error {
	age, err := n.Settings.HistoryAge()
	if err != nil {
		return err
	}
	log := n.Logger.With("part", "history", "journal", "trading")
	for {
		select { // first: a node that starts has other work
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(dropHistoryEvery):
		}
		dropped := 0
		now, err := n.stores.earlierTime(ctx)
		if err == nil {
			dropped, err = projections.DropHistory(ctx, n.stores.pool, scalar.TimeOf(now.Add(-age)))
		}
		if dropped > 0 {
			log.Info("dropped old history", "partitions", dropped)
		}
		switch {
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, projections.ErrHistoryBusy):
			log.Log(ctx, slog.LevelDebug, "old history is not dropped", "error", err)
		default:
			log.Warn("old history is not dropped", "error", err)
		}
	}
}
