package record

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Appender is an event that encodes itself, for speed. AppendJSON MUST append the bytes that the generic encoder would.
type Appender interface {
	AppendJSON([]byte) ([]byte, error)
}

// Encode appends the value of r to b: UTF-8 JSON with the members in a fixed order, without insignificant space and without
// HTML escaping. It returns an error if r has no such form, for example because a string is not UTF-8.
func Encode(b []byte, r *Record) ([]byte, error) {
	if len(r.Events) == 0 {
		return b, errors.New("journal: a record needs an event")
	}
	if r.Sequence < 0 || (r.Command.Metadata.Source != nil && r.Command.Metadata.Source.Sequence < 0) {
		return b, errors.New("journal: a sequence below zero")
	}
	b = append(b, `{"sequence":`...)
	b = strconv.AppendInt(b, r.Sequence, 10)
	b = append(b, `,"prev":"`...)
	b = hex.AppendEncode(b, r.Prev[:])
	b = append(b, `","time":"`...)
	at := len(b)
	if b, _ = r.Time.AppendText(b); len(b)-at != len(scalar.TimeLayout) {
		return b, fmt.Errorf("journal: the time %s is outside of the years 0 to 9999", b[at:])
	}
	b = append(b, `","command":{"id":"`...)
	b, _ = r.Command.ID.AppendText(b)
	b = append(b, `","type":`...)
	b, err := jsontext.AppendQuote(b, r.Command.Type)
	if err != nil {
		return b, fmt.Errorf("journal: command type: %w", err)
	}
	b = append(b, `,"actor":`...)
	if b, err = appendActor(b, r.Command.Actor); err != nil {
		return b, err
	}
	b = append(b, `,"data":`...)
	if b, err = appendData(b, r); err != nil {
		return b, err
	}
	b = append(b, `},"outcome":"`...)
	if r.Outcome != decide.Accepted && r.Outcome != decide.Rejected {
		return b, fmt.Errorf("journal: outcome %q", r.Outcome)
	}
	b = append(b, r.Outcome...)
	b = append(b, `","events":[`...)
	for i, e := range r.Events {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendEvent(b, e); err != nil {
			return b, err
		}
	}
	return append(b, "]}"...), nil
}

// ErrTooLarge reports that a decision does not fit into a record. Logs contain its text: see decide.CauseOf.
var ErrTooLarge = errors.New("the record would be too large")

// EncodeWithin is Encode for a record that the owner of a journal makes. It returns ErrTooLarge, wrapped, if the value has
// more than limit bytes.
func EncodeWithin(b []byte, r *Record, limit int) ([]byte, error) {
	value, err := Encode(b, r)
	if size := len(value) - len(b); err == nil && size > limit {
		return value, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	return value, err
}

// objectWriter writes an object of optional members. It omits empty strings.
type objectWriter struct {
	b   []byte
	any bool
	err error
}

func (w *objectWriter) name(name string) {
	c := byte(',')
	if !w.any {
		c, w.any = '{', true
	}
	w.b = append(w.b, c, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *objectWriter) optional(name, value string) {
	if value == "" {
		return
	}
	w.name(name)
	var err error
	if w.b, err = jsontext.AppendQuote(w.b, value); err != nil && w.err == nil {
		w.err = fmt.Errorf("journal: %s: %w", name, err)
	}
}

func (w *objectWriter) end() ([]byte, error) {
	if !w.any {
		w.b = append(w.b, '{')
	}
	return append(w.b, '}'), w.err
}

func appendActor(b []byte, a decide.Actor) ([]byte, error) {
	w := objectWriter{b: b}
	w.optional("sub", a.Sub)
	w.optional("broker", a.Broker)
	w.optional("customer", a.Customer)
	w.optional("system", a.System)
	return w.end()
}

// appendData appends command.data.
func appendData(b []byte, r *Record) ([]byte, error) {
	w, k := objectWriter{b: b}, &r.Command.Metadata
	w.optional("key", k.Key)
	w.optional("fingerprint", k.Fingerprint)
	if !k.Session.IsZero() {
		w.name("session")
		w.b = append(w.b, '"')
		w.b, _ = k.Session.AppendText(w.b)
		w.b = append(w.b, '"')
	}
	if k.Source != nil {
		w.name("source")
		w.b = append(w.b, `{"journal":`...)
		var err error
		if w.b, err = jsontext.AppendQuote(w.b, k.Source.Journal); err != nil {
			return w.b, fmt.Errorf("journal: source: %w", err)
		}
		w.b = append(w.b, `,"sequence":`...)
		w.b = strconv.AppendInt(w.b, k.Source.Sequence, 10)
		w.b = append(w.b, '}')
	}
	if r.Input != "" {
		if !isInput([]byte(r.Input)) {
			return w.b, fmt.Errorf("journal: input: not a JSON object with members: %.100s", r.Input)
		}
		w.name("input")
		w.b = append(w.b, r.Input...)
	}
	return w.end()
}

// isInput reports whether b is the input of a command: a valid JSON object with at least one member and without
// insignificant space.
func isInput(b []byte) bool {
	s := &scanner{b: b}
	return len(s.object()) == len(b) && len(b) > len("{}") && jsontext.Value(b).IsValid()
}

func appendEvent(b []byte, e decide.Event) ([]byte, error) {
	b = append(b, `{"type":`...)
	b, err := jsontext.AppendQuote(b, e.EventType())
	if err != nil {
		return b, fmt.Errorf("journal: event type: %w", err)
	}
	b = append(b, `,"version":`...)
	b = strconv.AppendInt(b, int64(decide.VersionOf(e)), 10)
	b = append(b, `,"data":`...)
	if a, ok := e.(Appender); ok {
		if b, err = a.AppendJSON(b); err != nil {
			return b, fmt.Errorf("journal: event %s: %w", e.EventType(), err)
		}
		return append(b, '}'), nil
	}
	data, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return b, fmt.Errorf("journal: event %s: %w", e.EventType(), err)
	}
	b = append(b, data...)
	return append(b, '}'), nil
}
