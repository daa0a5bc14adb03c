package webhooks

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

const (
	recordWithin = 15 * time.Second // that the journal's owner may take to answer, itself or through its node
	firstPause   = 50 * time.Millisecond
	lastPause    = 2 * time.Second
)

// record has the journal record an attempt, and returns where its delivery stands then. It tries until the outcome is known: the
// number of the attempt sees to it that it is recorded once. If the sender is stopped before, the delivery stands as it did.
func (v *visit) record(d delivery, tenant string, a attempt) webhook.Status {
	v.metrics.unrecorded.Inc() // before it counts as made, so that who has seen it made finds it unrecorded or in the log
	v.metrics.observe(a)
	defer v.metrics.unrecorded.Dec()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		status, at, err := v.submit(d, tenant, a)
		if err == nil {
			v.note(d, d.attempts+1, at)
			return status
		}
		v.cfg.Logger.Warn("webhooks: an attempt could not be recorded yet", "delivery", d.id.String(), "number", d.attempts+1, "error", err)
		select {
		case <-v.recording.Done():
			return webhook.Pending
		case <-time.After(pause):
		}
	}
}

// submit sends the command once. An error says that its outcome is not known.
func (v *visit) submit(d delivery, tenant string, a attempt) (webhook.Status, int64, error) {
	ctx, cancel := context.WithTimeout(v.recording, recordWithin)
	defer cancel()
	reply, err := v.sealed(ctx, d, tenant, a.reply)
	if err != nil {
		return webhook.Pending, 0, err
	}
	result, err := v.cfg.To.Submit(ctx, journalName, decide.Command{ID: web.NewID(), Type: onboarding.CommandRecordAttempt,
		Actor: decide.Actor{System: "sender"}, Payload: &onboarding.RecordAttempt{ID: d.id, Number: d.attempts + 1, Started: scalar.TimeOf(a.started),
			DurationMS: a.took.Milliseconds(), StatusCode: a.status, Error: a.failure, Reply: reply, RetryAfter: a.retryAfter, Schedule: v.cfg.Schedule}})
	var refused *journal.RefusedError
	switch {
	case err == nil && a.status == http.StatusOK:
		return webhook.Delivered, result.Position.Sequence, nil
	case err == nil:
		return webhook.Retrying, result.Position.Sequence, nil // or dead: it is over for now either way
	case errors.As(err, &refused):
		// It was recorded when nobody knew whether it was, or another sender was first; or it is not to be tried any more.
		if refused.Refusal.Kind == decide.Invalid {
			v.cfg.Logger.Error("webhooks: the journal refuses an attempt", "delivery", d.id.String(), "number", d.attempts+1, "error", err)
		}
		return webhook.Retrying, refused.AsOf.Sequence, nil
	}
	return webhook.Pending, 0, err
}

// sealed returns the beginning of a reply as the log may hold it: nothing, once the owner's key is destroyed.
func (v *visit) sealed(ctx context.Context, d delivery, tenant string, reply []byte) ([]byte, error) {
	if len(reply) == 0 {
		return nil, nil
	}
	if d.Ref == (owner.Ref{}) {
		return v.cfg.Box.Seal(reply, seal.TestResponse(tenant, d.id))
	}
	c, err := v.cfg.Owners.Seal(ctx, reply, seal.DeliveryResponse(d.Ref, d.id))
	if errors.Is(err, seal.ErrDestroyed) {
		return nil, nil
	}
	return c, err
}
