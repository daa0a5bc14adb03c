package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// The commands and events about deliveries.
const (
	CommandRecordAttempt  = "delivery.record_attempt"
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
	ID        scalar.ID
	WebhookID scalar.ID
	Tenant    string
	owner.Ref      // none, of test
	Final     bool // it tells of the end that the owner's erasure caused: it goes out although the owner is erased
	Status    webhook.Status
	Attempts  int // so far
	Before    int // of them, those before it was replayed: the schedule counts from there
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

func (p *RecordAttempt) decide(d *draft) error {
	v, known := d.state.deliveries[p.ID]
	if !known {
		return deliveryNotFound()
	}
	if err := p.check(); err != nil {
		return err
	}
	switch {
	case !v.Status.IsOpen(): // its registration was deleted while it was on its way
		return decide.Refuse(decide.Conflict, "DELIVERY_NOT_OPEN", "the delivery is not to be tried")
	case p.Number != v.Attempts+1: // two senders, or one that comes back after it was thought dead
		return decide.Refuse(decide.Conflict, "ATTEMPT_KNOWN", "the attempt is recorded already, or one before it is not")
	}
	e := &DeliveryAttempted{ID: v.ID, WebhookID: v.WebhookID, Tenant: v.Tenant, Number: p.Number, Started: p.Started, DurationMS: p.DurationMS,
		StatusCode: p.StatusCode, Error: p.Error, Reply: slices.Clone(p.Reply), Status: webhook.Delivered, Time: d.at.Time}
	if p.StatusCode != acknowledged {
		next, again := p.Schedule.Next(v.ID, p.Number-v.Before, d.at.Time, p.RetryAfter)
		e.Status = webhook.Dead
		if again {
			e.Status, e.NextAttempt = webhook.Retrying, next
		}
	}
	d.add(e)
	if w := d.state.webhooks[v.WebhookID]; e.Status != webhook.Delivered && w.Disabled == 0 && w.Failing != 0 && d.at.Time-w.Failing >= webhook.DisableAfter {
		d.add(&WebhookDisabled{ID: w.ID, Tenant: w.Tenant, Time: d.at.Time})
	}
	return nil
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
	c.Status, c.Attempts = e.Status, e.Number
	s.deliveries[c.ID] = &c
	if !c.Status.IsOpen() {
		s.closeDelivery(&c)
	}
	s.changeWebhook(c.WebhookID, func(w *Webhook) {
		switch {
		case e.Status == webhook.Delivered:
			w.Failing = 0
		case w.Failing == 0:
			w.Failing = e.Time
		}
	})
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
		c.Status, c.Before = webhook.Pending, c.Attempts
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
	c.Status = webhook.Canceled
	s.deliveries[c.ID] = &c
	s.closeDelivery(&c)
}

// Delivery returns a delivery of whichever tenant.
func (s *State) Delivery(id scalar.ID) (*Delivery, bool) {
	v, known := s.deliveries[id]
	return v, known
}
