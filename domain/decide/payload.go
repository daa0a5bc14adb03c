package decide

import (
	"fmt"
	"slices"
)

// Payload is what a command asks for: a pointer to a plain struct, one type for each type of command.
type Payload interface {
	// CommandType is the command's type, for example "order.place".
	CommandType() string
}

// Payloads knows the payloads of a journal's commands by their type.
type Payloads struct {
	fresh map[string]func() Payload
	types []string
}

// NewPayloads returns a register of what the functions return, which are pointers to zero payloads, and of the payloads
// that every journal takes. Two of one type panic: it is a mistake in the program.
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

// New returns a zero payload of a type of command; false where the journal has no such command.
func (p *Payloads) New(commandType string) (Payload, bool) {
	if f, ok := p.fresh[commandType]; ok {
		return f(), true
	}
	return nil, false
}

// Types lists the types of command, in the order of registration.
func (p *Payloads) Types() []string { return p.types }

// UnknownCommand refuses a command whose payload is none of its journal's, or is another command's.
func UnknownCommand(c Command) error {
	return Refuse(Invalid, "UNKNOWN_COMMAND", fmt.Sprintf("the journal has no command %s with %T", c.Type, c.Payload))
}
