package record

import (
	"fmt"
	"math"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// Decoder decodes the records of a journal, one after the other. It is not safe for concurrent use; what it returns is.
//
// Nearly all records are of one form throughout: what AppendRecord and the events that write themselves have written. A
// decoder reads that form in one pass, and accepts nothing in it that the decoding piece by piece would not: where it
// meets anything else, it begins anew in that way, which has the last word.
type Decoder struct {
	own    *decide.Registry
	rules  *decide.Registry
	reader fastjson.Reader
	words  fastjson.Words
}

// NewDecoder returns a decoder of records whose events a registry knows.
func NewDecoder(registry *decide.Registry) *Decoder {
	return &Decoder{own: Shapes(), rules: registry}
}

// Decode reads a record's value strictly: nothing is accepted that AppendRecord would write in another way, except
// inside of an event's data, whose shape is the rules' own; there, unknown and repeated members are refused.
func (d *Decoder) Decode(value []byte) (*Record, error) {
	if r, ok := d.written(value, nil); ok {
		return r, nil
	}
	e, err := parseEnvelope(value)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	r, err := e.finish(d.own, d.rules)
	if err != nil {
		return nil, fmt.Errorf("journal: record %d: %w", e.record.Sequence, err)
	}
	return r, nil
}

// Decoded is what a value says by itself, whatever record precedes it.
type Decoded struct {
	Hash   Hash    // the SHA-256 of the value
	Record *Record // nil if the value can't be decoded
}

// roomy is a record with room for the events that most records have.
type recordBuffer struct {
	Record
	events [3]decide.Event
}

// written reads a value in one pass, in the form in which it is written by hand, and reports whether it could. A record
// with another prev than the one given, if one is, is not read to its end, and the journal's own records are not read.
func (d *Decoder) written(value []byte, prev *Hash) (*Record, bool) {
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
	readKept(r, &room.Command.Kept)
	if r.Try(`},"outcome":"accepted","events":[`) {
		room.Outcome = decide.Accepted
	} else {
		r.Raw(`},"outcome":"rejected","events":[`)
		room.Outcome = decide.Rejected
	}
	if t := room.Command.Type; r.Failed() || t == TypeGenesis || t == TypeTermStarted {
		return nil, false
	}
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
		e := d.rules.Read(name, int(version), r)
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

// optional reads an optional member of an object, a string that would have been left out if it were empty. The name
// comes with the comma that stands before it in all but the first member.
func optional(r *fastjson.Reader, first *bool, name string, to *string) {
	if *first {
		name = name[1:]
	}
	if !r.Try(name) {
		return
	}
	*first = false
	if *to = r.String(); *to == "" {
		r.Fail()
	}
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

// readKept leaves the source of another journal's command to the decoding piece by piece.
func readKept(r *fastjson.Reader, k *decide.Kept) {
	first := true
	r.Raw(`,"data":{`)
	optional(r, &first, `,"key":`, &k.Key)
	optional(r, &first, `,"fingerprint":`, &k.Fingerprint)
	if name := `,"session":`; first && r.Try(name[1:]) || !first && r.Try(name) {
		if k.Session.ReadJSON(r); k.Session.IsZero() {
			r.Fail()
		}
	}
	r.Raw(`}`)
}
