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
	CommandReplayDelivery = "delivery.replay"

	TypeDeliveryCreated   = "delivery.created"
	TypeDeliveryAttempted = "delivery.attempted"
	TypeDeliveryReplayed  = "delivery.replayed"
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
	Made        int64       // its number among all deliveries, in the order of the log, from 1
}

// deliver decides a delivery of a notice.
func (d *draft) deliver(w *Webhook, n *Notice) {
	d.add(&DeliveryCreated{ID: d.nextID(), WebhookID: w.ID, Tenant: w.Tenant, NoticeID: n.ID, Type: n.Type, Ref: n.Ref, Final: n.Code == OwnerErasedCode,
		Created: d.at.Time})
}

// RecordAttempt tells how an attempt went. The sender makes it, with the schedule that it follows.
//
// Events: delivery.attempted; webhook.disabled where all attempts have failed for too long. Refusals: NotFound
// DELIVERY_NOT_FOUND; Invalid; Conflict DELIVERY_NOT_OPEN, ATTEMPT_KNOWN.
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

// ReplayDelivery asks that a delivery that is final be tried again, from the beginning of the schedule.
//
// Event: delivery.replayed. Refusals: NotFound DELIVERY_NOT_FOUND; Conflict DELIVERY_OPEN, DELIVERY_CANCELED,
// OWNER_ERASED, OWNER_RESTRICTED; NotFound of the owner for the tenant of one who is restricted.
type ReplayDelivery struct {
	ID       scalar.ID
	Operator bool // an operator asks, who sees every tenant's
}

// CommandType returns the type of the command.
func (*ReplayDelivery) CommandType() string { return CommandReplayDelivery }

func (p *ReplayDelivery) givenBy() ActorKind {
	if p.Operator {
		return ByOperator
	}
	return ByClient
}

func (p *ReplayDelivery) decide(d *draft) error {
	v, known := d.state.deliveries[p.ID]
	switch {
	case !known || !p.Operator && v.Tenant != d.actor.Broker:
		return deliveryNotFound()
	case d.stateOf(v.Ref) == owner.Restricted && p.Operator:
		return ownerRestricted()
	case d.stateOf(v.Ref) == owner.Restricted: // who is not there for its tenant
		return ownerNotFound(v.Type)
	case v.Status.IsOpen():
		return decide.Refuse(decide.Conflict, "DELIVERY_OPEN", "the delivery is still being tried")
	case d.stateOf(v.Ref) == owner.Erased:
		return decide.Refuse(decide.Conflict, "OWNER_ERASED", "the owner is erased: what was told cannot be told again")
	case v.Status == webhook.Canceled || !d.state.takes(v):
		return decide.Refuse(decide.Conflict, "DELIVERY_CANCELED", "the delivery's webhook is gone")
	}
	d.add(&DeliveryReplayed{ID: v.ID, WebhookID: v.WebhookID, Tenant: v.Tenant, Attempts: v.Attempts, By: d.by, Time: d.at.Time})
	return nil
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

// EventVersion returns 1.
func (*DeliveryCreated) EventVersion() int { return 1 }

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

// EventVersion returns 1.
func (*DeliveryAttempted) EventVersion() int { return 1 }

// DeliveryReplayed says that a delivery is pending again.
type DeliveryReplayed struct {
	ID        scalar.ID   `json:"id"`
	WebhookID scalar.ID   `json:"webhook_id"`
	Tenant    string      `json:"tenant"`
	Attempts  int         `json:"attempts"` // so far
	By        ActorKind   `json:"actor_kind"`
	Time      scalar.Time `json:"time"`
}

// EventType returns delivery.replayed.
func (*DeliveryReplayed) EventType() string { return TypeDeliveryReplayed }

// EventVersion returns 1.
func (*DeliveryReplayed) EventVersion() int { return 1 }

// addDelivery has a delivery be pending, at first or again.
func (s *State) addDelivery(v *Delivery) {
	s.deliveries[v.ID] = v
	open, some := s.openOf[v.WebhookID]
	if !some {
		open = make(map[scalar.ID]bool)
		s.openOf[v.WebhookID] = open
	}
	open[v.ID] = true
}

func (s *State) noteAttempt(e *DeliveryAttempted) {
	v, known := s.deliveries[e.ID]
	if !known {
		return
	}
	c := *v // what was read before is not changed
	c.Status, c.Attempts, c.NextAttempt = e.Status, e.Number, e.NextAttempt
	s.deliveries[c.ID] = &c
	if !c.Status.IsOpen() {
		s.closeDelivery(&c)
	}
	if w, there := s.webhooks[c.WebhookID]; there && w.failingAfter(e) != w.Failing {
		s.changeWebhook(w.ID, func(w *Webhook) { w.Failing = w.failingAfter(e) })
	}
}

func (s *State) closeDelivery(v *Delivery) {
	delete(s.openOf[v.WebhookID], v.ID)
	if len(s.openOf[v.WebhookID]) == 0 {
		delete(s.openOf, v.WebhookID)
	}
}

func (s *State) replay(e *DeliveryReplayed) {
	if v, known := s.deliveries[e.ID]; known {
		c := *v
		c.Status, c.Before, c.NextAttempt = webhook.Pending, c.Attempts, 0
		s.addDelivery(&c)
	}
}

// cancelDeliveries cancels all that is open of a registration.
func (s *State) cancelDeliveries(id scalar.ID) {
	for open := range s.openOf[id] { // each on its own, so their order is all one
		s.cancelDelivery(s.deliveries[open])
	}
}

func (s *State) cancelDelivery(v *Delivery) {
	c := *v // what was read before is not changed
	c.Status, c.NextAttempt = webhook.Canceled, 0
	s.deliveries[c.ID] = &c
	s.closeDelivery(&c)
}

// OpenDeliveries returns the deliveries that are still to be tried, in the order of the log.
func (s *State) OpenDeliveries() []*Delivery {
	var out []*Delivery
	for _, open := range s.openOf { // sorted below
		for id := range open {
			out = append(out, s.deliveries[id])
		}
	}
	slices.SortFunc(out, func(a, b *Delivery) int { return cmp.Compare(a.Made, b.Made) })
	return out
}

// Delivery returns a delivery of whichever tenant.
func (s *State) Delivery(id scalar.ID) (*Delivery, bool) {
	v, known := s.deliveries[id]
	return v, known
}
