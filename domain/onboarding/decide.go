package onboarding

import (
	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// payload is the content of a command of this journal. It names the kind of actor and decides the command.
type payload interface {
	decide.Payload
	givenBy() ActorKind
	decide(d *draft) error
}

// Payloads returns the payloads of all commands of the journal.
func Payloads() *decide.Payloads {
	return decide.NewPayloads(
		decide.NewPayload[RegisterOwner],
		decide.NewPayload[ChangeOwner],
		decide.NewPayload[AddDocument],
		decide.NewPayload[ChangeDocument],
		decide.NewPayload[CreateQuestionnaire],
		decide.NewPayload[ChangeQuestionnaire],
		decide.NewPayload[AddVersion],
		decide.NewPayload[PublishQuestionnaire],
		decide.NewPayload[UnpublishQuestionnaire],
		decide.NewPayload[AddResponse],
		decide.NewPayload[CreateEntitlement],
		decide.NewPayload[ChangeEntitlement],
		decide.NewPayload[CreateTrigger],
		decide.NewPayload[ActOnTrigger],
		decide.NewPayload[CreateWebhook],
		decide.NewPayload[DeleteWebhook],
		decide.NewPayload[RotateWebhook],
		decide.NewPayload[EnableWebhook],
		decide.NewPayload[TestWebhook],
		decide.NewPayload[RecordAttempt],
		decide.NewPayload[RecordAttempts],
		decide.NewPayload[ReplayDelivery],
		decide.NewPayload[SetRetention],
		decide.NewPayload[EraseOwner],
		decide.NewPayload[HoldOwner],
		decide.NewPayload[ReleaseOwner],
		decide.NewPayload[ConfirmKeyDestroyed],
	)
}

// draft is a decision that is being built. It only reads the state.
type draft struct {
	state  *State
	at     decide.Stamp
	actor  decide.Actor
	by     ActorKind
	events []decide.Event
	file   *file // a copy of the owner's file with the events so far applied; nil before open
	// attempts are those that the events record, in their order.
	attempts []*RecordAttempt
	// sheet collects the calculations; nil, except for Arithmetic.
	sheet *arithmetic.Sheet
}

// open makes the draft concern an owner. It returns a copy of the owner's file, to which the draft applies its events,
// so that later rules apply to the effects of earlier ones.
func (d *draft) open(f *file) *file {
	d.file = f.clone()
	return d.file
}

func (d *draft) add(e decide.Event) {
	d.events = append(d.events, e)
	if d.file != nil {
		d.file.apply(d.at, e)
	}
}

// nextID returns the id of the object that the next event creates.
func (d *draft) nextID() scalar.ID { return d.at.Derive(len(d.events)) }

func (d *draft) decision() decide.Decision {
	return decide.Decision{Outcome: decide.Accepted, Events: d.events}
}

// Decide returns the consequences of a command.
func (s *State) Decide(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	common, known := c.Payload.(decide.Payload)
	if !known || common.CommandType() != c.Type {
		return decide.Decision{}, decide.UnknownCommand(c)
	}
	p, own := common.(payload)
	// Objects that a client creates belong to its tenant, so the client must have one.
	if own && p.givenBy() == ByClient && c.Actor.Broker == "" {
		return decide.Decision{}, decide.Refuse(decide.Forbidden, "FORBIDDEN", "the command is given by a client of a tenant")
	}
	if own && p.givenBy() == BySystem && c.Actor.System == "" {
		return decide.Decision{}, decide.Refuse(decide.Forbidden, "FORBIDDEN", "the command is given by the system")
	}
	if d, done, err := s.core.Govern(at, c, governed{s}); done {
		return d, err
	}
	return s.act(at, c)
}

// act decides a command that needs no second person, or has one.
func (s *State) act(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	if d, done, err := s.core.Decide(at, c, s); done {
		return d, err
	}
	p, own := c.Payload.(payload)
	if !own {
		return decide.Decision{}, decide.UnknownCommand(c)
	}
	d := &draft{state: s, at: at, actor: c.Actor, by: p.givenBy()}
	if err := p.decide(d); err != nil {
		return decide.Decision{}, err
	}
	out := d.decision()
	if partial, ok := p.(partialPayload); ok && s.RecordsInputs() {
		out.Input = decide.EncodeInput(partial.input(d))
	}
	return out, nil
}

// Step decides the first due entry. A step never covers more than one entry, so single has no effect. It implements
// decide.State.
func (s *State) Step(at decide.Stamp, _ bool) decide.Decision {
	e := s.due.first(at.Time)
	if e == nil {
		return decide.Decision{}
	}
	return s.step(at, e, nil).decision()
}

// step decides a due entry.
func (s *State) step(at decide.Stamp, e *dueEntry, sheet *arithmetic.Sheet) *draft {
	d := &draft{state: s, at: at, actor: decide.Engine, by: BySystem, sheet: sheet}
	d.add(&Step{Work: dueNames[e.Kind]})
	switch e.Kind {
	case dueStart:
		d.start(e.about)
	case dueDocument:
		d.remind(e.about)
	case dueDeadline:
		d.passDeadline(e.about)
	case dueRotation:
		d.rotated(e.about)
	case dueErase:
		d.erase(e.about)
	}
	return d
}
