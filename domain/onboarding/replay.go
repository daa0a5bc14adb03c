package onboarding

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// The command and the event about the replay of a delivery.
const (
	CommandReplayDelivery = "delivery.replay"

	TypeDeliveryReplayed = "delivery.replayed"
)

// CodeDeliveryForgotten is the refusal code of a replay of a forgotten delivery with a row that may be outdated.
const CodeDeliveryForgotten = "DELIVERY_FORGOTTEN"

// rulesThatBringForward is the first number of rules that allow the replay of a delivery that waits for its retry.
// Earlier rules refuse it with DELIVERY_OPEN.
const rulesThatBringForward = 3

// ReplayDelivery asks to attempt a delivery now and to restart its schedule. The delivery must be delivered, dead, or
// waiting for its retry. A pending delivery needs no replay and is refused.
//
// Event: delivery.replayed. Refusals: NotFound DELIVERY_NOT_FOUND; Conflict DELIVERY_OPEN, DELIVERY_CANCELED,
// OWNER_ERASED, OWNER_RESTRICTED. If the owner is restricted, its tenant gets the NotFound of the owner. After Conflict
// DELIVERY_FORGOTTEN, the handler must wait until the rows have reached the position of the refusal, and read the row
// again.
type ReplayDelivery struct {
	ID       scalar.ID
	Operator bool // an operator gives the command and sees all tenants
	// Row is the delivery from the database, or nil if no row exists. It is needed if the state has forgotten the
	// delivery. The handler reads it by ID alone. It contains nothing from the client.
	Row *Delivery
	// AsOf is the sequence up to which the rows were current when Row was read, or 0 if no row was read.
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
	case d.stateOf(v.Ref) == owner.Restricted: // for its tenant, a restricted owner does not exist
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

// bringsForward reports whether the rules in force allow the replay of a delivery that waits for its retry.
func (s *State) bringsForward() bool { return s.core.ActiveRules() >= rulesThatBringForward }

// lookUp returns the delivery of a command from the state or, if it is forgotten, from its row.
func (s *State) lookUp(p *ReplayDelivery) (*Delivery, error) {
	if v, known := s.deliveries[p.ID]; known {
		return v, nil
	}
	forgotten := s.closed.forgotten
	switch {
	case forgotten == 0:
		return nil, deliveryNotFound()
	// Everything that happened to a forgotten delivery happened up to the record with sequence forgotten; otherwise it
	// would be in the state. Rows from before that record may be outdated: a delivery that is dead in its row may since
	// have been replayed, delivered and forgotten.
	case p.AsOf < forgotten:
		return nil, deliveryForgotten()
	case p.Row == nil || p.Row.ID != p.ID:
		return nil, deliveryNotFound()
	// Current rows show the delivery as closed by that record. Rows that do not are inconsistent with the state and must
	// not be used.
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

// Reopened contains the other members that a state needs to reopen a forgotten delivery.
type Reopened struct {
	NoticeID  scalar.ID     `json:"event_id"`
	owner.Ref               // zero for test notices
	Final     bool          `json:"final,omitzero"`
	Made      EventPosition `json:"made"`
}

// EventType returns delivery.replayed.
func (*DeliveryReplayed) EventType() string { return TypeDeliveryReplayed }

var _ decide.Versioned = (*DeliveryReplayed)(nil)

// EventVersion returns 2, or 1 for a decision of rules 1.
func (e *DeliveryReplayed) EventVersion() int {
	if e.Reopened == nil {
		return 1
	}
	return 2
}

// readReplayed1 decodes version 1.
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

// deliveryReplayed makes a delivery pending again that is closed, forgotten or waiting for its retry.
func (f *fold) deliveryReplayed(e *DeliveryReplayed) {
	v := &Delivery{ID: e.ID, WebhookID: e.WebhookID, Tenant: e.Tenant}
	if of := e.Reopened; of != nil {
		v.NoticeID, v.Ref, v.Final, v.Made = of.NoticeID, of.Ref, of.Final, of.Made
	} else if last, known := f.deliveries[e.ID]; known {
		*v = *last
	} else {
		return
	}
	v.Status, v.Attempts, v.Before, v.NextAttempt, v.Closed = webhook.Pending, e.Attempts, e.Attempts, 0, 0
	f.addDelivery(v)
}
