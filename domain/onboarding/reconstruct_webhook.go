package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// Reconstruct implements decide.Payload.
func (p *CreateWebhook) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*WebhookCreated](r); ok {
		*p = CreateWebhook{ID: e.ID, URL: e.URL, All: e.All, Types: e.Types, Key: e.Key}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *DeleteWebhook) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*WebhookDeleted](r); ok {
		p.ID = e.ID
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *RotateWebhook) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*RotationBegun](r); ok && e.Next != nil {
		*p = RotateWebhook{ID: e.ID, Key: e.Next.clone(), Overlap: e.NextFrom - r.At.Time}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *EnableWebhook) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*WebhookEnabled](r); ok {
		p.ID = e.ID
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *TestWebhook) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*DeliveryCreated](r); ok {
		p.ID = e.WebhookID
	}
	return nil
}

// attemptsInput is the input of RecordAttempt and RecordAttempts. It is empty if the record has no failed attempt.
type attemptsInput struct {
	// Schedule is the sender's schedule: the waits before each retry, in microseconds.
	Schedule []int64 `json:"schedule,omitempty"`
	// RetryAfter has the receiver's Retry-After in microseconds, or 0, for each attempt in the record.
	RetryAfter []int64 `json:"retry_after,omitempty"`
}

func inputOf(attempts []*RecordAttempt) any {
	var in attemptsInput
	after, manual := make([]int64, len(attempts)), false
	for n, a := range attempts {
		if a.StatusCode == acknowledged {
			continue
		}
		after[n], manual = int64(a.RetryAfter), manual || a.RetryAfter != 0
		if in.Schedule == nil {
			for _, wait := range a.Schedule {
				in.Schedule = append(in.Schedule, int64(wait))
			}
		}
	}
	if manual {
		in.RetryAfter = after
	}
	return in
}

// attempts returns the attempts that a record carries, and the schedule that they follow.
func attempts(r *decide.Evidence) (all []*RecordAttempt, schedule webhook.Schedule, err error) {
	var in attemptsInput
	if err := r.ReadInput(&in); err != nil {
		return nil, nil, err
	}
	for _, wait := range in.Schedule {
		schedule = append(schedule, scalar.Time(wait))
	}
	for _, e := range r.Events {
		if e, ok := e.(*DeliveryAttempted); ok {
			a := &RecordAttempt{ID: e.ID, Number: e.Number, Started: e.Started, DurationMS: e.DurationMS, StatusCode: e.StatusCode,
				Error: e.Error, Reply: e.Reply}
			if n := len(all); n < len(in.RetryAfter) {
				a.RetryAfter = scalar.Time(in.RetryAfter[n])
			}
			all = append(all, a)
		}
	}
	return all, schedule, nil
}

// NewInput implements decide.Partial.
func (*RecordAttempt) NewInput() any { return new(attemptsInput) }

// Lacks implements decide.Partial.
func (*RecordAttempt) Lacks(r *decide.Evidence) bool { return hasFailedAttempt(r) }

// hasFailedAttempt reports whether a record has an attempt that failed, for which the schedule matters.
func hasFailedAttempt(r *decide.Evidence) bool {
	return slices.ContainsFunc(r.Events, func(e decide.Event) bool {
		a, ok := e.(*DeliveryAttempted)
		return ok && a.StatusCode != acknowledged
	})
}

func (p *RecordAttempt) input(d *draft) any { return inputOf(d.attempts) }

// Reconstruct implements decide.Payload. If the owner is erased, the event does not have the reply, which the decision
// drops.
func (p *RecordAttempt) Reconstruct(r *decide.Evidence) error {
	all, schedule, err := attempts(r)
	if len(all) > 0 {
		*p = *all[0]
	}
	p.Schedule = schedule
	return err
}

// NewInput implements decide.Partial.
func (*RecordAttempts) NewInput() any { return new(attemptsInput) }

// Lacks implements decide.Partial.
func (*RecordAttempts) Lacks(r *decide.Evidence) bool { return hasFailedAttempt(r) }

func (p *RecordAttempts) input(d *draft) any { return inputOf(d.attempts) }

// Reconstruct implements decide.Payload. It leaves out the attempts that the decision left out.
func (p *RecordAttempts) Reconstruct(r *decide.Evidence) (err error) {
	p.Attempts, p.Schedule, err = attempts(r)
	return err
}

// replayInput is the input of ReplayDelivery for a delivery that the state has forgotten.
type replayInput struct {
	// AsOf is the sequence up to which the rows were current when the delivery's row was read.
	AsOf int64 `json:"as_of,omitzero"`
	// Status and Closed are the row's. The event has the rest of the row.
	Status webhook.Status `json:"status,omitempty"`
	Closed int64          `json:"closed,omitzero"`
}

// NewInput implements decide.Partial.
func (*ReplayDelivery) NewInput() any { return new(replayInput) }

// Lacks implements decide.Partial. Version 1 of the event is of rules that forget no delivery.
func (*ReplayDelivery) Lacks(r *decide.Evidence) bool {
	e, ok := decide.EventOf[*DeliveryReplayed](r)
	return ok && e.Reopened != nil
}

// Unverified implements decide.Unverified.
func (p *ReplayDelivery) Unverified() []string {
	if p.Row == nil {
		return nil
	}
	return []string{"webhook_id", "tenant", "attempts", "event_id", "owner", "final", "made", "status", "closed"}
}

func (p *ReplayDelivery) input(d *draft) any {
	if _, known := d.state.deliveries[p.ID]; known || p.Row == nil {
		return nil
	}
	return replayInput{AsOf: p.AsOf, Status: p.Row.Status, Closed: p.Row.Closed}
}

// Reconstruct implements decide.Payload.
func (p *ReplayDelivery) Reconstruct(r *decide.Evidence) error {
	var in replayInput
	if err := r.ReadInput(&in); err != nil {
		return err
	}
	e, ok := decide.EventOf[*DeliveryReplayed](r)
	if !ok {
		return nil
	}
	p.ID, p.Operator, p.AsOf = e.ID, e.By == ByOperator, in.AsOf
	if in.Status != "" && e.Reopened != nil {
		p.Row = &Delivery{ID: e.ID, WebhookID: e.WebhookID, NoticeID: e.NoticeID, Tenant: e.Tenant, Ref: e.Ref, Final: e.Final,
			Status: in.Status, Attempts: e.Attempts, Made: e.Made, Closed: in.Closed}
	}
	return nil
}
