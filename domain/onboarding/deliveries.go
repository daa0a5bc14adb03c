package onboarding

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// The commands and events about deliveries.
const (
	CommandRecordAttempt  = "delivery.record_attempt"
	CommandRecordAttempts = "delivery.record_attempts"

	TypeDeliveryCreated   = "delivery.created"
	TypeDeliveryAttempted = "delivery.attempted"
)

const (
	acknowledged = 200     // the one status that acknowledges a delivery
	maxError     = 255     // characters
	maxReply     = 1 << 10 // bytes: 256 and what sealing adds
	maxRetries   = 100
	maxWait      = 365 * scalar.Day
)

// Delivery is a notice on its way to a registration.
type Delivery struct {
	ID          scalar.ID
	WebhookID   scalar.ID
	NoticeID    scalar.ID
	Tenant      string
	owner.Ref        // none, of test
	Final       bool // it tells of the end that the owner's erasure caused: it goes out although the owner is erased
	Status      webhook.Status
	Attempts    int         // so far
	Before      int         // of them, those before it was replayed: the schedule counts from there
	NextAttempt scalar.Time // of one that is retried
	Made        Place
	Closed      int64 // the sequence of the record since which it is not to be tried any more; 0 while it is open
}

// Place is where in the log something was made: by an event of a record, which are counted from 0.
type Place struct {
	Sequence int64 `json:"sequence"`
	Ordinal  int64 `json:"ordinal"`
}

// Compare orders places as the log does.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Sequence, o.Sequence), cmp.Compare(p.Ordinal, o.Ordinal))
}

// deliver decides a delivery of a notice.
func (d *draft) deliver(w *Webhook, n *Notice) {
	d.add(&DeliveryCreated{ID: d.nextID(), WebhookID: w.ID, Tenant: w.Tenant, NoticeID: n.ID, Type: n.Type, Ref: n.Ref, Final: n.Code == OwnerErasedCode,
		Created: d.at.Time})
}

// RecordAttempt tells how an attempt went. The sender makes it, with the schedule that it follows.
//
// Events: delivery.attempted; webhook.disabled where all attempts have failed for too long. Refusals: NotFound
// DELIVERY_NOT_FOUND, also of one that is forgotten; Invalid; Conflict DELIVERY_NOT_OPEN, ATTEMPT_KNOWN.
type RecordAttempt struct {
	ID         scalar.ID
	Number     int // 1 for the first
	Started    scalar.Time
	DurationMS int64
	StatusCode int    // 0: no answer came
	Error      string // why none came
	Reply      Sealed // the first bytes of the answer
	RetryAfter scalar.Time
	Schedule   webhook.Schedule
}

// CommandType returns the type of the command.
func (*RecordAttempt) CommandType() string { return CommandRecordAttempt }

func (*RecordAttempt) givenBy() ActorKind { return BySystem }

func (p *RecordAttempt) decide(d *draft) error { return d.receipts().add(p) }

// MaxAttempts is how many attempts one command may tell of.
const MaxAttempts = 256

// RecordAttempts tells how several attempts went, each of another delivery. One that is not to be recorded is left out, as one
// that another command has told of: what is recorded is what the events say.
//
// Events: those of RecordAttempt, of each. Refusals: Invalid; those of RecordAttempt where nothing is recorded.
type RecordAttempts struct {
	Attempts []*RecordAttempt // without schedules
	Schedule webhook.Schedule // of all of them
}

// CommandType returns the type of the command.
func (*RecordAttempts) CommandType() string { return CommandRecordAttempts }

func (*RecordAttempts) givenBy() ActorKind { return BySystem }

func (p *RecordAttempts) decide(d *draft) error {
	if len(p.Attempts) == 0 || len(p.Attempts) > MaxAttempts || slices.Contains(p.Attempts, nil) {
		return invalid("attempts", "there must be 1 to 256 attempts")
	}
	r := d.receipts()
	var refused error
	for _, one := range p.Attempts {
		told := *one
		told.Schedule = p.Schedule
		if err := r.add(&told); err != nil {
			refused = cmp.Or(refused, err)
		}
	}
	if len(d.events) == 0 {
		return refused
	}
	return nil
}

// receipts are those that a draft adds. Each sees what those before it leave of its registration.
type receipts struct {
	*draft
	told  map[scalar.ID]bool
	hooks map[scalar.ID]*Webhook
}

func (d *draft) receipts() *receipts {
	return &receipts{d, make(map[scalar.ID]bool), make(map[scalar.ID]*Webhook)}
}

// add decides the receipt of an attempt.
func (r *receipts) add(p *RecordAttempt) error {
	v, known := r.state.deliveries[p.ID]
	if !known {
		return deliveryNotFound()
	}
	if err := p.check(); err != nil {
		return err
	}
	switch {
	case !v.Status.IsOpen(): // its registration was deleted while it was on its way
		return decide.Refuse(decide.Conflict, "DELIVERY_NOT_OPEN", "the delivery is not to be tried")
	case p.Number != v.Attempts+1 || r.told[p.ID]: // two senders, or one that comes back after it was thought dead
		return decide.Refuse(decide.Conflict, "ATTEMPT_KNOWN", "the attempt is recorded already, or one before it is not")
	}
	e := &DeliveryAttempted{ID: v.ID, WebhookID: v.WebhookID, Tenant: v.Tenant, Number: p.Number, Started: p.Started, DurationMS: p.DurationMS,
		StatusCode: p.StatusCode, Error: p.Error, Status: webhook.Delivered, Time: r.at.Time}
	// The last that is told of an owner goes out after its erasure, while its key is being destroyed. Whether a reply was still
	// sealed with that is chance, and nobody may read it any more.
	if r.stateOf(v.Ref) != owner.Erased {
		e.Reply = slices.Clone(p.Reply)
	}
	if p.StatusCode != acknowledged {
		next, again := p.Schedule.Next(v.ID, p.Number-v.Before, r.at.Time, p.RetryAfter)
		e.Status = webhook.Dead
		if again {
			e.Status, e.NextAttempt = webhook.Retrying, next
		}
	}
	r.draft.add(e)
	r.told[v.ID] = true
	r.judge(e)
	return nil
}

// judge decides whether a registration is disabled by an attempt: it failed, and all have for too long. What the receiver has no
// part in neither begins that time, nor ends it.
func (r *receipts) judge(e *DeliveryAttempted) {
	w := r.hooks[e.WebhookID]
	if w == nil {
		w = r.state.webhooks[e.WebhookID]
	}
	if webhook.ReceiverFailed(e.Status == webhook.Delivered, e.Error) && w.Disabled == 0 && w.Failing != 0 && r.at.Time-w.Failing >= webhook.DisableAfter {
		r.draft.add(&WebhookDisabled{ID: w.ID, Tenant: w.Tenant, Time: r.at.Time})
		c := *w
		c.Disabled = r.at.Time
		w = &c
	}
	if since := w.failingAfter(e); since != w.Failing {
		c := *w
		c.Failing = since
		w = &c
	}
	r.hooks[w.ID] = w
}

// failingAfter returns since when all attempts have failed, once another is known; zero: the last one did not.
func (w *Webhook) failingAfter(e *DeliveryAttempted) scalar.Time {
	switch {
	case e.Status == webhook.Delivered:
		return 0
	case w.Failing == 0 && webhook.ReceiverFailed(false, e.Error):
		return e.Time
	}
	return w.Failing
}

func (p *RecordAttempt) check() error {
	switch {
	case p.StatusCode != 0 && (p.StatusCode < 100 || p.StatusCode > 999):
		return invalid("status_code", "there is no such status")
	case !isText(p.Error, maxError):
		return invalid("error", "the error must be at most 255 characters without control characters")
	case len(p.Reply) > maxReply:
		return invalid("reply", "the sealed reply is too long")
	case !p.Started.Canonical() || p.DurationMS < 0:
		return invalid("started", "the attempt must lie in time")
	case p.RetryAfter < 0:
		return invalid("retry_after", "nothing is tried again before it was tried")
	case len(p.Schedule) > maxRetries || slices.ContainsFunc(p.Schedule, func(w scalar.Time) bool { return w < 0 || w > maxWait }):
		return invalid("schedule", "a schedule has at most 100 waits of at most a year")
	}
	return nil
}

func deliveryNotFound() error {
	return decide.Refuse(decide.NotFound, "DELIVERY_NOT_FOUND", "there is no such delivery")
}

// takes reports whether the registration that a delivery was made for is there. Its id may be another tenant's by now.
func (s *State) takes(v *Delivery) bool {
	w, known := s.webhooks[v.WebhookID]
	return known && w.Tenant == v.Tenant
}

// stateOf returns the state of an owner, "" of none.
func (d *draft) stateOf(ref owner.Ref) owner.State {
	o, known := d.state.Owner(ref)
	if !known {
		return ""
	}
	return o.State
}

// DeliveryCreated says that a notice is to be delivered to a registration.
type DeliveryCreated struct {
	ID        scalar.ID         `json:"id"`
	WebhookID scalar.ID         `json:"webhook_id"`
	Tenant    string            `json:"tenant"`
	NoticeID  scalar.ID         `json:"event_id"`
	Type      webhook.EventType `json:"event_type"`
	owner.Ref
	// Final says that it tells of the end that the owner's erasure caused.
	Final   bool        `json:"final,omitzero"`
	Created scalar.Time `json:"created_at"`
}

// EventType returns delivery.created.
func (*DeliveryCreated) EventType() string { return TypeDeliveryCreated }

// DeliveryAttempted is the receipt of one attempt, with what follows from it.
type DeliveryAttempted struct {
	ID          scalar.ID      `json:"id"`
	WebhookID   scalar.ID      `json:"webhook_id"`
	Tenant      string         `json:"tenant"`
	Number      int            `json:"number"`
	Started     scalar.Time    `json:"started_at"`
	DurationMS  int64          `json:"duration_ms"`
	StatusCode  int            `json:"status_code,omitzero"` // none: no answer came
	Error       string         `json:"error,omitempty"`
	Reply       Sealed         `json:"response,omitempty"`
	Status      webhook.Status `json:"status"`
	NextAttempt scalar.Time    `json:"next_attempt_at,omitzero"` // of a delivery that is tried again
	Time        scalar.Time    `json:"time"`
}

// EventType returns delivery.attempted.
func (*DeliveryAttempted) EventType() string { return TypeDeliveryAttempted }
