package onboarding

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Webhook is a registration. Since when it has been failing is not here: only the rules use it, and it would change with
// many an attempt.
type Webhook struct {
	domain.Webhook
	Sequence int64 // of the record that changed it last

	types []string
	next  domain.SigningKey // zero for none
}

type webhookRow = projections.Row[Webhook]

var webhooks = &projections.Table[Webhook]{
	Name: "webhooks", Journal: journalName, Keys: []string{"created_sequence", "created_ordinal"},
	Columns: []c.Column[webhookRow]{
		c.ID("id", func(r *webhookRow) *scalar.ID { return &r.Value.ID }).Key(),
		c.Text("tenant", func(r *webhookRow) *string { return &r.Value.Tenant }),
		c.Text("url", func(r *webhookRow) *string { return &r.Value.URL }),
		c.Bool("include_all_events", func(r *webhookRow) *bool { return &r.Value.All }),
		c.Words("event_types", func(r *webhookRow) *[]string { return &r.Value.types }),
		c.Text("key_id", func(r *webhookRow) *string { return &r.Value.Key.KeyID }),
		c.Bytes("public_key", func(r *webhookRow) *[]byte { return &r.Value.Key.Public }),
		c.Bytes("private_key", func(r *webhookRow) *domain.Sealed { return &r.Value.Key.Private }),
		c.NullText("next_key_id", func(r *webhookRow) *string { return &r.Value.next.KeyID }),
		c.Bytes("next_public_key", func(r *webhookRow) *[]byte { return &r.Value.next.Public }),
		c.Bytes("next_private_key", func(r *webhookRow) *domain.Sealed { return &r.Value.next.Private }),
		c.Time("next_key_from", func(r *webhookRow) *scalar.Time { return &r.Value.NextFrom }),
		c.Time("disabled_at", func(r *webhookRow) *scalar.Time { return &r.Value.Disabled }),
		c.Time("created_at", func(r *webhookRow) *scalar.Time { return &r.Value.Created }),
		c.Int("created_sequence", func(r *webhookRow) *int64 { return &r.Key.Sequence }),
		c.Small("created_ordinal", func(r *webhookRow) *int64 { return &r.Key.Ordinal }),
		c.Int("sequence", func(r *webhookRow) *int64 { return &r.Value.Sequence }),
	},
	Loaded: func(r *webhookRow) error {
		w := &r.Value
		w.Types = make([]webhook.EventType, len(w.types))
		for i, t := range w.types {
			w.Types[i] = webhook.EventType(t)
		}
		if next := w.next; next.KeyID != "" {
			w.Next = &next
		}
		w.types, w.next = nil, domain.SigningKey{}
		return nil
	},
}

// The groups of columns of a webhook that change together.
const (
	webhookWhole = iota
	webhookKeys
	webhookDisabled
)

// webhookChange is a webhook's row after a batch. A webhook created by the batch may replace an earlier one with the
// same id.
type webhookChange struct {
	changed[Webhook]
	gone    bool // at the end
	rotated bool // the next key that its row has takes the place of the key
}

type webhookChanges struct {
	webhooks projections.Latest[scalar.ID, webhookChange]
}

func newWebhooks(*projections.Batch) *webhookChanges { return &webhookChanges{} }

func (x *webhookChanges) slot(at position, id scalar.ID, group int) *webhookChange {
	r, _ := x.webhooks.Slot(id)
	r.groups |= 1 << group
	r.Value.ID, r.Value.Sequence = id, at.Sequence
	return r
}

// set takes a whole registration over.
func (x *webhookChanges) set(at position, w domain.Webhook) *webhookChange {
	r := x.slot(at, w.ID, webhookWhole)
	r.rotated = false // the keys are known now
	r.Value = Webhook{Webhook: w, Sequence: at.Sequence, types: make([]string, len(w.Types))}
	for i, t := range w.Types {
		r.Value.types[i] = string(t)
	}
	if w.Next != nil {
		r.Value.next = *w.Next
	}
	return r
}

func (x *webhookChanges) add(at position, event decide.Event) {
	switch e := event.(type) {
	case *domain.WebhookCreated:
		r := x.set(at, e.Webhook)
		r.Key, r.made, r.gone = at.Key, true, false
	case *domain.WebhookDeleted:
		x.slot(at, e.ID, webhookWhole).gone = true
	case *domain.RotationBegun:
		x.set(at, e.Webhook)
	case *domain.WebhookEnabled:
		x.set(at, e.Webhook)
	case *domain.WebhookRotated:
		x.rotate(at, e)
	case *domain.WebhookDisabled:
		x.slot(at, e.ID, webhookDisabled).Value.Disabled = e.Time
	}
}

// rotate puts the next key in the place of the key. Where the batch does not say which that is, the row does.
func (x *webhookChanges) rotate(at position, e *domain.WebhookRotated) {
	r := x.slot(at, e.ID, webhookKeys)
	if r.groups&(1<<webhookWhole) == 0 {
		r.rotated = true
		return
	}
	r.Value.Key, r.Value.next, r.Value.NextFrom = r.Value.next, domain.SigningKey{}, 0
}

func (x *webhookChanges) write(b *projections.Batch) {
	var made []webhookRow
	var there []changed[Webhook]
	var gone, rotated []pgtype.UUID
	for _, w := range x.webhooks.Rows() {
		switch {
		case w.gone:
			gone = append(gone, c.UUID(w.Value.ID))
		case w.made:
			made = append(made, w.Row)
		default:
			there = append(there, w.changed)
			if w.rotated {
				rotated = append(rotated, c.UUID(w.Value.ID))
			}
		}
	}
	if len(gone) > 0 {
		b.Queue("DELETE FROM webhooks WHERE id = ANY($1)", gone)
	}
	if len(rotated) > 0 {
		b.Change(len(rotated), `UPDATE webhooks SET key_id = next_key_id, public_key = next_public_key, private_key = next_private_key,
			next_key_id = NULL, next_public_key = NULL, next_private_key = NULL, next_key_from = NULL WHERE id = ANY($1)`, rotated)
	}
	webhooks.Upsert(b, made)
	put(b, webhooks, there, []string{"key_id", "public_key", "private_key", "next_key_id", "next_public_key", "next_private_key", "next_key_from",
		"disabled_at", "sequence"}, []string{"sequence"}, []string{"disabled_at", "sequence"})
}

// Webhooks returns a numbered page of a tenant's registrations, newest first, and how many there are; of every tenant's for an
// operator.
func Webhooks(ctx context.Context, db projections.DB, v Viewer, size, offset int) (rows []Webhook, total int, asOf int64, err error) {
	l := projections.List[Webhook]{Table: webhooks, Order: newest}
	l.Where.AndText("tenant", v.Tenant)
	return l.Numbered(ctx, db, size, offset)
}

// AllWebhooks returns the table of registrations.
func AllWebhooks() *projections.Table[Webhook] { return webhooks }
