package journal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Appender is an event that writes its own JSON form, for the types that are worth it. What it appends must be what
// the generic encoder would have: the form is law, the code is not.
type Appender interface {
	AppendJSON([]byte) ([]byte, error)
}

// AppendRecord appends the value of r: UTF-8 JSON with the members in a fixed order, no insignificant space and no
// HTML escaping. It fails on what has no such form, a string of invalid UTF-8 for example.
func AppendRecord(b []byte, r *Record) ([]byte, error) {
	if len(r.Events) == 0 {
		return b, errors.New("journal: a record needs an event")
	}
	if r.Sequence < 0 || (r.Command.Kept.Source != nil && r.Command.Kept.Source.Sequence < 0) {
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
	if b, err = appendKept(b, r.Command.Kept); err != nil {
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

// objectWriter writes an object whose members are all optional.
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

func appendKept(b []byte, k decide.Kept) ([]byte, error) {
	w := objectWriter{b: b}
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
	return w.end()
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

// KafkaRecord returns the Kafka record for a value. Key, headers and timestamp say again what the value says, so that
// tools which know nothing of its shape can route and filter; they are functions of it and carry nothing of their own.
func KafkaRecord(topic, journal string, partition int32, id scalar.ID, r *Record, value []byte) *kgo.Record {
	to := newAddress(topic, journal, partition, id)
	return new(message).fill(&to, r, value)
}

// address is what the Kafka records of one journal's partition have in common. They share its bytes: nobody may change
// them.
type address struct {
	topic     string
	partition int32
	journal   scalar.ID
	key       []byte
	source    []byte
	id        []byte // what the id of each record begins with
	version   []byte
	content   []byte
}

func newAddress(topic, journal string, partition int32, id scalar.ID) address {
	key := journal + "/" + strconv.Itoa(int(partition))
	return address{topic: topic, partition: partition, journal: id, key: []byte(key), source: []byte("/journals/" + key),
		id: []byte(id.String() + "/"), version: []byte("1.0"), content: []byte("application/json")}
}

// message is a Kafka record with the room for its headers.
type message struct {
	record  kgo.Record
	headers [6]kgo.RecordHeader
}

// fill makes the Kafka record of a value.
func (s *message) fill(to *address, r *Record, value []byte) *kgo.Record {
	text := make([]byte, 0, len(to.id)+20+len(r.Command.Type)+len(scalar.TimeLayout)) // 20 are the digits of a sequence
	text = append(text, to.id...)
	text = strconv.AppendInt(text, r.Sequence, 10)
	id := len(text)
	text = append(text, r.Command.Type...)
	name := len(text)
	text, _ = r.Time.AppendText(text)
	s.headers = [...]kgo.RecordHeader{
		{Key: "ce_specversion", Value: to.version},
		{Key: "ce_id", Value: text[:id:id]},
		{Key: "ce_source", Value: to.source},
		{Key: "ce_type", Value: text[id:name:name]},
		{Key: "ce_time", Value: text[name:]},
		{Key: "content-type", Value: to.content},
	}
	s.record = kgo.Record{Topic: to.topic, Partition: to.partition, Key: to.key, Value: value,
		Timestamp: time.UnixMilli(int64(r.Time) / 1000), Headers: s.headers[:]}
	return &s.record
}

// VerifyKafka computes the key, the headers and the timestamp of a valid record again and says where the Kafka record
// that holds it differs.
func VerifyKafka(e Entry, journal string, got *kgo.Record) error {
	want := KafkaRecord(got.Topic, journal, got.Partition, e.Journal, e.Record, e.Value)
	if string(got.Key) != string(want.Key) {
		return fmt.Errorf("journal: record %d: the key is %q and not %q", e.Record.Sequence, got.Key, want.Key)
	}
	if !got.Timestamp.Equal(want.Timestamp) {
		return fmt.Errorf("journal: record %d: the Kafka timestamp is %v and not %v", e.Record.Sequence, got.Timestamp, want.Timestamp)
	}
	if len(got.Headers) != len(want.Headers) {
		return fmt.Errorf("journal: record %d: %d headers and not %d", e.Record.Sequence, len(got.Headers), len(want.Headers))
	}
	for i, h := range want.Headers {
		if g := got.Headers[i]; g.Key != h.Key || string(g.Value) != string(h.Value) {
			return fmt.Errorf("journal: record %d: header %d is %s: %s and not %s: %s", e.Record.Sequence, i, g.Key, g.Value, h.Key, h.Value)
		}
	}
	return nil
}
