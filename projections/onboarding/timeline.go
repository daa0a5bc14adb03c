package onboarding

import (
	"context"
	"fmt"
	"iter"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TriggerEvent is an event in the timeline of a case: its creation, a change of its status, a change of its
// requirements, or a notice that names it. Fields that a kind of event does not have are empty. After the erasure of
// the owner, sealed fields are nil.
type TriggerEvent struct {
	Sequence  int64 // of the record
	TriggerID scalar.ID
	owner.Ref
	Type   string // of the event, such as entitlement_trigger.moved
	Action entitlement.Action
	Status entitlement.Status // after it
	Result entitlement.Result
	By     domain.ActorKind
	// Actor names the user who sent the command. It is for operators, like InternalReason.
	Actor          string
	Code           string
	Reason         domain.Reason
	InternalReason domain.Sealed
	// RequestID identifies a request for information. Questionnaires are the requested ones.
	RequestID         scalar.ID
	Questionnaires    []scalar.ID
	Outcome           domain.Outcome
	ExternalReference domain.Sealed
	Open              []entitlement.Requirement // of a change of requirements
	NoticeID          scalar.ID
	NoticeType        webhook.EventType
	Time              scalar.Time

	open string
}

type timelineRow = projections.Row[TriggerEvent]

var timeline = &projections.Table[TriggerEvent]{
	Name: "trigger_events", Journal: journalName, Keys: []string{"sequence", "ordinal"},
	Columns: []c.Column[timelineRow]{
		c.ID("trigger_id", func(r *timelineRow) *scalar.ID { return &r.Value.TriggerID }),
		c.Int("sequence", func(r *timelineRow) *int64 { return &r.Key.Sequence }),
		c.Small("ordinal", func(r *timelineRow) *int64 { return &r.Key.Ordinal }),
		c.ID("owner_id", func(r *timelineRow) *scalar.ID { return &r.Value.Ref.ID }),
		c.Text("owner_type", func(r *timelineRow) *owner.Type { return &r.Value.Ref.Type }),
		c.Text("type", func(r *timelineRow) *string { return &r.Value.Type }),
		c.NullText("action", func(r *timelineRow) *entitlement.Action { return &r.Value.Action }),
		c.NullText("status", func(r *timelineRow) *entitlement.Status { return &r.Value.Status }),
		c.NullText("result", func(r *timelineRow) *entitlement.Result { return &r.Value.Result }),
		c.Text("actor_kind", func(r *timelineRow) *domain.ActorKind { return &r.Value.By }),
		c.Text("actor", func(r *timelineRow) *string { return &r.Value.Actor }),
		c.NullText("code", func(r *timelineRow) *string { return &r.Value.Code }),
		c.NullText("reason_text", func(r *timelineRow) *string { return &r.Value.Reason.Text }),
		c.Bytes("reason", func(r *timelineRow) *domain.Sealed { return &r.Value.Reason.Sealed }),
		c.Bytes("internal_reason", func(r *timelineRow) *domain.Sealed { return &r.Value.InternalReason }),
		c.ID("request_id", func(r *timelineRow) *scalar.ID { return &r.Value.RequestID }),
		c.IDs("questionnaire_ids", func(r *timelineRow) *[]scalar.ID { return &r.Value.Questionnaires }),
		c.NullText("outcome", func(r *timelineRow) *domain.Outcome { return &r.Value.Outcome }),
		c.Bytes("external_reference", func(r *timelineRow) *domain.Sealed { return &r.Value.ExternalReference }),
		c.JSON("open", func(r *timelineRow) *string { return &r.Value.open }),
		c.ID("notice_id", func(r *timelineRow) *scalar.ID { return &r.Value.NoticeID }),
		c.NullText("notice_type", func(r *timelineRow) *webhook.EventType { return &r.Value.NoticeType }),
		c.Time("time", func(r *timelineRow) *scalar.Time { return &r.Value.Time }),
	},
	Loaded: func(r *timelineRow) error {
		if err := json.Unmarshal([]byte(r.Value.open), &r.Value.Open); err != nil {
			return fmt.Errorf("what became open of trigger %s: %w", r.Value.TriggerID, err)
		}
		r.Value.Sequence, r.Value.open = r.Key.Sequence, ""
		return nil
	},
}

type timelineChanges struct {
	events projections.Adder[TriggerEvent]
}

func newTimeline(b *projections.Batch) *timelineChanges { return &timelineChanges{timeline.Copy(b)} }

func (x *timelineChanges) add(at position, event decide.Event) {
	if v, ok := triggerEvent(at, event); ok {
		x.events.Add(&timelineRow{Key: at.Key, Value: v})
	}
}

// TriggerEventsIn returns the events of cases in a record.
func TriggerEventsIn(e *record.Entry) iter.Seq[*projections.Row[TriggerEvent]] {
	return func(yield func(*timelineRow) bool) {
		for at, event := range eventsOf(e) {
			if v, ok := triggerEvent(at, event); ok && !yield(&timelineRow{Key: at.Key, Value: v}) {
				return
			}
		}
	}
}

// triggerEvent returns the event in the timeline that an event of the journal makes, if it makes one.
func triggerEvent(at position, event decide.Event) (TriggerEvent, bool) {
	v := TriggerEvent{Type: event.EventType(), By: domain.BySystem, Actor: at.actor(), open: "[]"}
	switch e := event.(type) {
	case *domain.TriggerCreated:
		v.TriggerID, v.Ref, v.Status, v.By, v.Time = e.ID, e.Ref, e.Status, e.By, e.Created
	case *domain.TriggerMoved:
		v.TriggerID, v.Ref, v.Action, v.Status, v.Result, v.By, v.Code, v.Time = e.ID, e.Ref, e.Action, e.Status, e.Result, e.By, e.Code, e.Time
		v.Reason, v.InternalReason, v.Outcome, v.ExternalReference = e.Reason, e.InternalReason, e.Outcome, e.ExternalReference
		if e.Request != nil {
			v.RequestID, v.Questionnaires = e.Request.ID, e.Request.Questionnaires
		}
	case *domain.RequirementsChanged:
		v.TriggerID, v.Ref, v.Time, v.open = e.ID, e.Ref, e.Time, texts(e.Open)
	case *domain.NoticeGiven:
		if e.TriggerID.IsZero() {
			return v, false
		}
		v.TriggerID, v.Ref, v.NoticeID, v.NoticeType, v.Time = e.TriggerID, e.Ref, e.ID, e.Type, e.Time
	default:
		return v, false
	}
	return v, true
}

func (x *timelineChanges) write(*projections.Batch) {}

// Timeline returns every event of a case in order. The caller must have checked that the viewer may see the case.
func Timeline(ctx context.Context, db projections.DB, trigger scalar.ID) ([]TriggerEvent, int64, error) {
	l := projections.List[TriggerEvent]{Table: timeline, Order: "sequence, ordinal"}
	l.Where.And("trigger_id = ?", c.UUID(trigger))
	return l.All(ctx, db)
}

// AllTriggerEvents returns the table of the events of all cases.
func AllTriggerEvents() *projections.Table[TriggerEvent] { return timeline }
