package decide

import (
	"fmt"
	"slices"
)

// Payload is the content of a command: a pointer to a plain struct. Each command type has its own payload type.
type Payload interface {
	// CommandType returns the command's type, for example "order.place".
	CommandType() string
	// Reconstruct sets the payload, which is zero, to one that the record can have been decided from: with it, Decide
	// MUST make the same record in the same state. It need not be the payload that the client sent. A member that
	// changes nothing about the decision, such as a default that the client wrote out, may be different.
	//
	// Reconstruct reads what the events carry, and the input. It MUST NOT fail because an event is missing: Decide then
	// makes another record, which is the finding. The error is that of an invalid input.
	Reconstruct(r *Evidence) error
}

// Partial is a Payload with members that the events do not carry. A journal records them as Decision.Input. All members of
// a Payload that does not implement Partial follow from the events.
type Partial interface {
	Payload
	// NewInput returns a pointer to a zero value of the input's JSON form.
	NewInput() any
}

// Payloads maps the command types of a journal to their payloads.
type Payloads struct {
	fresh map[string]func() Payload
	types []string
}

// NewPayloads returns a registry of the payloads that every journal accepts and of those that the functions make. Each
// function returns a pointer to a zero payload. NewPayloads panics if a type occurs twice, which is a programming error.
func NewPayloads(fresh ...func() Payload) *Payloads {
	p := &Payloads{fresh: make(map[string]func() Payload, len(fresh))}
	for _, f := range slices.Concat(sharedPayloads(), fresh) {
		name := f().CommandType()
		if _, known := p.fresh[name]; known {
			panic("decide: command type " + name + " registered twice")
		}
		p.fresh[name] = f
		p.types = append(p.types, name)
	}
	return p
}

// New returns a zero payload for a command type, or false if the journal has no such command.
func (p *Payloads) New(commandType string) (Payload, bool) {
	if f, ok := p.fresh[commandType]; ok {
		return f(), true
	}
	return nil, false
}

// Types lists the command types in the order of registration.
func (p *Payloads) Types() []string { return p.types }

// UnknownCommand returns the refusal of a command if the journal has no such payload, or if the payload belongs to
// another command type.
func UnknownCommand(c Command) error {
	return Refuse(Invalid, "UNKNOWN_COMMAND", fmt.Sprintf("the journal has no command %s with %T", c.Type, c.Payload))
}
