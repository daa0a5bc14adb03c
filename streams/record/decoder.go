package record

import (
	"fmt"
	"math"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// Decoder decodes the records of a journal. It is not safe for concurrent use, but the records that it returns are.
//
// A Decoder has a fast path for the form of nearly all records: it reads the value in one pass, with the events that implement
// decide.Reading, and decodes the data of the others where it finds them. If the fast path does not succeed, the value is decoded
// again in two steps, parseEnvelope and finish. Those two define what a valid form is, and the fast path MUST NOT accept anything that they reject. FuzzDecoder
// compares them.
type Decoder struct {
	journal *decide.Registry
	rules   *decide.Registry
	reader  fastjson.Reader
	words   fastjson.Words
}

// NewDecoder returns a decoder that knows the events in the registry and those that the journal itself makes.
func NewDecoder(registry *decide.Registry) *Decoder {
	return &Decoder{journal: Shapes(), rules: registry}
}

// Decode decodes the value of a record. It rejects a value that Encode would write in another way. The data of an event
// is an exception, because its form belongs to the rules; there Decode rejects unknown and repeated members.
func (d *Decoder) Decode(value []byte) (*Record, error) {
	if r, ok := d.written(value, nil); ok {
		return r, nil
	}
	e, err := parseEnvelope(value)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	r, err := e.finish(d.journal, d.rules)
	if err != nil {
		return nil, fmt.Errorf("journal: record %d: %w", e.record.Sequence, err)
	}
	return r, nil
}

// Decoded is the result of hashing and decoding a value, which does not depend on the values before it.
type Decoded struct {
	Hash   Hash    // the SHA-256 of the value
	Record *Record // nil if the value can't be decoded
}

// recordBuffer is a record with space for the events of most records, to save an allocation.
type recordBuffer struct {
	Record
	events [3]decide.Event
}

// Head decodes a value without its events. The value MUST be one that DecodeHead accepts: Head does not read the
// events.
func (d *Decoder) Head(value []byte) (*Record, error) {
	if room, ok := d.head(value, nil); ok {
		return &room.Record, nil
	}
	return DecodeHead(value)
}

// head is the part of the fast path before the events.
func (d *Decoder) head(value []byte, prev *Hash) (*recordBuffer, bool) {
	r := &d.reader
	r.Reset(value, &d.words)
	r.Raw(`{"sequence":`)
	sequence := r.Int()
	r.Raw(`,"prev":`)
	var before Hash
	if digits := r.Fixed(2 * len(before)); r.Failed() || !fastjson.Hex(before[:], digits) || prev != nil && before != *prev {
		return nil, false
	}
	room := &recordBuffer{Record: Record{Sequence: sequence, Prev: before}}
	r.Raw(`,"time":`)
	room.Time.ReadJSON(r)
	r.Raw(`,"command":{"id":`)
	room.Command.ID.ReadJSON(r)
	r.Raw(`,"type":`)
	room.Command.Type = r.String()
	readActor(r, &room.Command.Actor)
	readData(r, &room.Record)
	if r.Try(`},"outcome":"accepted","events":[`) {
		room.Outcome = decide.Accepted
	} else {
		r.Raw(`},"outcome":"rejected","events":[`)
		room.Outcome = decide.Rejected
	}
	if t := room.Command.Type; r.Failed() || t == TypeGenesis || t == TypeTermStarted {
		return nil, false
	}
	return room, true
}

// written is the fast path. It reports whether it could decode the value. It gives up on the journal's own records and,
// early, on records with another Prev than prev, unless prev is nil.
func (d *Decoder) written(value []byte, prev *Hash) (*Record, bool) {
	room, ok := d.head(value, prev)
	if !ok {
		return nil, false
	}
	r := &d.reader
	room.Events = room.events[:0]
	for {
		r.Raw(`{"type":`)
		name := r.String()
		r.Raw(`,"version":`)
		version := r.Int()
		r.Raw(`,"data":`)
		if r.Failed() || version < 1 || version > math.MaxInt32 {
			return nil, false
		}
		e := d.event(name, int(version))
		if e == nil {
			return nil, false
		}
		room.Events = append(room.Events, e)
		if r.Try(`},`) {
			continue
		}
		r.Raw(`}]}`)
		return &room.Record, r.Done()
	}
}

// event reads the data of an event. It returns nil if it gives up, and an invalid event if the reader has failed. It gives up on
// the journal's own events.
func (d *Decoder) event(name string, version int) decide.Event {
	if e := d.rules.Read(name, version, &d.reader); e != nil {
		return e
	}
	if name == TypeGenesis || name == TypeTermStarted {
		return nil
	}
	data := d.reader.Object()
	if d.reader.Failed() {
		return nil
	}
	e, err := d.rules.Decode(name, version, data)
	if err != nil {
		return nil
	}
	return e
}

// optional reads an optional member of an object. It must be a string that is not empty. name starts with the comma that
// precedes every member but the first.
func optional(r *fastjson.Reader, first *bool, name string, to *string) {
	if next(r, first, name) {
		if *to = r.String(); *to == "" {
			r.Fail()
		}
	}
}

// next reads the name of an optional member, and reports whether the object has the member.
func next(r *fastjson.Reader, first *bool, name string) bool {
	if *first {
		name = name[1:]
	}
	if !r.Try(name) {
		return false
	}
	*first = false
	return true
}

func readActor(r *fastjson.Reader, a *decide.Actor) {
	first := true
	r.Raw(`,"actor":{`)
	optional(r, &first, `,"sub":`, &a.Sub)
	optional(r, &first, `,"broker":`, &a.Broker)
	optional(r, &first, `,"customer":`, &a.Customer)
	optional(r, &first, `,"system":`, &a.System)
	r.Raw(`}`)
}

// readData fails on a command that another journal is the source of: it is left to parseEnvelope.
func readData(r *fastjson.Reader, to *Record) {
	first, k := true, &to.Command.Metadata
	r.Raw(`,"data":{`)
	optional(r, &first, `,"key":`, &k.Key)
	optional(r, &first, `,"fingerprint":`, &k.Fingerprint)
	if next(r, &first, `,"session":`) {
		if k.Session.ReadJSON(r); k.Session.IsZero() {
			r.Fail()
		}
	}
	if next(r, &first, `,"input":`) {
		input := r.Object()
		if !isInput(input) {
			r.Fail()
		}
		to.Input = string(input)
	}
	r.Raw(`}`)
}
