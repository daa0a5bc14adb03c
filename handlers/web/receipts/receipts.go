// Package receipts shows webhook deliveries with the receipts of their attempts, to tenants and operators.
package receipts

import (
	"context"
	"errors"
	"slices"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Receipts decrypts the replies of receivers.
type Receipts struct {
	Owners *seal.Owners
	Box    *seal.Box
}

// Show returns deliveries with the attempts of each. It decrypts the replies of receivers unless hidden reports that
// the owner's data must not be shown.
func (r Receipts) Show(ctx context.Context, db projections.DB, found []rows.Delivery, hidden func(owner.Ref) bool) ([]wire.Delivery, error) {
	attempts, err := rows.Attempts(ctx, db, found)
	if err != nil {
		return nil, err
	}
	if err := r.fetchKeys(ctx, found, attempts, hidden); err != nil {
		return nil, err
	}
	out := make([]wire.Delivery, len(found))
	for i := range found {
		out[i] = showDelivery(&found[i])
		for _, a := range attempts[found[i].ID] {
			var reply []byte
			if !hidden(found[i].Ref) {
				if reply, err = r.reply(ctx, &found[i], a.Reply); err != nil {
					return nil, err
				}
			}
			out[i].Attempts = append(out[i].Attempts, wire.NewAttempt(a.Number, a.Started, a.DurationMS, a.StatusCode, a.Error, reply))
		}
	}
	return out, nil
}

// fetchKeys fetches the keys for the replies in one request to the key store.
func (r Receipts) fetchKeys(ctx context.Context, found []rows.Delivery, attempts map[scalar.ID][]rows.Attempt, hidden func(owner.Ref) bool) error {
	var owners []string
	for i := range found {
		replied := slices.ContainsFunc(attempts[found[i].ID], func(a rows.Attempt) bool { return a.Reply != nil })
		if ref := found[i].Ref; replied && ref != (owner.Ref{}) && !hidden(ref) {
			owners = append(owners, ref.String())
		}
	}
	return problem.KeysFailed(r.Owners.Fetch(ctx, owners))
}

// reply decrypts the beginning of a receiver's reply. It returns nil if there was none or if the owner's key is
// destroyed.
func (r Receipts) reply(ctx context.Context, d *rows.Delivery, sealed domain.Sealed) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	if d.Ref == (owner.Ref{}) {
		return r.Box.Open(sealed, seal.TestResponse(d.Tenant, d.ID))
	}
	reply, err := r.Owners.Open(ctx, sealed, seal.DeliveryResponse(d.Ref, d.ID))
	if errors.Is(err, seal.ErrDestroyed) {
		return nil, nil
	}
	return reply, problem.KeysFailed(err)
}

// showDelivery returns a delivery without its attempts.
func showDelivery(d *rows.Delivery) wire.Delivery {
	out := wire.Delivery{ID: d.ID, WebhookID: d.WebhookID, EventID: d.NoticeID, EventType: d.Type, Status: d.Status, Created: d.Created,
		Attempts: []wire.Attempt{}}
	if d.Ref != (owner.Ref{}) {
		out.OwnerType, out.OwnerID = &d.Ref.Type, &d.Ref.ID
	}
	if d.NextAttempt != 0 {
		out.NextAttempt = &d.NextAttempt
	}
	return out
}
