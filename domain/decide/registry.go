package decide

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// Registry knows the event types of a journal and how to read every version of them that a log may hold.
type Registry struct {
	shapes map[shape]reading
	order  []Shape
}

type shape struct {
	name    string
	version int
}

// reading is how the data of a shape is read: of any form, and where that can be told from it, of the one that was
// written by hand.
type reading struct {
	any     func(jsontext.Value) (Event, error)
	written func(*fastjson.Reader) Event
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

// Reading is a Parser that can be read in the midst of other things. ReadJSON leaves the reader after the data, or failed.
type Reading interface {
	Parser
	ReadJSON(*fastjson.Reader)
}

// Canonical is an event that can tell whether its JSON form, read again, would make exactly the same of it: no number
// with a precision that is not written, no nil slice that would be read as an empty one, nothing that could not be read.
// Readers in the process that made such an event need not decode it.
type Canonical interface {
	Event
	Canonical() bool
}

// NewRegistry returns a registry of the events that every journal may hold.
func NewRegistry() *Registry {
	r := &Registry{shapes: make(map[shape]reading)}
	for _, fresh := range sharedEvents() {
		r.Add(fresh)
	}
	return r
}

// Add registers the current version of an event type; fresh returns a pointer to a zero event. Registering a type
// and version twice panics: it is a mistake in the program.
func (r *Registry) Add(fresh func() Event) {
	e := fresh()
	var written func(*fastjson.Reader) Event
	if _, ok := e.(Reading); ok {
		written = func(from *fastjson.Reader) Event {
			v := fresh()
			v.(Reading).ReadJSON(from)
			return v
		}
	}
	r.add(shape{e.EventType(), VersionOf(e)}, fresh, reading{written: written, any: func(raw jsontext.Value) (Event, error) {
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
	}})
}

// AddUpcaster registers how an old version is read as the current one.
func (r *Registry) AddUpcaster(eventType string, version int, read func(jsontext.Value) (Event, error)) {
	r.add(shape{eventType, version}, nil, reading{any: read})
}

func (r *Registry) add(s shape, fresh func() Event, read reading) {
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
	e, err := read.any(raw)
	if err != nil {
		return nil, fmt.Errorf("event %s version %d: %w", eventType, version, err)
	}
	return e, nil
}

// Read reads an event's data in the form in which it is written by hand, and nothing beyond it. It returns nil for what
// has no such form; whether what it returns is void, the reader knows.
func (r *Registry) Read(eventType string, version int, from *fastjson.Reader) Event {
	read := r.shapes[shape{eventType, version}]
	if read.written == nil {
		return nil
	}
	return read.written(from)
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
