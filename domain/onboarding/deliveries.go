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

// rulesOfLateAttempts is the first number of rules that record an attempt of a canceled delivery. Earlier rules refuse it with
// DELIVERY_NOT_OPEN.
const rulesOfLateAttempts = 6

const (
	acknowledged = 200     // the only status that acknowledges a delivery
	maxError     = 255     // characters
	maxReply     = 1 << 10 // in bytes: 256 and the overhead of sealing
	maxRetries   = 100
	maxWait      = 365 * scalar.Day
)

// Delivery is the delivery of one notice to one webhook.
type Delivery struct {
	ID          scalar.ID
	WebhookID   scalar.ID
	NoticeID    scalar.ID
	Tenant      string
	owner.Ref        // zero for test notices
	Final       bool // reports the end of a trigger caused by an erasure: sent although the owner is erased
	Status      webhook.Status
	Attempts    int         // so far
	Before      int         // attempts before the last replay: the schedule counts from there
	NextAttempt scalar.Time // zero unless Status is Retrying
	Made        EventPosition
	Closed      int64 // the sequence of the record that closed it; 0 while it is open
}

// EventPosition is the position of an event in the log: its record and its index in the record, from 0.
type EventPosition struct {
	Sequence int64 `json:"sequence"`
	Ordinal  int64 `json:"ordinal"`
}

// Compare orders positions as in the log.
func (p EventPosition) Compare(o EventPosition) int {
	return cmp.Or(cmp.Compare(p.Sequence, o.Sequence), cmp.Compare(p.Ordinal, o.Ordinal))
}

// deliver decides the delivery of a notice to a webhook.
func (d *draft) deliver(w *Webhook, n *Notice) {
	d.add(&DeliveryCreated{ID: d.nextID(), WebhookID: w.ID, Tenant: w.Tenant, NoticeID: n.ID, Type: n.Type, Ref: n.Ref, Final: n.Code == OwnerErasedCode,
		Created: d.at.Time})
}

// RecordAttempt reports the result of an attempt. The sender gives this command, with the schedule that it follows.
//
// An attempt that was under way when its delivery was canceled is recorded too, by rules 6. The delivery stays canceled, and
// the attempt says nothing about the webhook: another registration may have its id by now.
//
// Events: delivery.attempted; webhook.disabled if all attempts have failed for too long. Refusals: NotFound
// DELIVERY_NOT_FOUND, also for a forgotten delivery; Invalid; Conflict DELIVERY_NOT_OPEN, ATTEMPT_KNOWN.
type RecordAttempt struct {
	ID         scalar.ID
	Number     int // from 1
	Started    scalar.Time
	DurationMS int64
	StatusCode int    // 0: no answer
	Error      string // why there was no answer
	Reply      Sealed // the first bytes of the answer
	RetryAfter scalar.Time
	Schedule   webhook.Schedule
}

// CommandType returns the type of the command.
func (*RecordAttempt) CommandType() string { return CommandRecordAttempt }

func (*RecordAttempt) givenBy() ActorKind { return BySystem }

func (p *RecordAttempt) decide(d *draft) error { return d.receipts().add(p) }

// MaxAttempts is the greatest number of attempts in one command.
const MaxAttempts = 256

// RecordAttempts reports the results of several attempts, each for another delivery. Attempts that RecordAttempt would
// refuse are left out, such as those that another command has reported. The events show which attempts were recorded.
//
// Events: those of RecordAttempt, for each recorded attempt. Refusals: Invalid; the first refusal of RecordAttempt if
// nothing is recorded.
type RecordAttempts struct {
	Attempts []*RecordAttempt // without schedules
	Schedule webhook.Schedule // for all attempts
}

// CommandType returns the type of the command.
func (*RecordAttempts) CommandType() string { return CommandRecordAttempts }

func (*RecordAttempts) givenBy() ActorKind { return BySystem }

func (p *RecordAttempts) decide(d *draft) error {
	if len(p.Attempts) == 0 || len(p.Attempts) > MaxAttempts || slices.Contains(p.Attempts, nil) {
		return decide.InvalidField("attempts", "there must be 1 to 256 attempts")
	}
	r := d.receipts()
	var refused error
	for _, one := range p.Attempts {
		attempt := *one
		attempt.Schedule = p.Schedule
		if err := r.add(&attempt); err != nil {
			refused = cmp.Or(refused, err)
		}
	}
	if len(d.events) == 0 {
		return refused
	}
	return nil
}

// receipts adds the results of attempts to a draft. Each result sees the effects of the earlier ones on its webhook.
type receipts struct {
	*draft
	recorded map[scalar.ID]bool
	hooks    map[scalar.ID]*Webhook
}

func (d *draft) receipts() *receipts {
	return &receipts{d, make(map[scalar.ID]bool), make(map[scalar.ID]*Webhook)}
}

// add decides the result of an attempt.
func (r *receipts) add(p *RecordAttempt) error {
	v, known := r.state.deliveries[p.ID]
	if !known {
		return deliveryNotFound()
	}
	if err := p.check(); err != nil {
		return err
	}
	switch {
	case !v.Status.IsOpen() && !r.state.recordsLate(v):
		return decide.Refuse(decide.Conflict, "DELIVERY_NOT_OPEN", "the delivery is not to be tried")
	case p.Number != v.Attempts+1 || r.recorded[p.ID]: // two senders, or one that was considered dead and returned
		return decide.Refuse(decide.Conflict, "ATTEMPT_KNOWN", "the attempt is recorded already, or one before it is not")
	}
	e := &DeliveryAttempted{ID: v.ID, WebhookID: v.WebhookID, Tenant: v.Tenant, Number: p.Number, Started: p.Started, DurationMS: p.DurationMS,
		StatusCode: p.StatusCode, Error: p.Error, Status: webhook.Delivered, Time: r.at.Time}
	// The last notices about an owner are sent after its erasure, while its key is being destroyed. A reply may or may
	// not have been sealed before that, and must not be readable in either case.
	if r.stateOf(v.Ref) != owner.Erased {
		e.Reply = slices.Clone(p.Reply)
	}
	switch {
	case !v.Status.IsOpen(): // canceled during the attempt
		e.Status = webhook.Canceled
	case p.StatusCode != acknowledged:
		next, again := p.Schedule.Next(v.ID, p.Number-v.Before, r.at.Time, p.RetryAfter)
		e.Status = webhook.Dead
		if again {
			e.Status, e.NextAttempt = webhook.Retrying, next
		}
	}
	r.draft.add(e)
	r.attempts = append(r.attempts, p)
	r.recorded[v.ID] = true
	if e.Status != webhook.Canceled {
		r.judge(e)
	}
	return nil
}

// recordsLate reports whether the rules in force record an attempt of a delivery that is closed.
func (s *State) recordsLate(v *Delivery) bool {
	return v.Status == webhook.Canceled && s.core.ActiveRules() >= rulesOfLateAttempts
}

// judge decides whether an attempt disables its webhook: the attempt failed, and all attempts have failed for
// webhook.DisableAfter. An attempt that failed on the venue's side neither starts nor ends that period.
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

// failingAfter returns the start of the period in which all attempts have failed, after one more attempt. It is zero if
// the last attempt succeeded.
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
		return decide.InvalidField("status_code", "there is no such status")
	case !isText(p.Error, maxError):
		return decide.InvalidField("error", "the error must be at most 255 characters without control characters")
	case len(p.Reply) > maxReply:
		return decide.InvalidField("reply", "the sealed reply is too long")
	case !p.Started.Canonical() || p.DurationMS < 0:
		return decide.InvalidField("started", "the attempt must lie in time")
	case p.RetryAfter < 0:
		return decide.InvalidField("retry_after", "nothing is tried again before it was tried")
	case len(p.Schedule) > maxRetries || slices.ContainsFunc(p.Schedule, func(w scalar.Time) bool { return w < 0 || w > maxWait }):
		return decide.InvalidField("schedule", "a schedule has at most 100 waits of at most a year")
	}
	return nil
}

func deliveryNotFound() error {
	return decide.Refuse(decide.NotFound, "DELIVERY_NOT_FOUND", "there is no such delivery")
}

// takes reports whether the webhook of a delivery still exists. The id alone does not prove it: another tenant may use
// it by now.
func (s *State) takes(v *Delivery) bool {
	w, known := s.webhooks[v.WebhookID]
	return known && w.Tenant == v.Tenant
}

// stateOf returns the state of an owner, or "" if there is no such owner.
func (d *draft) stateOf(ref owner.Ref) owner.State {
	o, known := d.state.Owner(ref)
	if !known {
		return ""
	}
	return o.State
}

// DeliveryCreated says that a notice must be delivered to a webhook.
type DeliveryCreated struct {
	ID        scalar.ID         `json:"id"`
	WebhookID scalar.ID         `json:"webhook_id"`
	Tenant    string            `json:"tenant"`
	NoticeID  scalar.ID         `json:"event_id"`
	Type      webhook.EventType `json:"event_type"`
	owner.Ref
	// Final says that the notice reports the end of a trigger caused by an erasure.
	Final   bool        `json:"final,omitzero"`
	Created scalar.Time `json:"created_at"`
}

// EventType returns delivery.created.
func (*DeliveryCreated) EventType() string { return TypeDeliveryCreated }

// DeliveryAttempted is the result of one attempt and its consequences.
type DeliveryAttempted struct {
	ID          scalar.ID      `json:"id"`
	WebhookID   scalar.ID      `json:"webhook_id"`
	Tenant      string         `json:"tenant"`
	Number      int            `json:"number"`
	Started     scalar.Time    `json:"started_at"`
	DurationMS  int64          `json:"duration_ms"`
	StatusCode  int            `json:"status_code,omitzero"` // missing if there was no answer
	Error       string         `json:"error,omitempty"`
	Reply       Sealed         `json:"response,omitempty"`
	Status      webhook.Status `json:"status"`                   // Canceled if the delivery was canceled during the attempt
	NextAttempt scalar.Time    `json:"next_attempt_at,omitzero"` // set if the delivery is retried
	Time        scalar.Time    `json:"time"`
}

// EventType returns delivery.attempted.
func (*DeliveryAttempted) EventType() string { return TypeDeliveryAttempted }
