package journal

import (
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// KafkaRecord returns the Kafka record for a value. Key, headers and timestamp are computed from the value and repeat parts of
// it, so that tools can route and filter without decoding it.
func KafkaRecord(topic, journal string, partition int32, id scalar.ID, r *record.Record, value []byte) *kgo.Record {
	return NewMessages(topic, journal, partition, id).Record(r, value)
}

// Messages makes the Kafka records of one partition as KafkaRecord does. It is safe for concurrent use. The records share
// bytes, which MUST NOT be changed.
type Messages struct{ to address }

// NewMessages returns the Messages of a partition of the journal with an identity.
func NewMessages(topic, journal string, partition int32, id scalar.ID) *Messages {
	return &Messages{newAddress(topic, journal, partition, id)}
}

// Record returns the Kafka record for a value.
func (m *Messages) Record(r *record.Record, value []byte) *kgo.Record {
	return new(message).fill(&m.to, r, value)
}

// address holds the parts that all Kafka records of one partition have in common. The records share its bytes, which MUST NOT
// be changed.
type address struct {
	topic     string
	partition int32
	journal   scalar.ID
	key       []byte
	source    []byte
	id        []byte // the journal's identity and a slash: the start of each ce_id
	version   []byte
	content   []byte
}

func newAddress(topic, journal string, partition int32, id scalar.ID) address {
	key := journal + "/" + strconv.Itoa(int(partition))
	return address{topic: topic, partition: partition, journal: id, key: []byte(key), source: []byte("/journals/" + key),
		id: []byte(id.String() + "/"), version: []byte("1.0"), content: []byte("application/json")}
}

// message is a Kafka record with space for its headers.
type message struct {
	record  kgo.Record
	headers [6]kgo.RecordHeader
}

// fill returns the Kafka record for a value, stored in s.
func (s *message) fill(to *address, r *record.Record, value []byte) *kgo.Record {
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

// VerifyKafka returns an error if the key, the headers or the timestamp of a Kafka record differ from those that KafkaRecord
// computes for the entry, which has the same value.
func VerifyKafka(e record.Entry, journal string, got *kgo.Record) error {
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
