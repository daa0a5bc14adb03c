package decide

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Proposable is a Payload of an action that a policy may cover.
type Proposable interface {
	Payload
	// Content returns a pointer to the payload, converted to a type with tags for JSON. The log has these names of members, so
	// they never change. Decoding into the pointer sets the payload.
	Content() any
}

// ProposalStatus is the fate of a proposal.
type ProposalStatus string

// The statuses. The log has no record of an expiry, so a proposal that has expired is stored as open.
const (
	StatusOpen      ProposalStatus = "open"
	StatusConfirmed ProposalStatus = "confirmed"
	StatusRejected  ProposalStatus = "rejected"
	StatusWithdrawn ProposalStatus = "withdrawn"
	StatusVoided    ProposalStatus = "voided"
	StatusExpired   ProposalStatus = "expired"
)

// Proposal is an action that one person asked for and that takes effect when another person confirms it.
type Proposal struct {
	ProposalMade
	Sequence    int64  // of the record that made it
	Fingerprint string // of the request
	Proposer    Actor
	// Changed is the sequence of the first later record that changed one of the objects, or 0.
	Changed int64
	Status  ProposalStatus // without StatusExpired
	EndedBy string         // the user that ended it
	Reason  string         // of that user, or "": see RejectProposal
	Ended   scalar.Time
	EndedAt int64 // sequence of the record that ended it
}

// StatusAt returns the status of p at now: an open proposal expires by the clock, without a record.
func (p *Proposal) StatusAt(now scalar.Time) ProposalStatus {
	if p.Status == StatusOpen && now >= p.Expires {
		return StatusExpired
	}
	return p.Status
}

// ProposalMade says that a person asked for an action that needs a second person. Nothing else has changed.
type ProposalMade struct {
	ID     scalar.ID `json:"id"`
	Action string    `json:"action"`
	// Command is the type of the command, and Content is its payload: a JSON object as text.
	Command string `json:"command"`
	Content string `json:"content"`
	// Objects name what the action is about. A record that changes one of them before the confirmation voids the proposal.
	Objects []string `json:"objects"`
	// Reference is the client's name for the action among those about the object, or "".
	Reference  string `json:"reference,omitzero"`
	ProposedBy string `json:"proposed_by"`
	// Seen is the sequence of the last record that the proposal was decided on.
	Seen    int64       `json:"seen"`
	Created scalar.Time `json:"created"`
	Expires scalar.Time `json:"expires_at"`
}

// EventType returns "proposal.made".
func (*ProposalMade) EventType() string { return TypeProposalMade }

// decode sets a zero payload to the proposed one.
func (e *ProposalMade) decode(p Payload) error {
	proposable, ok := p.(Proposable)
	if !ok {
		return fmt.Errorf("decide: a %s can't be proposed", p.CommandType())
	}
	if err := json.Unmarshal([]byte(e.Content), proposable.Content(), json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("content of a proposed %s: %w", p.CommandType(), err)
	}
	return nil
}

// Payload returns the payload of the proposed command. payloads are those of the journal.
func (e *ProposalMade) Payload(payloads *Payloads) (Payload, error) {
	payload, known := payloads.New(e.Command)
	if !known {
		return nil, UnknownCommand(Command{Type: e.Command})
	}
	return payload, e.decode(payload)
}

// contentOf returns the JSON form of a payload.
func contentOf(p Proposable) string {
	text, err := json.Marshal(p.Content(), json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("decide: the payload %T has no JSON form: %v", p, err))
	}
	return string(text)
}

// ProposalEnd is the data of the events that end a proposal.
type ProposalEnd struct {
	ID         scalar.ID `json:"id"`
	Action     string    `json:"action"`
	ProposedBy string    `json:"proposed_by"`
	// Proposed is the sequence of the record that made the proposal.
	Proposed int64 `json:"proposed"`
	// By is the user that confirmed, rejected, or withdrew the proposal, or tried to confirm it.
	By   string      `json:"by"`
	Time scalar.Time `json:"time"`
}

// ended returns the data. The four events share this method.
func (e *ProposalEnd) ended() *ProposalEnd { return e }

// why returns the reason of an end that has none.
func (*ProposalEnd) why() string { return "" }

// proposalEnded is an event that ends a proposal.
type proposalEnded interface {
	Event
	ended() *ProposalEnd
	status() ProposalStatus
	why() string
}

// EndOf returns the data of an event that ends a proposal, and the status after it. It returns false for any other event.
func EndOf(e Event) (*ProposalEnd, ProposalStatus, bool) {
	if end, ok := e.(proposalEnded); ok {
		return end.ended(), end.status(), true
	}
	return nil, "", false
}

// ReasonOf returns the reason that an event gives for the end of a proposal, or "".
func ReasonOf(e Event) string {
	if end, ok := e.(proposalEnded); ok {
		return end.why()
	}
	return ""
}

// ProposalConfirmed says that a second person confirmed a proposal. The events before it in the record are those of the
// action.
type ProposalConfirmed struct{ ProposalEnd }

// EventType returns "proposal.confirmed".
func (*ProposalConfirmed) EventType() string { return TypeProposalConfirmed }

func (*ProposalConfirmed) status() ProposalStatus { return StatusConfirmed }

// ProposalRejected says that a second person rejected a proposal.
type ProposalRejected struct {
	ProposalEnd
	Reason string `json:"reason,omitzero"`
}

// EventType returns "proposal.rejected".
func (*ProposalRejected) EventType() string { return TypeProposalRejected }

func (e *ProposalRejected) why() string { return e.Reason }

func (*ProposalRejected) status() ProposalStatus { return StatusRejected }

// ProposalWithdrawn says that its proposer withdrew a proposal.
type ProposalWithdrawn struct {
	ProposalEnd
	Reason string `json:"reason,omitzero"`
}

// EventType returns "proposal.withdrawn".
func (*ProposalWithdrawn) EventType() string { return TypeProposalWithdrawn }

func (e *ProposalWithdrawn) why() string { return e.Reason }

func (*ProposalWithdrawn) status() ProposalStatus { return StatusWithdrawn }

// ProposalVoided says that a proposal was not confirmed, because an object has changed.
type ProposalVoided struct {
	ProposalEnd
	// Changed is the sequence of the record that changed the object.
	Changed int64 `json:"changed"`
}

// EventType returns "proposal.voided".
func (*ProposalVoided) EventType() string { return TypeProposalVoided }

func (*ProposalVoided) status() ProposalStatus { return StatusVoided }

// ConfirmProposal asks for the action of a proposal to take effect.
//
// Events: those of the action, then proposal.confirmed; or only proposal.voided, with the outcome rejected, if an object has
// changed since. Refusals: NotFound UNKNOWN_PROPOSAL; Forbidden SELF_APPROVAL; Conflict PROPOSAL_NOT_OPEN, PROPOSAL_EXPIRED;
// and those of the action, after which the proposal is still open.
type ConfirmProposal struct{ ID scalar.ID }

// CommandType returns the type of the command.
func (*ConfirmProposal) CommandType() string { return CommandConfirmProposal }

// Reconstruct implements Payload.
func (p *ConfirmProposal) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[proposalEnded](r); ok {
		p.ID = e.ended().ID
	}
	return nil
}

// MaxProposalReason is the greatest length of a reason in bytes. In the onboarding journal it has room for 2,000 characters,
// sealed and in base64.
const MaxProposalReason = 12 << 10

// RejectProposal asks to end a proposal of another person.
//
// Event: proposal.rejected. Refusals: NotFound UNKNOWN_PROPOSAL; Forbidden SELF_APPROVAL; Conflict PROPOSAL_NOT_OPEN,
// PROPOSAL_EXPIRED, REASONS_NOT_IN_FORCE; Invalid INVALID_REASON.
type RejectProposal struct {
	ID scalar.ID
	// Reason is a text, or "". In the onboarding journal it is sealed, in base64, because it may be personal data. A command without
	// one has the form that builds before reasons read: an owner refuses members that it does not know.
	Reason string `json:",omitzero"`
}

// CommandType returns the type of the command.
func (*RejectProposal) CommandType() string { return CommandRejectProposal }

// Reconstruct implements Payload.
func (p *RejectProposal) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[*ProposalRejected](r); ok {
		p.ID, p.Reason = e.ID, e.Reason
	}
	return nil
}

// WithdrawProposal asks to end the actor's own proposal.
//
// Event: proposal.withdrawn. Refusals: NotFound UNKNOWN_PROPOSAL; Forbidden NOT_THE_PROPOSER; Conflict PROPOSAL_NOT_OPEN,
// PROPOSAL_EXPIRED, REASONS_NOT_IN_FORCE; Invalid INVALID_REASON.
type WithdrawProposal struct {
	ID     scalar.ID
	Reason string `json:",omitzero"` // as of RejectProposal
}

// CommandType returns the type of the command.
func (*WithdrawProposal) CommandType() string { return CommandWithdrawProposal }

// Reconstruct implements Payload.
func (p *WithdrawProposal) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[*ProposalWithdrawn](r); ok {
		p.ID, p.Reason = e.ID, e.Reason
	}
	return nil
}

// visit visits the proposal. Reading fills p, which is zero.
func (p *Proposal) visit(v *pack.Coder) {
	v.Raw(p.ID[:])
	for _, word := range [...]*string{&p.Action, &p.Command, &p.ProposedBy, &p.Proposer.Sub, &p.Proposer.Broker, &p.Proposer.Customer, &p.Proposer.System, &p.EndedBy} {
		pack.Word(v, word)
	}
	pack.Word(v, &p.Status)
	pack.String(v, &p.Content)
	pack.Slice(v, &p.Objects, func(o *string, v *pack.Coder) { pack.String(v, o) })
	pack.String(v, &p.Reason)
	pack.String(v, &p.Reference)
	pack.String(v, &p.Fingerprint)
	for _, n := range [...]*int64{&p.Seen, &p.Sequence, &p.Changed, &p.EndedAt} {
		pack.Int(v, n)
	}
	for _, t := range [...]*scalar.Time{&p.Created, &p.Expires, &p.Ended} {
		pack.Int(v, t)
	}
}
