package record

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// envelope is a decoded value in which the data of the events is still JSON. This part is the same for all journals.
type envelope struct {
	record Record // without Events
	events []rawEvent
}

type rawEvent struct {
	name    string
	version int
	data    []byte
}

var errForm = errors.New("not a record")

// scanner reads the form that Encode writes. After the first deviation, failed is set and all results are meaningless.
type scanner struct {
	b      []byte
	i      int
	failed bool
}

func (s *scanner) literal(want string) bool {
	if s.failed || len(s.b)-s.i < len(want) || string(s.b[s.i:s.i+len(want)]) != want {
		s.failed = true
		return false
	}
	s.i += len(want)
	return true
}

// try reads want if it is the next byte.
func (s *scanner) try(want byte) bool {
	if s.failed || s.i >= len(s.b) || s.b[s.i] != want {
		return false
	}
	s.i++
	return true
}

func (s *scanner) take(n int) []byte {
	if s.failed || len(s.b)-s.i < n {
		s.failed = true
		return nil
	}
	s.i += n
	return s.b[s.i-n : s.i]
}

// integer reads a number without a sign, leading zeros, a fraction or an exponent.
func (s *scanner) integer() int64 {
	start := s.i
	var n int64
	for !s.failed && s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		d := int64(s.b[s.i] - '0')
		if n > (math.MaxInt64-d)/10 {
			s.failed = true
			return 0
		}
		n = n*10 + d
		s.i++
	}
	if s.i == start || (s.b[start] == '0' && s.i-start > 1) {
		s.failed = true
	}
	return n
}

// text reads a string, which must be in the form that jsontext.AppendQuote writes.
func (s *scanner) text() string {
	start := s.i
	if !s.literal(`"`) {
		return ""
	}
	plain := true
	for s.i < len(s.b) && s.b[s.i] != '"' {
		switch c := s.b[s.i]; {
		case c == '\\':
			plain = false
			s.i++
		case c < ' ' || c >= 0x7f:
			plain = false
		}
		s.i++
	}
	if !s.literal(`"`) {
		return ""
	}
	quoted := s.b[start:s.i]
	if plain {
		return string(quoted[1 : len(quoted)-1])
	}
	value, err := jsontext.AppendUnquote(nil, quoted)
	if err == nil {
		var again []byte
		if again, err = jsontext.AppendQuote(nil, value); err == nil && bytes.Equal(again, quoted) {
			return string(value)
		}
	}
	s.failed = true
	return ""
}

// object returns the bytes of a JSON object without insignificant space. It only finds the end of the object. Decoding the
// bytes must check that they are a valid object.
func (s *scanner) object() []byte {
	if s.failed {
		return nil
	}
	r := fastjson.NewReader(s.b[min(s.i, len(s.b)):])
	object := r.Object()
	s.failed = r.Failed()
	s.i += len(object)
	return object
}

// parseEnvelope decodes a value, but not the data of the events. It rejects every form but the one that Encode writes.
func parseEnvelope(value []byte) (*envelope, error) {
	s := &scanner{b: value}
	e := new(envelope)
	r := &e.record
	s.literal(`{"sequence":`)
	r.Sequence = s.integer()
	s.literal(`,"prev":"`)
	if h := s.take(2 * len(r.Prev)); s.failed || r.Prev.UnmarshalText(h) != nil {
		return nil, errForm
	}
	s.literal(`","time":"`)
	// time.Parse also accepts a comma in place of the point.
	if t := s.take(len(scalar.TimeLayout)); s.failed || t[19] != '.' || r.Time.UnmarshalText(t) != nil {
		return nil, errForm
	}
	s.literal(`","command":{"id":"`)
	if id := s.take(36); s.failed || r.Command.ID.UnmarshalText(id) != nil || bytes.ContainsAny(id, "ABCDEF") {
		return nil, errForm
	}
	s.literal(`","type":`)
	r.Command.Type = s.text()
	s.literal(`,"actor":`)
	s.actor(&r.Command.Actor)
	s.literal(`,"data":`)
	s.data(r)
	s.literal(`},"outcome":`)
	switch o := s.text(); decide.Outcome(o) {
	case decide.Accepted:
		r.Outcome = decide.Accepted
	case decide.Rejected:
		r.Outcome = decide.Rejected
	default:
		return nil, errForm
	}
	s.literal(`,"events":[`)
	for !s.failed {
		var v rawEvent
		s.literal(`{"type":`)
		v.name = s.text()
		s.literal(`,"version":`)
		version := s.integer()
		s.literal(`,"data":`)
		v.data = s.object()
		s.literal(`}`)
		if version < 1 || version > math.MaxInt32 {
			return nil, errForm
		}
		v.version = int(version)
		e.events = append(e.events, v)
		if !s.try(',') {
			break
		}
	}
	s.literal(`]}`)
	if s.failed || s.i != len(value) {
		return nil, errForm
	}
	return e, nil
}

// member is an optional member of an object. name is its JSON name with the quotes and the colon.
type member struct {
	name string
	read func()
}

// members reads an object with some of the listed members, in the order of the list.
func (s *scanner) members(list ...member) {
	s.literal(`{`)
	first := true
	for _, m := range list {
		next := s.b[min(s.i, len(s.b)):]
		if !first {
			if len(next) == 0 || next[0] != ',' {
				break
			}
			next = next[1:]
		}
		if s.failed || !bytes.HasPrefix(next, []byte(m.name)) {
			continue
		}
		s.i = len(s.b) - len(next) + len(m.name)
		m.read()
		first = false
	}
	s.literal(`}`)
}

// present returns a function that reads a string, which must not be empty: Encode omits empty strings.
func (s *scanner) present(to *string) func() {
	return func() {
		if *to = s.text(); *to == "" {
			s.failed = true
		}
	}
}

func (s *scanner) actor(a *decide.Actor) {
	s.members(member{`"sub":`, s.present(&a.Sub)}, member{`"broker":`, s.present(&a.Broker)},
		member{`"customer":`, s.present(&a.Customer)}, member{`"system":`, s.present(&a.System)})
}

// data reads command.data.
func (s *scanner) data(r *Record) {
	k := &r.Command.Metadata
	s.members(member{`"key":`, s.present(&k.Key)}, member{`"fingerprint":`, s.present(&k.Fingerprint)},
		member{`"session":`, func() {
			s.literal(`"`)
			id := s.take(36)
			s.literal(`"`)
			s.failed = s.failed || k.Session.UnmarshalText(id) != nil || bytes.ContainsAny(id, "ABCDEF") || k.Session.IsZero()
		}},
		member{`"source":`, func() {
			k.Source = new(decide.Source)
			s.literal(`{"journal":`)
			k.Source.Journal = s.text()
			s.literal(`,"sequence":`)
			k.Source.Sequence = s.integer()
			s.literal(`}`)
		}},
		member{`"input":`, func() {
			input := s.object()
			s.failed = s.failed || !isInput(input)
			r.Input = string(input)
		}})
}

// finish decodes the data of the events.
func (e *envelope) finish(journal, rules *decide.Registry) (*Record, error) {
	r := e.record
	r.Events = make([]decide.Event, len(e.events))
	for i, raw := range e.events {
		registry := rules
		if raw.name == TypeGenesis || raw.name == TypeTermStarted {
			registry = journal
		}
		v, err := registry.Decode(raw.name, raw.version, raw.data)
		if err != nil {
			return nil, err
		}
		r.Events[i] = v
	}
	return &r, nil
}

// Decode decodes one value with the events in the registry. To decode many values, use a Decoder.
func Decode(registry *decide.Registry, value []byte) (*Record, error) {
	return NewDecoder(registry).Decode(value)
}

// SequenceOf returns the sequence of a value in the form of a record, which need not be valid. It does not decode the
// data of the events.
func SequenceOf(value []byte) (sequence int64, ok bool) {
	e, err := parseEnvelope(value)
	if err != nil {
		return 0, false
	}
	return e.record.Sequence, true
}

// PrevOf returns the hash that a value in the form of a record names as that of the record before it, and its sequence. It is
// SequenceOf for a reader that knows only what comes before the record.
func PrevOf(value []byte) (prev Hash, sequence int64, ok bool) {
	e, err := parseEnvelope(value)
	if err != nil {
		return Hash{}, 0, false
	}
	return e.record.Prev, e.record.Sequence, true
}

// partialRecord is the part of a record that continues looks for in other JSON values.
type partialRecord struct {
	Sequence jsontext.Value `json:"sequence"`
	Prev     string         `json:"prev"`
}

// continues reports whether a value that is not in the form of a record is JSON and names prev as the hash before it.
// Then it was meant to be the next record, perhaps by a later build, and a reader must stop instead of skipping it.
// sequence is -1 if the value has none.
func continues(value []byte, prev Hash) (sequence int64, ok bool) {
	var l partialRecord
	if err := json.Unmarshal(value, &l); err != nil || l.Prev != prev.String() {
		return 0, false
	}
	n, err := strconv.ParseInt(string(l.Sequence), 10, 64)
	if err != nil {
		n = -1
	}
	return n, true
}

// DecodeHead decodes a value of any journal without its events, so it needs no registry.
func DecodeHead(value []byte) (*Record, error) {
	e, err := parseEnvelope(value)
	if err != nil {
		return nil, err
	}
	return &e.record, nil
}
