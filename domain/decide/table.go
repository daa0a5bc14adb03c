package decide

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Events is the table of a journal's events: for each type, how it is read from the log and how it changes S, which is a
// state or applies one record to a state. It is immutable and safe for concurrent use.
type Events[S any] struct {
	registry *Registry
	apply    map[reflect.Type]func(S, Event)
}

// EventRow is a row of a table of events.
type EventRow[S any] struct {
	fresh func() Event   // nil for a version that is no longer written
	apply func(S, Event) // nil if the table applies nothing
	old   Shape
	read  func(jsontext.Value) (Event, error)
}

type eventPointer[T any] interface {
	*T
	Event
}

// On returns the row of the event type that apply applies.
func On[S, T any, E eventPointer[T]](apply func(S, E)) EventRow[S] {
	row := Unapplied[S, T, E]()
	row.apply = func(s S, e Event) { apply(s, e.(E)) }
	return row
}

// Unapplied returns the row of an event type for which Apply does nothing.
func Unapplied[S, T any, E eventPointer[T]]() EventRow[S] {
	return EventRow[S]{fresh: func() Event { return E(new(T)) }}
}

// Zero returns the row with another constructor of a zero event, for a type with a version that depends on its data.
func (r EventRow[S]) Zero(fresh func() Event) EventRow[S] {
	r.fresh = fresh
	return r
}

// Old returns the row of a version that is no longer written. If rules that record
// inputs wrote the version, package redecide MUST learn the number of the rules that replaced it: under rules that record
// inputs, it treats all versions with an Old row as forgeries. read decodes it as the current version.
func Old[S any](eventType string, version int, read func(jsontext.Value) (Event, error)) EventRow[S] {
	return EventRow[S]{old: Shape{Type: eventType, Version: version}, read: read}
}

// NewEvents returns the table with these rows. The events that occur in every journal are registered without a row, and
// have one only if they change S. NewEvents panics if a type and version occurs twice or two rows apply one type, which are
// programming errors.
func NewEvents[S any](rows ...EventRow[S]) *Events[S] {
	t := &Events[S]{registry: NewRegistry(), apply: make(map[reflect.Type]func(S, Event), len(rows))}
	for _, row := range rows {
		if row.fresh == nil {
			t.registry.AddUpcaster(row.old.Type, row.old.Version, row.read)
			continue
		}
		e := row.fresh()
		if !isShared(e) {
			t.registry.Add(row.fresh)
		}
		if of := reflect.TypeOf(e); row.apply != nil {
			if t.apply[of] != nil {
				panic("decide: two rows apply " + e.EventType())
			}
			t.apply[of] = row.apply
		}
	}
	return t
}

// Registry returns the registry of the table's event types and versions.
func (t *Events[S]) Registry() *Registry { return t.registry }

// Apply applies an event to s. It does nothing if the event's row applies nothing, or if the event has no row, as the
// journal's own events.
func (t *Events[S]) Apply(s S, e Event) {
	if apply := t.apply[reflect.TypeOf(e)]; apply != nil {
		apply(s, e)
	}
}

// Commands is the table of a journal's commands: for each payload type, the function that decides it. X is the command
// that is being decided, with the state. A Commands is immutable and safe for concurrent use.
type Commands[X any] struct {
	payloads *Payloads
	decide   map[reflect.Type]func(X, Payload) (Decision, error)
}

// CommandRow is a row of a table of commands.
type CommandRow[X any] struct {
	fresh  func() Payload
	decide func(X, Payload) (Decision, error)
}

type payloadPointer[T any] interface {
	*T
	Payload
}

// Handle returns the row of the payload type that decide decides.
func Handle[X, T any, P payloadPointer[T]](decide func(X, P) (Decision, error)) CommandRow[X] {
	return CommandRow[X]{NewPayload[T, P], func(x X, p Payload) (Decision, error) { return decide(x, p.(P)) }}
}

// NewPayload returns a pointer to a zero payload, for NewPayloads.
func NewPayload[T any, P payloadPointer[T]]() Payload { return P(new(T)) }

// NewCommands returns the table with these rows. It panics if a command type occurs twice, which is a programming error.
func NewCommands[X any](rows ...CommandRow[X]) *Commands[X] {
	fresh, decides := make([]func() Payload, len(rows)), make(map[reflect.Type]func(X, Payload) (Decision, error), len(rows))
	for n, row := range rows {
		fresh[n], decides[reflect.TypeOf(row.fresh())] = row.fresh, row.decide
	}
	return &Commands[X]{NewPayloads(fresh...), decides}
}

// Payloads returns the payloads of the table, and those that every journal accepts.
func (t *Commands[X]) Payloads() *Payloads { return t.payloads }

// Decide decides a command with this payload. It refuses a payload that has no row.
func (t *Commands[X]) Decide(x X, c Command) (Decision, error) {
	decide, known := t.decide[reflect.TypeOf(c.Payload)]
	if !known {
		return Decision{}, UnknownCommand(c)
	}
	return decide(x, c.Payload.(Payload))
}
