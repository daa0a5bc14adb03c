package decide

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// Registry contains the event types of a journal and decodes every version of them that a log may hold.
type Registry struct {
	shapes map[shape]reading
	order  []Shape
}

type shape struct {
	name    string
	version int
}

// reading holds the decoders of a shape. any decodes every JSON form. written decodes only the form that the event's own
// writer produces, and is nil if the event type does not implement Reading.
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

// Parser is an event that decodes its own JSON form, for frequent types. ParseJSON is called on a zero event and reports
// whether it decoded the data. It MUST NOT accept data that the generic decoder rejects, and MUST decode to the same
// value. If it returns false, the generic decoder decides.
type Parser interface {
	ParseJSON(data []byte) bool
}

// Reading is a Parser that can decode an event within a larger document. ReadJSON leaves the reader after the event's
// data, or failed.
type Reading interface {
	Parser
	ReadJSON(*fastjson.Reader)
}

// Canonical is an event that can report whether decoding its own JSON form gives exactly the same value: no number with
// a precision that is not written, no nil slice that is decoded as an empty one, no value that cannot be decoded.
// Readers in the process that made a canonical event may skip decoding it.
type Canonical interface {
	Event
	Canonical() bool
}

// NewRegistry returns a registry of the events that occur in every journal.
func NewRegistry() *Registry {
	r := &Registry{shapes: make(map[shape]reading)}
	for _, fresh := range sharedEvents() {
		r.Add(fresh)
	}
	return r
}

// Add registers the current version of an event type. fresh returns a pointer to a zero event. Add panics if the type
// and version are already registered, which is a programming error.
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

// AddUpcaster registers a function that decodes an old version of an event as the current one.
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

// Shapes lists the registered shapes in the order of registration.
func (r *Registry) Shapes() []Shape { return r.order }

// Decode decodes an event's data.
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

// Read decodes an event's data from the form that the event's own writer produces, and leaves the reader after it. It
// returns nil if the event type does not implement Reading. If the data has another form, the reader fails and the
// returned event is invalid.
func (r *Registry) Read(eventType string, version int, from *fastjson.Reader) Event {
	read := r.shapes[shape{eventType, version}]
	if read.written == nil {
		return nil
	}
	return read.written(from)
}

// UnknownEventError reports that a log holds an event that this build does not support.
type UnknownEventError struct {
	Type    string
	Version int
}

// Error names the type and version.
func (e *UnknownEventError) Error() string {
	return fmt.Sprintf("unknown event type %s version %d", e.Type, e.Version)
}
