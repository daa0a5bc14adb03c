package webhooks

import (
	"context"
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// record submits an attempt to the journal and returns the result. If the sender stops first, the delivery stays
// unchanged in the log.
func (v *sendLoop) record(d *delivery, tenant string, a attempt) known {
	v.metrics.unrecorded.Inc() // first, so that an attempt that was counted is always either unrecorded or in the log
	v.metrics.observe(a)
	defer v.metrics.unrecorded.Dec()
	reply, ok := v.sealed(d, tenant, a.reply)
	if !ok {
		return known{status: isUnknown}
	}
	return v.recorder.record(&onboarding.RecordAttempt{ID: d.id, Number: d.attempts + 1, Started: scalar.TimeOf(a.started),
		DurationMS: a.took.Milliseconds(), StatusCode: a.status, Error: a.failure, Reply: reply, RetryAfter: a.retryAfter})
}

// sealed encrypts the beginning of a reply, with retries. It returns nil if the owner's key is destroyed or lost, and false
// if the sender stopped first.
func (v *sendLoop) sealed(d *delivery, tenant string, reply []byte) (c []byte, ok bool) {
	if len(reply) == 0 {
		return nil, true
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		c, err := v.seal(v.recording, d, tenant, reply)
		if err == nil {
			return c, true
		}
		v.cfg.Logger.Warn("webhooks: a receiver's reply could not be sealed yet", "delivery", d.id.String(), "number", d.attempts+1, "error", err)
		select {
		case <-v.recording.Done():
			return nil, false
		case <-time.After(pause):
		}
	}
}

func (v *sendLoop) seal(ctx context.Context, d *delivery, tenant string, reply []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	if d.queue.Ref == (owner.Ref{}) {
		return v.cfg.Box.Seal(reply, seal.TestResponse(tenant, d.id))
	}
	c, err := v.cfg.Owners.Seal(ctx, reply, seal.DeliveryResponse(d.queue.Ref, d.id))
	if errors.Is(err, seal.ErrDestroyed) {
		return nil, nil
	}
	return c, v.unlessLost(ctx, d.queue.Ref, err)
}
