package onboarding

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// The command and the event about a delivery that is tried again.
const (
	CommandReplayDelivery = "delivery.replay"

	TypeDeliveryReplayed = "delivery.replayed"
)

// CodeDeliveryForgotten is the code of the refusal to replay a delivery that the state has forgotten, by a row that may be older
// than what the state has forgotten.
const CodeDeliveryForgotten = "DELIVERY_FORGOTTEN"

// rulesThatBringForward is the number of the first rules under which a delivery that waits for its retry can be replayed. The
// rules before it refuse that with DELIVERY_OPEN.
const rulesThatBringForward = 3

// ReplayDelivery asks that a delivery be tried now, from the beginning of the schedule: one that is delivered or dead, or one that
// waits for its retry. A pending delivery needs no replay, so it is refused.
//
// Event: delivery.replayed. Refusals: NotFound DELIVERY_NOT_FOUND; Conflict DELIVERY_OPEN, DELIVERY_CANCELED,
// OWNER_ERASED, OWNER_RESTRICTED; NotFound of the owner for the tenant of one who is restricted; Conflict DELIVERY_FORGOTTEN,
// after which the row is to be read again once the rows have come to the position of the refusal.
type ReplayDelivery struct {
	ID       scalar.ID
	Operator bool // an operator asks, who sees every tenant's
	// Row is the delivery by its row, for the state may have forgotten it; nil: there is none. It is read by ID alone, and holds
	// nothing that the client said.
	Row *Delivery
	// AsOf is the sequence that Row is as of; 0 where nobody looked for a row.
	AsOf int64
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
	v, err := d.state.lookUp(p)
	switch {
	case err != nil:
		return err
	case !p.Operator && v.Tenant != d.actor.Broker:
		return deliveryNotFound()
	case d.stateOf(v.Ref) == owner.Restricted && p.Operator:
		return ownerRestricted()
	case d.stateOf(v.Ref) == owner.Restricted: // who is not there for its tenant
		return ownerNotFound(v.Type)
	case v.Status == webhook.Pending, v.Status == webhook.Retrying && !d.state.bringsForward():
		return decide.Refuse(decide.Conflict, "DELIVERY_OPEN", "the delivery is still being tried")
	case d.stateOf(v.Ref) == owner.Erased:
		return decide.Refuse(decide.Conflict, "OWNER_ERASED", "the owner is erased: what was told cannot be told again")
	case v.Status == webhook.Canceled || !d.state.takes(v):
		return decide.Refuse(decide.Conflict, "DELIVERY_CANCELED", "the delivery's webhook is gone")
	}
	e := &DeliveryReplayed{ID: v.ID, WebhookID: v.WebhookID, Tenant: v.Tenant, Attempts: v.Attempts, By: d.by, Time: d.at.Time}
	if d.state.forgets() {
		e.Reopened = &Reopened{NoticeID: v.NoticeID, Ref: v.Ref, Final: v.Final, Made: v.Made}
	}
	d.add(e)
	return nil
}

// bringsForward reports whether the rules in force let a delivery be replayed that waits for its retry.
func (s *State) bringsForward() bool { return s.core.ActiveRules() >= rulesThatBringForward }

// lookUp returns the delivery that a command names: as the state has it or, where it is forgotten, as its row has it.
func (s *State) lookUp(p *ReplayDelivery) (*Delivery, error) {
	if v, known := s.deliveries[p.ID]; known {
		return v, nil
	}
	forgotten := s.closed.forgotten
	switch {
	case forgotten == 0:
		return nil, deliveryNotFound()
	// All that happened to it is over since the last record of which anything is forgotten, or the state would know it. Rows
	// from before that record may not have all of it: who was dead by them may be replayed, delivered and forgotten since.
	case p.AsOf < forgotten:
		return nil, deliveryForgotten()
	case p.Row == nil || p.Row.ID != p.ID:
		return nil, deliveryNotFound()
	// Rows that have come so far cannot say that. They are no source for a decision before they do not any more.
	case p.Row.Status.IsOpen() || p.Row.Closed > forgotten:
		return nil, deliveryForgotten()
	}
	return p.Row, nil
}

func deliveryForgotten() error {
	return decide.Refuse(decide.Conflict, CodeDeliveryForgotten, "the delivery is to be looked up in newer rows")
}

// DeliveryReplayed says that a delivery is pending again.
type DeliveryReplayed struct {
	ID        scalar.ID   `json:"id"`
	WebhookID scalar.ID   `json:"webhook_id"`
	Tenant    string      `json:"tenant"`
	Attempts  int         `json:"attempts"` // so far
	By        ActorKind   `json:"actor_kind"`
	Time      scalar.Time `json:"time"`
	*Reopened             // nil in version 1, which rules 1 write
}

// Reopened is what else a state has to know of a delivery to have it open again after it was forgotten.
type Reopened struct {
	NoticeID  scalar.ID `json:"event_id"`
	owner.Ref           // none, of test
	Final     bool      `json:"final,omitzero"`
	Made      Place     `json:"made"`
}

// EventType returns delivery.replayed.
func (*DeliveryReplayed) EventType() string { return TypeDeliveryReplayed }

var _ decide.Versioned = (*DeliveryReplayed)(nil)

// EventVersion returns 2, or 1 where rules 1 decided.
func (e *DeliveryReplayed) EventVersion() int {
	if e.Reopened == nil {
		return 1
	}
	return 2
}

// readReplayed1 reads the form of version 1.
func readReplayed1(raw jsontext.Value) (decide.Event, error) {
	var old struct {
		ID        scalar.ID   `json:"id"`
		WebhookID scalar.ID   `json:"webhook_id"`
		Tenant    string      `json:"tenant"`
		Attempts  int         `json:"attempts"`
		By        ActorKind   `json:"actor_kind"`
		Time      scalar.Time `json:"time"`
	}
	if err := json.Unmarshal(raw, &old, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	return &DeliveryReplayed{ID: old.ID, WebhookID: old.WebhookID, Tenant: old.Tenant, Attempts: old.Attempts, By: old.By, Time: old.Time}, nil
}

// replay makes a delivery pending again: one that is closed, forgotten or waits for its retry.
func (s *State) replay(e *DeliveryReplayed) {
	v := &Delivery{ID: e.ID, WebhookID: e.WebhookID, Tenant: e.Tenant}
	if of := e.Reopened; of != nil {
		v.NoticeID, v.Ref, v.Final, v.Made = of.NoticeID, of.Ref, of.Final, of.Made
	} else if last, known := s.deliveries[e.ID]; known {
		*v = *last
	} else {
		return
	}
	v.Status, v.Attempts, v.Before, v.NextAttempt, v.Closed = webhook.Pending, e.Attempts, e.Attempts, 0, 0
	s.addDelivery(v)
}
