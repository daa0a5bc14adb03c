package disclose

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// Hash returns a keyed hash of a value, for the members that units do not show. The key MUST NOT be known to those who are
// shown units.
type Hash func(value []byte) [32]byte

// Splitter splits the records of one journal. It is not safe for concurrent use.
type Splitter struct {
	record [len(envelope)]member
	events map[string]*rule
	hash   Hash

	group group
	name  []byte // of the event that is split: its type and version; empty before the first
	out   []byte // the units but for the whole value
	units []Unit
	ends  []span
}

// span is where a unit and the name of its owner are in Splitter.out. to is 0 for the whole value.
type span struct{ from, to, owner, ownerTo int }

var errRecord = errors.New("the value is no record")

// Splitter returns a splitter of the records of a journal.
func (p *Policy) Splitter(journal string) (*Splitter, error) {
	if p.journals[journal] == nil || journal == shared {
		return nil, fmt.Errorf("there are no classes for the records of the journal %q", journal)
	}
	s := &Splitter{events: p.journals[journal]}
	for i, name := range envelope {
		if m := p.record.member(name); m != nil {
			s.record[i] = *m
		} else {
			s.record[i].key = `"` + name + `":`
		}
	}
	return s, nil
}

// Split splits the value of a valid record into its units. They are valid until the next call. It fails if the value is
// not in the form of a record, or holds an event type, version or member that the schemas lack. It does not check that the
// strings and numbers are those of JSON.
func (s *Splitter) Split(value []byte, hash Hash) ([]Unit, error) {
	s.hash, s.out, s.units, s.ends = hash, s.out[:0], s.units[:0], s.ends[:0]
	s.units, s.ends = append(s.units, Unit{Class: Venue, Event: NoEvent, Bytes: value}), append(s.ends, span{})
	r := checker{Reader: fastjson.NewReader(value)}
	if err := s.around(&r); err != nil {
		return nil, err
	}
	for index := 0; !r.Try("]}"); index++ {
		if index > 0 {
			r.Raw(",")
		}
		if err := s.event(&r, index); err != nil {
			return nil, err
		}
	}
	if !r.Done() {
		return nil, errRecord
	}
	for i, at := range s.ends {
		if at.to == 0 {
			continue
		}
		s.units[i].Bytes = s.out[at.from:at.to:at.to]
		if at.ownerTo > 0 {
			s.units[i].Owner = s.out[at.owner:at.ownerTo:at.ownerTo]
		}
	}
	return s.units, nil
}

// envelope lists the members of a record before its events.
var envelope = [...]string{"sequence", "prev", "time", "command", "outcome"}

// around splits the members of the record before its events.
func (s *Splitter) around(r *checker) error {
	s.group.begin(s.hash)
	s.name = s.name[:0]
	r.Raw("{")
	for i, m := range s.record {
		if i > 0 {
			r.Raw(",")
		}
		if r.Raw(m.key); r.Failed() {
			return s.failed(r)
		}
		if envelope[i] == "prev" {
			r.Quoted()
		} else {
			s.group.walk(&m.rule, m.key, r, venuePart)
		}
	}
	if r.Raw(`,"events":[`); r.Failed() {
		return s.failed(r)
	}
	s.emit(NoEvent)
	return nil
}

// event splits the next event.
func (s *Splitter) event(r *checker, index int) error {
	r.Raw(`{"type":`)
	kind := r.Quoted()
	r.Raw(`,"version":`)
	version := r.Int()
	if r.Raw(`,"data":`); r.Failed() {
		return errRecord
	}
	s.name = append(append(s.name[:0], kind...), ".v"...)
	s.name = strconv.AppendInt(s.name, version, 10)
	n := s.events[string(s.name)]
	if n == nil {
		return fmt.Errorf("there are no classes for the event %s", s.name)
	}
	s.group.begin(s.hash)
	s.group.walk(n, `"data":`, r, venuePart)
	if r.Raw("}"); r.Failed() {
		return s.failed(r)
	}
	s.emit(index)
	return nil
}

// failed says where and why the reader failed.
func (s *Splitter) failed(r *checker) error {
	switch {
	case r.err == nil:
		return errRecord
	case len(s.name) == 0:
		return fmt.Errorf("the members around the events: %w", r.err)
	}
	return fmt.Errorf("%s: %w", s.name, r.err)
}

// emit appends the units of the group, in the order of their classes.
func (s *Splitter) emit(event int) {
	for class := Public; class <= Venue; class++ {
		for i := range s.group.parts {
			if p := &s.group.parts[i]; p.class == class && len(p.body) > 0 {
				s.unit(p, event)
			}
		}
	}
}

func (s *Splitter) unit(p *part, event int) {
	b, at := s.out, span{from: len(s.out)}
	b = append(append(b, `{"class":"`...), p.class.String()...)
	b = append(b, '"')
	if p.owner != nil {
		b = append(b, `,"owner":"`...)
		at.owner = len(b)
		b = append(b, p.owner...)
		at.ownerTo = len(b)
		b = append(b, '"')
	}
	if event != NoEvent {
		b = strconv.AppendInt(append(b, `,"event":`...), int64(event), 10)
		dot := len(s.name) - 1
		for s.name[dot] != '.' {
			dot--
		}
		b = append(append(b, `,"type":"`...), s.name[:dot]...)
		b = append(append(b, `","version":`...), s.name[dot+2:]...)
	}
	b = append(append(b, p.body...), '}')
	at.to = len(b)
	s.out = b
	s.units, s.ends = append(s.units, Unit{Class: p.class, Event: event}), append(s.ends, at)
}
