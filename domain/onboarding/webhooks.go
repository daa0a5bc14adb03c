package onboarding

import (
	"crypto/ed25519"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// The commands and events about webhooks.
const (
	CommandCreateWebhook = "webhook.create"
	CommandDeleteWebhook = "webhook.delete"
	CommandRotateWebhook = "webhook.rotate"
	CommandEnableWebhook = "webhook.enable"
	CommandTestWebhook   = "webhook.test"

	TypeWebhookCreated  = "webhook.created"
	TypeWebhookDeleted  = "webhook.deleted"
	TypeRotationBegun   = "webhook.rotation_begun"
	TypeWebhookRotated  = "webhook.rotated"
	TypeWebhookEnabled  = "webhook.enabled"
	TypeWebhookDisabled = "webhook.disabled"
)

const (
	maxURL        = 2048
	maxPrivateKey = 1 << 10 // sealed
	// maxOverlap is the greatest time for which two keys sign at the same time.
	maxOverlap = 30 * scalar.Day
)

// SigningKey is an Ed25519 key that signs deliveries.
type SigningKey struct {
	KeyID   string `json:"key_id"`
	Public  []byte `json:"public_key"`
	Private Sealed `json:"private_key"` // sealed with the webhook as owner
}

func (k SigningKey) clone() SigningKey {
	k.Public, k.Private = slices.Clone(k.Public), slices.Clone(k.Private)
	return k
}

func (k SigningKey) check() error {
	switch {
	case k.KeyID == "" || !isText(k.KeyID, maxCode):
		return decide.InvalidField("key_id", "the key's id must be 1 to 64 characters")
	case len(k.Public) != ed25519.PublicKeySize:
		return decide.InvalidField("public_key", "the public key must have 32 bytes")
	case len(k.Private) == 0 || len(k.Private) > maxPrivateKey:
		return decide.InvalidField("private_key", "the sealed private key is missing or too long")
	}
	return nil
}

// Webhook is the registration of a tenant's endpoint for notices.
type Webhook struct {
	ID     scalar.ID           `json:"id"`
	Tenant string              `json:"tenant"`
	URL    string              `json:"url"`
	All    bool                `json:"include_all_events"`
	Types  []webhook.EventType `json:"event_types"` // empty if All is set
	Key    SigningKey          `json:"key"`
	// Next is the key that replaces Key at NextFrom. It is nil unless the key is being rotated.
	Next     *SigningKey `json:"next_key,omitempty"`
	NextFrom scalar.Time `json:"next_key_from,omitzero"`
	Created  scalar.Time `json:"created_at"`
	// Disabled is the time since which nothing is delivered, or zero if the webhook is enabled.
	Disabled scalar.Time `json:"disabled_at,omitzero"`
	// Failing is the time of the first attempt of a period in which all attempts have failed. It is zero if the last
	// attempt succeeded or there was none.
	Failing scalar.Time `json:"failing_since,omitzero"`
}

func (w *Webhook) clone() *Webhook {
	c := *w
	c.Types, c.Key = append([]webhook.EventType{}, w.Types...), w.Key.clone()
	if w.Next != nil {
		next := w.Next.clone()
		c.Next = &next
	}
	return &c
}

// Wants reports whether the webhook receives notices of the type.
func (w *Webhook) Wants(t webhook.EventType) bool {
	return webhook.Selection{All: w.All, Types: w.Types}.Wants(t)
}

// CreateWebhook asks to register a webhook of the client's tenant.
//
// Event: webhook.created. Refusals: Invalid; Conflict WEBHOOK_ID_TAKEN, TOO_MANY_WEBHOOKS.
type CreateWebhook struct {
	ID    scalar.ID
	URL   string
	All   bool
	Types []webhook.EventType // ignored if All is set
	Key   SigningKey
}

// CommandType returns the type of the command.
func (*CreateWebhook) CommandType() string { return CommandCreateWebhook }

func (*CreateWebhook) givenBy() ActorKind { return ByClient }

func (p *CreateWebhook) decide(d *draft) error {
	w := (&Webhook{ID: p.ID, Tenant: d.actor.Broker, URL: p.URL, All: p.All, Types: p.Types, Key: p.Key, Created: d.at.Time}).clone()
	if w.All {
		w.Types = []webhook.EventType{}
	}
	if err := w.check(); err != nil {
		return err
	}
	if _, taken := d.state.webhooks[w.ID]; taken {
		return decide.Refuse(decide.Conflict, "WEBHOOK_ID_TAKEN", "there is a webhook with this id")
	}
	if len(d.state.hooksOf[w.Tenant]) >= webhook.MaxPerTenant {
		return decide.Refuse(decide.Conflict, "TOO_MANY_WEBHOOKS", "the tenant has as many webhooks as there may be: delete one first")
	}
	d.add(&WebhookCreated{*w})
	return nil
}

func (w *Webhook) check() error {
	rest, secure := strings.CutPrefix(w.URL, "https://")
	switch {
	case w.ID.IsZero():
		return decide.InvalidField("id", "a webhook has an id")
	case !secure || rest == "" || len(w.URL) > maxURL || !isText(w.URL, maxURL):
		return decide.InvalidField("url", "the URL must begin with https:// and have at most 2048 characters")
	case !w.All && len(w.Types) == 0:
		return decide.InvalidField("event_types", "at least one type of event is needed")
	}
	for i, t := range w.Types {
		if _, known := webhook.ParseEventType(string(t)); !known || slices.Contains(w.Types[:i], t) {
			return decide.InvalidField("event_types", "a type is unknown or named twice")
		}
	}
	return w.Key.check()
}

// DeleteWebhook asks to delete a webhook. Its open deliveries are canceled.
//
// Event: webhook.deleted. Refusals: NotFound WEBHOOK_NOT_FOUND.
type DeleteWebhook struct{ ID scalar.ID }

// CommandType returns the type of the command.
func (*DeleteWebhook) CommandType() string { return CommandDeleteWebhook }

func (*DeleteWebhook) givenBy() ActorKind { return ByClient }

func (p *DeleteWebhook) decide(d *draft) error {
	w, err := d.webhook(p.ID)
	if err != nil {
		return err
	}
	d.add(&WebhookDeleted{ID: w.ID, Tenant: w.Tenant, Time: d.at.Time})
	return nil
}

// RotateWebhook asks to replace the signing key. Both keys sign during the overlap, then only the new one.
//
// Event: webhook.rotation_begun; webhook.rotated at the end of the overlap. Refusals: NotFound WEBHOOK_NOT_FOUND;
// Invalid; Conflict WEBHOOK_ROTATING.
type RotateWebhook struct {
	ID      scalar.ID
	Key     SigningKey
	Overlap scalar.Time // a duration
}

// CommandType returns the type of the command.
func (*RotateWebhook) CommandType() string { return CommandRotateWebhook }

func (*RotateWebhook) givenBy() ActorKind { return ByClient }

func (p *RotateWebhook) decide(d *draft) error {
	w, err := d.webhook(p.ID)
	if err != nil {
		return err
	}
	if err := p.Key.check(); err != nil {
		return err
	}
	if p.Overlap < 0 || p.Overlap > maxOverlap {
		return decide.InvalidField("overlap", "two keys may be in use for at most 30 days")
	}
	if w.Next != nil {
		return decide.Refuse(decide.Conflict, "WEBHOOK_ROTATING", "the key is being rotated already")
	}
	changed, next := w.clone(), p.Key.clone()
	changed.Next, changed.NextFrom = &next, d.at.Time+p.Overlap
	d.add(&RotationBegun{Webhook: *changed, Time: d.at.Time})
	return nil
}

// EnableWebhook asks to resume deliveries to a disabled webhook, beginning with the accumulated ones.
//
// Event: webhook.enabled. Refusals: NotFound WEBHOOK_NOT_FOUND; Conflict WEBHOOK_NOT_DISABLED.
type EnableWebhook struct{ ID scalar.ID }

// CommandType returns the type of the command.
func (*EnableWebhook) CommandType() string { return CommandEnableWebhook }

func (*EnableWebhook) givenBy() ActorKind { return ByClient }

func (p *EnableWebhook) decide(d *draft) error {
	w, err := d.webhook(p.ID)
	if err != nil {
		return err
	}
	if w.Disabled == 0 {
		return decide.Refuse(decide.Conflict, "WEBHOOK_NOT_DISABLED", "the webhook is not disabled")
	}
	changed := w.clone()
	changed.Disabled, changed.Failing = 0, 0
	d.add(&WebhookEnabled{Webhook: *changed, Time: d.at.Time})
	return nil
}

// TestWebhook asks to send a test notice without content to one webhook.
//
// Events: notice.given, delivery.created. Refusals: NotFound WEBHOOK_NOT_FOUND; Conflict EVENT_NOT_SELECTED.
type TestWebhook struct{ ID scalar.ID }

// CommandType returns the type of the command.
func (*TestWebhook) CommandType() string { return CommandTestWebhook }

func (*TestWebhook) givenBy() ActorKind { return ByClient }

func (p *TestWebhook) decide(d *draft) error {
	w, err := d.webhook(p.ID)
	if err != nil {
		return err
	}
	if !w.Wants(webhook.Test) {
		return decide.Refuse(decide.Conflict, "EVENT_NOT_SELECTED", "the webhook does not want test events")
	}
	n := Notice{ID: d.nextID(), Form: bodyForm, Type: webhook.Test, Tenant: w.Tenant, Time: d.at.Time}
	d.add(&NoticeGiven{n})
	d.deliver(w, &n)
	return nil
}

// webhook returns a webhook of the client's tenant.
func (d *draft) webhook(id scalar.ID) (*Webhook, error) {
	w, known := d.state.webhooks[id]
	if !known || w.Tenant != d.actor.Broker {
		return nil, decide.Refuse(decide.NotFound, "WEBHOOK_NOT_FOUND", "there is no such webhook")
	}
	return w, nil
}

// rotated decides the end of a rotation.
func (d *draft) rotated(id scalar.ID) {
	w := d.state.webhooks[id]
	d.add(&WebhookRotated{ID: id, Tenant: w.Tenant, KeyID: w.Next.KeyID, Time: d.at.Time})
}

// WebhookCreated contains a new webhook.
type WebhookCreated struct{ Webhook }

// EventType returns webhook.created.
func (*WebhookCreated) EventType() string { return TypeWebhookCreated }

// WebhookDeleted says that a webhook was deleted and that its open deliveries are canceled.
type WebhookDeleted struct {
	ID     scalar.ID   `json:"id"`
	Tenant string      `json:"tenant"`
	Time   scalar.Time `json:"deleted_at"`
}

// EventType returns webhook.deleted.
func (*WebhookDeleted) EventType() string { return TypeWebhookDeleted }

// RotationBegun contains the complete webhook. Its next key also signs from now on, and becomes the only key at
// NextFrom.
type RotationBegun struct {
	Webhook
	Time scalar.Time `json:"time"`
}

// EventType returns webhook.rotation_begun.
func (*RotationBegun) EventType() string { return TypeRotationBegun }

// WebhookRotated says that the next key has replaced the old one.
type WebhookRotated struct {
	ID     scalar.ID   `json:"id"`
	Tenant string      `json:"tenant"`
	KeyID  string      `json:"key_id"` // of the key now in use
	Time   scalar.Time `json:"time"`
}

// EventType returns webhook.rotated.
func (*WebhookRotated) EventType() string { return TypeWebhookRotated }

// WebhookEnabled contains the complete webhook. Deliveries to it resume.
type WebhookEnabled struct {
	Webhook
	Time scalar.Time `json:"enabled_at"`
}

// EventType returns webhook.enabled.
func (*WebhookEnabled) EventType() string { return TypeWebhookEnabled }

// WebhookDisabled says that deliveries to a webhook stopped because all attempts had failed for too long.
type WebhookDisabled struct {
	ID     scalar.ID   `json:"id"`
	Tenant string      `json:"tenant"`
	Time   scalar.Time `json:"disabled_at"`
}

// EventType returns webhook.disabled.
func (*WebhookDisabled) EventType() string { return TypeWebhookDisabled }

func (s *State) addWebhook(w *Webhook) {
	s.webhooks[w.ID] = w
	s.hooksOf[w.Tenant] = append(s.hooksOf[w.Tenant], w.ID)
}

func (s *State) deleteWebhook(at int64, e *WebhookDeleted) {
	delete(s.webhooks, e.ID)
	left := slices.DeleteFunc(s.hooksOf[e.Tenant], func(id scalar.ID) bool { return id == e.ID })
	if s.hooksOf[e.Tenant] = left; len(left) == 0 {
		delete(s.hooksOf, e.Tenant)
	}
	s.due.drop(dueKey{dueRotation, e.ID})
	s.cancelDeliveries(at, e.ID)
}

func (s *State) changeWebhook(id scalar.ID, change func(*Webhook)) {
	if w, known := s.webhooks[id]; known {
		c := w.clone() // readers may hold the old webhook
		change(c)
		s.webhooks[id] = c
	}
}

func (f *fold) webhookCreated(e *WebhookCreated) { f.addWebhook(e.Webhook.clone()) }

func (f *fold) webhookDeleted(e *WebhookDeleted) { f.deleteWebhook(f.position.Sequence, e) }

func (f *fold) rotationBegun(e *RotationBegun) {
	f.changeWebhook(e.ID, func(w *Webhook) {
		*w = *e.Webhook.clone()
		f.due.set(dueKey{dueRotation, w.ID}, e.NextFrom)
	})
}

func (f *fold) webhookRotated(e *WebhookRotated) {
	f.changeWebhook(e.ID, func(w *Webhook) {
		if w.Next != nil {
			w.Key, w.Next, w.NextFrom = *w.Next, nil, 0
		}
		f.due.drop(dueKey{dueRotation, w.ID})
	})
}

func (f *fold) webhookEnabled(e *WebhookEnabled) {
	f.changeWebhook(e.ID, func(w *Webhook) { *w = *e.Webhook.clone() })
}

func (f *fold) webhookDisabled(e *WebhookDisabled) {
	f.changeWebhook(e.ID, func(w *Webhook) { w.Disabled = e.Time })
}

func (f *fold) deliveryCreated(e *DeliveryCreated) {
	f.made++
	f.addDelivery(&Delivery{ID: e.ID, WebhookID: e.WebhookID, NoticeID: e.NoticeID, Tenant: e.Tenant, Ref: e.Ref, Final: e.Final, Status: webhook.Pending,
		Made: f.position})
}

func (f *fold) deliveryAttempted(e *DeliveryAttempted) { f.noteAttempt(f.position.Sequence, e) }

// Webhook returns a webhook of any tenant.
func (s *State) Webhook(id scalar.ID) (*Webhook, bool) {
	w, known := s.webhooks[id]
	return w, known
}

// Webhooks returns a tenant's webhooks in the order of creation.
func (s *State) Webhooks(tenant string) []*Webhook {
	out := make([]*Webhook, 0, len(s.hooksOf[tenant]))
	for _, id := range s.hooksOf[tenant] {
		out = append(out, s.webhooks[id])
	}
	return out
}
