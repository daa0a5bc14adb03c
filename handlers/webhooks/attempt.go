package webhooks

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// attempt makes one attempt, if the log still requires it. It returns the result and the tenant, or nil if there is
// nothing to record.
func (v *sendLoop) attempt(ctx context.Context, d *delivery) (_ *attempt, tenant string, _ error) {
	var to *onboarding.Webhook
	v.cfg.Fold.View(func(s decide.State, _ record.Position) {
		if state := s.(*onboarding.State); wanted(state, v.webhook, d) {
			to, _ = state.Webhook(v.webhook)
		}
	})
	if to == nil { // deleted, disabled or erased since; the backlog has been updated
		return nil, "", nil
	}
	body, err := v.body(ctx, d)
	if err != nil {
		return nil, "", fmt.Errorf("webhooks: the body of %s: %w", d.noticeID, err)
	}
	keys, err := v.signing(to)
	if err != nil {
		return nil, "", fmt.Errorf("webhooks: the keys of %s: %w", to.ID, err)
	}
	if v.cfg.May != nil {
		if err := v.cfg.May(ctx); err != nil {
			return nil, "", fmt.Errorf("webhooks: %w", err)
		}
	}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Perpetua-Webhooks/1"}}
	sign(header, keys, d.noticeID, time.Now(), body)
	a := post(v.attempts, v.cfg.Client, to.URL, header, body)
	if a.status == 0 && v.attempts.Err() != nil {
		return nil, "", nil // aborted: whether it arrived is unknown, so it is repeated
	}
	if a.status == 0 {
		v.unanswered.Add(1)
	} else {
		v.unanswered.Store(0)
	}
	return &a, to.Tenant, nil
}

// wanted reports whether the state requires the next attempt of a delivery.
func wanted(s *onboarding.State, hook scalar.ID, d *delivery) bool {
	w, there := s.Webhook(hook)
	v, known := s.Delivery(d.id)
	return there && w.Disabled == 0 && known && v.Status.IsOpen() && v.Attempts == d.attempts
}

// body returns the encoded notice of a delivery. The bytes are the same each time.
func (v *sendLoop) body(ctx context.Context, d *delivery) ([]byte, error) {
	make := func(n *onboarding.Notice) ([]byte, error) { return v.makeBody(ctx, n) }
	if d.notice != nil {
		return d.notice.body(make)
	}
	n, err := v.notice(ctx, d)
	if err != nil {
		return nil, err
	}
	return make(n)
}

// notice returns the notice of a delivery from the rows.
func (v *sendLoop) notice(ctx context.Context, d *delivery) (*onboarding.Notice, error) {
	read := func() (*onboarding.Notice, error) {
		found, err := rows.NoticesByID(ctx, v.cfg.DB, []scalar.ID{d.noticeID})
		return found[d.noticeID], err
	}
	n, err := read()
	if n != nil || err != nil {
		return n, err
	}
	// The rows lag behind the log or are being rebuilt.
	ctx, cancel := context.WithTimeout(ctx, behind)
	defer cancel()
	if err := v.cfg.Rows.Wait(ctx, v.at.Load()); err != nil {
		return nil, fmt.Errorf("waiting for its row: %w", err)
	}
	if n, err = read(); n == nil && err == nil {
		err = errors.New("there is no such notice")
	}
	return n, err
}

// makeBody encodes a notice.
func (v *sendLoop) makeBody(ctx context.Context, n *onboarding.Notice) ([]byte, error) {
	var reason string
	if n.Reason.Sealed != nil {
		plain, err := v.cfg.Owners.Open(ctx, n.Reason.Sealed, seal.Reason(n.Ref, n.TriggerID))
		if err = v.unlessLost(ctx, n.Ref, err); err != nil {
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

// unlessLost returns nil if err reports that an owner's key was lost: the key store has the fence of this venue, and not the key.
// Notices about that owner are then sent without what the key sealed. Otherwise they and the other deliveries of the job would wait
// for ever. It returns any other error unchanged. A store that is not mounted has no fence either.
func (v *sendLoop) unlessLost(ctx context.Context, of owner.Ref, err error) error {
	if !errors.Is(err, seal.ErrMissing) {
		return err
	}
	if v.cfg.Confirm != nil {
		if failed := v.cfg.Confirm(ctx); failed != nil {
			return errors.Join(err, failed)
		}
	}
	v.cfg.Logger.Warn("webhooks: the key of an owner is lost: what it sealed is not sent or kept", "owner", of.String(), "error", err)
	return nil
}

// signing returns the signing keys of a webhook: the current one and, during a rotation, the next one.
func (v *sendLoop) signing(w *onboarding.Webhook) ([]ed25519.PrivateKey, error) {
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

func (v *sendLoop) key(of scalar.ID, k *onboarding.SigningKey) (ed25519.PrivateKey, error) {
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
