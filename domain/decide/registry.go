package decide

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Registry knows the event types of a journal and how to read every version of them that a log may hold.
type Registry struct {
	shapes map[shape]func(jsontext.Value) (Event, error)
	order  []Shape
}

type shape struct {
	name    string
	version int
}

// Shape names one version of one event type.
type Shape struct {
	Type    string
	Version int
	New     func() Event // nil for a retired version
}

// Parser is an event that reads its own JSON form, for the types that are worth it. ParseJSON is called on a fresh event
// and reports whether it could read the data; it must accept nothing that the generic decoder would not, and make the
// same of it. Where it returns false, the generic decoder has the last word.
type Parser interface {
	ParseJSON(data []byte) bool
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{shapes: make(map[shape]func(jsontext.Value) (Event, error))}
}

// Add registers the current version of an event type; fresh returns a pointer to a zero event. Registering a type
// and version twice panics: it is a mistake in the program.
func (r *Registry) Add(fresh func() Event) {
	e := fresh()
	r.add(shape{e.EventType(), e.EventVersion()}, fresh, func(raw jsontext.Value) (Event, error) {
		v := fresh()
		if p, ok := v.(Parser); ok {
			if p.ParseJSON(raw) {
				return v, nil
			}
			v = fresh()
		}
		if err := json.Unmarshal(raw, v, json.RejectUnknownMembers(true)); err != nil {
			return nil, err
		}
		return v, nil
	})
}

// AddUpcaster registers how an old version is read as the current one.
func (r *Registry) AddUpcaster(eventType string, version int, read func(jsontext.Value) (Event, error)) {
	r.add(shape{eventType, version}, nil, read)
}

func (r *Registry) add(s shape, fresh func() Event, read func(jsontext.Value) (Event, error)) {
	if _, ok := r.shapes[s]; ok {
		panic(fmt.Sprintf("decide: event type %s version %d registered twice", s.name, s.version))
	}
	r.shapes[s] = read
	r.order = append(r.order, Shape{Type: s.name, Version: s.version, New: fresh})
}

// Shapes lists what is registered, in the order of registration.
func (r *Registry) Shapes() []Shape { return r.order }

// Decode reads an event's data.
func (r *Registry) Decode(eventType string, version int, raw jsontext.Value) (Event, error) {
	read, ok := r.shapes[shape{eventType, version}]
	if !ok {
		return nil, &UnknownEventError{Type: eventType, Version: version}
	}
	e, err := read(raw)
	if err != nil {
		return nil, fmt.Errorf("event %s version %d: %w", eventType, version, err)
	}
	return e, nil
}

// UnknownEventError says that a log holds an event this build does not know.
type UnknownEventError struct {
	Type    string
	Version int
}

// Error names the type and version.
func (e *UnknownEventError) Error() string {
	return fmt.Sprintf("unknown event type %s version %d", e.Type, e.Version)
}
