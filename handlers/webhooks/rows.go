package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Along returns a function that inserts the jobs for a batch of records, in the transaction of the batch.
//
// It inserts nothing while the rows are rebuilt from the log, because most of that work was done long ago and the
// jobs would find nothing to do. When the rows have reached the end of the log, the sender finds open deliveries
// without a job.
func Along(insert *jobs.Inserter, end func() int64) func(ctx context.Context, tx pgx.Tx, entries []record.Entry) error {
	return func(ctx context.Context, tx pgx.Tx, entries []record.Entry) error {
		if entries[len(entries)-1].Position.Offset+1 < end() {
			return nil
		}
		var called []scalar.ID
		for _, entry := range entries {
			for _, e := range entry.Record.Events {
				if id, calls := callsFor(e); calls && !slices.Contains(called, id) {
					called = append(called, id)
				}
			}
		}
		return insert.Insert(ctx, tx, called)
	}
}

// callsFor returns the webhook for which an event makes a delivery due. Retries are scheduled by the webhook's job.
func callsFor(e decide.Event) (scalar.ID, bool) {
	switch e := e.(type) {
	case *onboarding.DeliveryCreated:
		return e.WebhookID, true
	case *onboarding.DeliveryReplayed:
		return e.WebhookID, true
	case *onboarding.WebhookEnabled:
		return e.ID, true
	}
	return scalar.ID{}, false
}

// These queries read the rows for the job queue. A disabled webhook has nothing due.
const (
	openWebhooks = `SELECT w.id FROM webhooks w WHERE w.disabled_at IS NULL
		AND EXISTS (SELECT FROM deliveries d WHERE d.webhook_id = w.id AND d.status IN ('pending', 'retrying')) ORDER BY 1`

	nextDue = `SELECT EXISTS (SELECT FROM deliveries WHERE webhook_id = w.id AND status = 'pending'),
			(SELECT min(next_attempt_at) FROM deliveries WHERE webhook_id = w.id AND status = 'retrying')
		FROM webhooks w WHERE w.id = $1 AND w.disabled_at IS NULL`
)

// open returns the webhooks with open deliveries. It is a jobs.Open.
func open(ctx context.Context, tx pgx.Tx) ([]scalar.ID, error) {
	rows, err := tx.Query(ctx, openWebhooks)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (id scalar.ID, err error) {
		err = r.Scan(column.IntoID(&id))
		return id, err
	})
}

// next returns when a webhook has a delivery due, by this node's clock. It is a jobs.Due.
func (s *Sender) next(ctx context.Context, tx pgx.Tx, id scalar.ID) (at time.Time, exists bool, err error) {
	var pending bool
	var first scalar.Time
	err = tx.QueryRow(ctx, nextDue, id).Scan(&pending, column.IntoTime(&first))
	switch {
	case errors.Is(err, pgx.ErrNoRows): // deleted or disabled
		return at, false, nil
	case err != nil:
		return at, false, fmt.Errorf("looking for what is due next: %w", err)
	case pending || first == 0:
		return at, pending, nil
	}
	return s.backlog.clock.Node(first).Std(), true, nil
}
