package decide

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Evidence is the part of a record from which its command is reconstructed.
type Evidence struct {
	At      Stamp
	Command Recorded
	Input   string // see Decision.Input
	Events  []Event
}

// EventOf returns the first event of type E, or false if there is none. E may be an interface.
func EventOf[E Event](r *Evidence) (e E, ok bool) {
	for _, one := range r.Events {
		if e, ok = one.(E); ok {
			return e, true
		}
	}
	return e, false
}

// ReadInput decodes the record's input into a pointer to a zero value. It leaves the value zero if the record has no input.
func (r *Evidence) ReadInput(to any) error {
	if r.Input == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(r.Input), to, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("input of %s: %w", r.Command.Type, err)
	}
	return nil
}

// EncodeInput returns the JSON form of an input, for Decision.Input. It returns "" for nil and for an input without members.
// It panics if the input has no JSON form, which is a programming error.
func EncodeInput(input any) string {
	if input == nil {
		return ""
	}
	text, err := appendInput(input)
	if err != nil {
		panic(fmt.Sprintf("decide: the input %T has no JSON form: %v", input, err))
	}
	if string(text) == "{}" {
		return ""
	}
	return string(text)
}

// InputAppender is an input that encodes itself, for frequent commands. AppendJSON MUST append the bytes that the generic
// encoder would.
type InputAppender interface {
	AppendJSON([]byte) ([]byte, error)
}

func appendInput(input any) ([]byte, error) {
	if a, ok := input.(InputAppender); ok {
		return a.AppendJSON(nil)
	}
	return json.Marshal(input, json.Deterministic(true))
}

// InputRecorder is a State that reports whether the rules in force record inputs. Before, a record without an input says
// nothing about what the events do not carry.
type InputRecorder interface {
	// RecordsInputs reports whether the record after the last one contains its input, if it has one.
	RecordsInputs() bool
}

// StepInput is the input of a record that the engine makes for due work.
type StepInput struct {
	// Single says that the step was decided with one due entry, because a larger one failed.
	Single bool `json:"single,omitzero"`
}

// Reconstruct returns the command that the record can have been decided from. It returns false if the journal has no such
// command, as for genesis, terms and steps. The error is that of an invalid input.
func (p *Payloads) Reconstruct(r *Evidence) (c Command, ok bool, err error) {
	payload, ok := p.New(r.Command.Type)
	if !ok {
		return Command{}, false, nil
	}
	c = Command{ID: r.Command.ID, Type: r.Command.Type, Actor: r.Command.Actor, Metadata: r.Command.Metadata, Payload: payload}
	if made, ok := EventOf[*ProposalMade](r); ok {
		return c, true, made.decode(payload)
	}
	return c, true, payload.Reconstruct(r)
}

// Lacks reports whether the record was decided from something that its events do not carry, so that the command cannot be
// reconstructed without an input. See Partial.
func (p *Payloads) Lacks(r *Evidence) bool {
	payload, ok := p.New(r.Command.Type)
	if !ok {
		return false
	}
	partial, ok := payload.(Partial)
	return ok && partial.Lacks(r)
}
