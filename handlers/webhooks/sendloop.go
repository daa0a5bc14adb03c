package webhooks

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// sendLoop is a job's work on one webhook.
type sendLoop struct {
	*Sender
	webhook  scalar.ID
	endpoint *endpoint

	mu         sync.Mutex
	keys       map[string]ed25519.PrivateKey
	at         atomic.Int64  // sequence of the last record that the loop depends on
	unanswered atomic.Int64  // consecutive attempts without a response
	requests   chan struct{} // one element for each request in progress
	workers    errgroup.Group
	underWay   atomic.Int64 // attempts whose results are not known yet
	failed     atomic.Bool
}

// work implements jobs.Queue's Work.
func (s *Sender) work(ctx context.Context, j *jobs.Job) error {
	v := &sendLoop{Sender: s, webhook: j.Webhook, endpoint: s.backlog.registration(j.Webhook), keys: make(map[string]ed25519.PrivateKey),
		requests: make(chan struct{}, PerReceiver)}
	// The fold must contain everything that earlier jobs for the webhook recorded, on any node. Otherwise deliveries
	// would be repeated.
	folding, cancel := context.WithTimeout(ctx, behind)
	err := s.cfg.Fold.WaitTip(folding)
	cancel()
	if err != nil {
		return fmt.Errorf("webhooks: following the log: %w", err)
	}
	v.saw(s.cfg.Fold.Position().Sequence)
	until := time.Now().Add(turn)
	for {
		if err := v.send(ctx, until); err != nil {
			return err
		}
		if v.over() || time.Now().After(until) {
			_, err := j.Rest(ctx, true)
			return err
		}
		if rested, err := v.rest(ctx, j, until); rested || err != nil {
			return err
		}
	}
}

// over reports whether this turn must not begin further attempts.
func (v *sendLoop) over() bool {
	return v.stopping.Err() != nil || v.unanswered.Load() >= failureLimit || v.failed.Load()
}

// saw raises v.at to a sequence.
func (v *sendLoop) saw(at int64) {
	for {
		old := v.at.Load()
		if at <= old || v.at.CompareAndSwap(old, at) {
			return
		}
	}
}

// send sends due deliveries until none has arrived for a while or the turn is over. It returns when the results of
// all attempts are known.
func (v *sendLoop) send(ctx context.Context, until time.Time) error {
	v.workers = errgroup.Group{}
	v.workers.SetLimit(queuesAtOnce)
	end := time.NewTimer(time.Until(until))
	defer end.Stop()
	for quiet := false; !v.over(); {
		select {
		case v.requests <- struct{}{}:
		case <-end.C:
			return v.workers.Wait()
		}
		d, at, next := v.backlog.take(v.endpoint)
		if d != nil {
			quiet = false
			v.underWay.Add(1)
			v.workers.Go(func() error { return v.try(ctx, d) })
			continue
		}
		<-v.requests
		if quiet && v.underWay.Load() == 0 {
			v.saw(at)
			break
		}
		var more bool
		if quiet, more = v.await(end, next); !more {
			break
		}
	}
	return v.workers.Wait()
}

// await waits until there may be deliveries to send. quiet means that none arrived for a while. more is false if the
// turn is over or the sender stops.
func (v *sendLoop) await(end *time.Timer, next scalar.Time) (quiet, more bool) {
	wait := linger
	if next != 0 {
		wait = min(wait, max(0, time.Until(next.Std())))
	}
	idle := time.NewTimer(wait)
	defer idle.Stop()
	select {
	case <-v.endpoint.changed:
		return false, true
	case <-idle.C:
		return true, true
	case <-v.stopping.Done():
	case <-end.C:
	}
	return false, false
}

// rest ends the job if nothing is due, or waits until it may end or a delivery is due.
func (v *sendLoop) rest(ctx context.Context, j *jobs.Job, until time.Time) (rested bool, err error) {
	if rested, err = j.Rest(ctx, false); rested || err != nil {
		return rested, err
	}
	// According to the rows, a delivery is due. Either the rows or the fold lag, so wait for both.
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	go func() {
		select {
		case <-v.endpoint.changed: // a delivery may be due
			cancel()
		case <-v.stopping.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	if err = v.cfg.Rows.Wait(ctx, v.at.Load()); err == nil {
		err = v.cfg.Fold.Wait(ctx, v.cfg.Rows.Position().Sequence)
	}
	if err != nil && ctx.Err() == nil {
		return false, fmt.Errorf("webhooks: waiting for the rows: %w", err)
	}
	return false, nil
}

// try makes the next attempt of a delivery, if it is still required, and records it. It frees the request slot before
// recording, so the receiver may get other requests in the meantime. The owner's next delivery waits for the record:
// if the sender died in between, this delivery would be repeated after that one.
func (v *sendLoop) try(ctx context.Context, d *delivery) error {
	defer v.underWay.Add(-1)
	a, tenant, err := v.attempt(ctx, d)
	<-v.requests
	if a == nil {
		if errors.Is(err, seal.ErrDestroyed) { // the record that cancels the delivery is not folded yet
			v.backlog.done(d, false)
			return nil
		}
		if err != nil {
			v.failed.Store(true)
		}
		v.backlog.done(d, true)
		return err
	}
	k := v.record(d, tenant, *a)
	v.saw(k.at)
	v.backlog.done(d, k.status == isUnknown)
	return nil
}
