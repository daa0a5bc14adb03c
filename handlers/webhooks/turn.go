package webhooks

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// visit is a job's work on one registration.
type visit struct {
	*Sender
	webhook scalar.ID
	notices map[scalar.ID]*onboarding.Notice // of what is due

	mu       sync.Mutex
	recorded map[scalar.ID]int // the latest attempt of a delivery that this visit knows to be recorded, or not to be wanted
	at       int64             // the sequence of the last record that it knows of
	keys     map[string]ed25519.PrivateKey

	unanswered atomic.Int64 // attempts in a row that got no answer
}

// work is a jobs.Queue's Work.
func (s *Sender) work(ctx context.Context, j *jobs.Job) error {
	v := &visit{Sender: s, webhook: j.Webhook, recorded: make(map[scalar.ID]int), keys: make(map[string]ed25519.PrivateKey)}
	// The fold must know what was recorded under an earlier job for the same registration, here or elsewhere: rows that are behind
	// would have it sent again.
	folding, cancel := context.WithTimeout(ctx, behind)
	err := s.cfg.Fold.WaitTip(folding)
	cancel()
	if err != nil {
		return fmt.Errorf("webhooks: following the log: %w", err)
	}
	v.at = s.cfg.Fold.Position().Sequence
	for until := time.Now().Add(turn); ; {
		rested, err := v.round(ctx, j)
		if rested || err != nil {
			return err
		}
		if time.Now().After(until) || v.unanswered.Load() >= tired || s.stopping.Err() != nil {
			_, err := j.Rest(ctx, true)
			return err
		}
	}
}

// round sends what is due, or ends the job where nothing is.
func (v *visit) round(ctx context.Context, j *jobs.Job) (rested bool, err error) {
	due, err := v.due(ctx, v.webhook)
	if err != nil {
		return false, err
	}
	lanes := v.lanes(due)
	if len(lanes) > 0 {
		return false, v.send(ctx, lanes)
	}
	if len(due) == 0 {
		return j.Rest(ctx, false)
	}
	// All that the rows say to be due was recorded since: they are behind the log. Or the fold is behind the rows.
	waiting, cancel := context.WithTimeout(ctx, behind)
	defer cancel()
	if err = v.cfg.Rows.Wait(waiting, v.at); err == nil {
		err = v.cfg.Fold.Wait(waiting, max(v.at, v.cfg.Rows.Position().Sequence))
	}
	if err != nil {
		return false, fmt.Errorf("webhooks: waiting for the rows: %w", err)
	}
	again, err := v.due(ctx, v.webhook)
	if err == nil && len(again) > 0 && len(v.lanes(again)) == 0 {
		err = errors.New("webhooks: the rows call for what the log does not want to be sent")
	}
	return false, err
}

// lanes groups what is wanted by owner. In each group one goes out after the other, in the order of the log. What is about no
// owner has no order.
func (v *visit) lanes(due []delivery) [][]delivery {
	v.mu.Lock()
	defer v.mu.Unlock()
	var lanes [][]delivery
	of := make(map[owner.Ref]int)
	v.cfg.Fold.View(func(state decide.State, _ journal.Position) {
		for _, d := range due {
			if d.attempts < v.recorded[d.id] || !wanted(state.(*onboarding.State), v.webhook, d) {
				continue
			}
			lane, some := of[d.Ref]
			if !some || d.Ref == (owner.Ref{}) {
				lane, lanes = len(lanes), append(lanes, nil)
				of[d.Ref] = lane
			}
			lanes[lane] = append(lanes[lane], d)
		}
	})
	return lanes
}

// wanted reports whether the log, as far as it is folded, wants the next attempt of a delivery.
func wanted(s *onboarding.State, hook scalar.ID, d delivery) bool {
	w, there := s.Webhook(hook)
	v, known := s.Delivery(d.id)
	return there && w.Disabled == 0 && known && v.Status.IsOpen() && v.Attempts == d.attempts
}

// send sends what is in the lanes.
func (v *visit) send(ctx context.Context, lanes [][]delivery) (err error) {
	var ids []scalar.ID
	for _, lane := range lanes {
		for _, d := range lane {
			ids = append(ids, d.notice)
		}
	}
	if v.notices, err = rows.NoticesByID(ctx, v.cfg.DB, ids); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(PerReceiver)
	for _, lane := range lanes {
		group.Go(func() error { return v.sendLane(ctx, lane) })
	}
	return group.Wait()
}

// sendLane sends the deliveries about one owner in their order. One that was tried and waits for its next time lets the others
// go on; one of which it is not known how it went does not.
func (v *visit) sendLane(ctx context.Context, lane []delivery) error {
	earlier := make([]webhook.Status, 0, len(lane))
	for _, d := range lane {
		if v.stopping.Err() != nil || v.unanswered.Load() >= tired || webhook.Waits(earlier) {
			return nil
		}
		status, err := v.try(ctx, d)
		if err != nil {
			return err
		}
		earlier = append(earlier, status)
	}
	return nil
}

// try makes the next attempt of a delivery, if it is wanted, and returns where the delivery stands then: pending still if that
// is not known.
func (v *visit) try(ctx context.Context, d delivery) (webhook.Status, error) {
	var to *onboarding.Webhook
	v.cfg.Fold.View(func(s decide.State, _ journal.Position) {
		if state := s.(*onboarding.State); wanted(state, v.webhook, d) {
			to, _ = state.Webhook(v.webhook)
		}
	})
	if to == nil { // it was deleted, disabled or erased a moment ago
		v.note(d, d.attempts+1, 0)
		return webhook.Canceled, nil
	}
	body, err := v.body(ctx, v.notices[d.notice])
	if errors.Is(err, seal.ErrDestroyed) { // the record that cancels it is on its way
		v.note(d, d.attempts+1, 0)
		return webhook.Canceled, nil
	}
	if err != nil {
		return webhook.Pending, fmt.Errorf("webhooks: the body of %s: %w", d.notice, err)
	}
	keys, err := v.signing(to)
	if err != nil {
		return webhook.Pending, fmt.Errorf("webhooks: the keys of %s: %w", to.ID, err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Perpetua-Webhooks/1"}}
	sign(header, keys, d.notice, time.Now(), body)
	a := post(v.attempts, v.cfg.Client, to.URL, header, body)
	if a.status == 0 && v.attempts.Err() != nil {
		return webhook.Pending, nil // broken off: nobody knows whether it arrived, so it goes out again
	}
	if a.status == 0 {
		v.unanswered.Add(1)
	} else {
		v.unanswered.Store(0)
	}
	return v.record(d, to.Tenant, a), nil
}

// body returns the bytes that a notice is told with: the same whenever they are made.
func (s *Sender) body(ctx context.Context, n *onboarding.Notice) ([]byte, error) {
	if n == nil {
		return nil, errors.New("there is no such notice")
	}
	var reason string
	if n.Reason.Sealed != nil {
		plain, err := s.cfg.Owners.Open(ctx, n.Reason.Sealed, seal.Reason(n.Ref, n.TriggerID))
		if err != nil {
			return nil, err
		}
		reason = string(plain)
	}
	b, err := n.Body(reason)
	if err != nil {
		return nil, err
	}
	return b.Encode()
}

// signing returns the keys that sign for a registration: the one in use, and the one that takes its place, while there is one.
func (v *visit) signing(w *onboarding.Webhook) ([]ed25519.PrivateKey, error) {
	var keys []ed25519.PrivateKey
	for _, k := range []*onboarding.SigningKey{&w.Key, w.Next} {
		if k == nil {
			continue
		}
		key, err := v.key(w.ID, k)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (v *visit) key(of scalar.ID, k *onboarding.SigningKey) (ed25519.PrivateKey, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if key, known := v.keys[k.KeyID]; known {
		return key, nil
	}
	seed, err := v.cfg.Box.Open(k.Private, seal.WebhookKey(of))
	if err == nil && len(seed) != ed25519.SeedSize {
		err = fmt.Errorf("a key of %d bytes", len(seed))
	}
	if err != nil {
		return nil, err
	}
	v.keys[k.KeyID] = ed25519.NewKeyFromSeed(seed)
	return v.keys[k.KeyID], nil
}

// note keeps that an attempt is recorded, at a sequence, or not wanted any more.
func (v *visit) note(d delivery, number int, at int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.recorded[d.id] = number
	v.at = max(v.at, at)
}
