package decide

import (
	"fmt"
	"slices"
)

// Payload is the content of a command: a pointer to a plain struct. Each command type has its own payload type.
type Payload interface {
	// CommandType returns the command's type, for example "order.place".
	CommandType() string
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
