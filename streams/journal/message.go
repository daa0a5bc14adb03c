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

// The names of the headers, and the parts of their values that all journals have in common.
const (
	headerSpecVersion = "ce_specversion"
	headerID          = "ce_id"
	headerSource      = "ce_source"
	headerType        = "ce_type"
	headerTime        = "ce_time"
	headerContentType = "content-type"

	specVersion  = "1.0"
	contentType  = "application/json"
	sourcePrefix = "/journals/"
)

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
	return address{topic: topic, partition: partition, journal: id, key: []byte(key), source: []byte(sourcePrefix + key),
		id: []byte(id.String() + "/"), version: []byte(specVersion), content: []byte(contentType)}
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
		{Key: headerSpecVersion, Value: to.version},
		{Key: headerID, Value: text[:id:id]},
		{Key: headerSource, Value: to.source},
		{Key: headerType, Value: text[id:name:name]},
		{Key: headerTime, Value: text[name:]},
		{Key: headerContentType, Value: to.content},
	}
	s.record = kgo.Record{Topic: to.topic, Partition: to.partition, Key: to.key, Value: value,
		Timestamp: timestamp(r), Headers: s.headers[:]}
	return &s.record
}

// VerifyKafka returns an error if the key, the headers or the timestamp of a Kafka record differ from those that KafkaRecord
// computes for the entry, which has the same value.
func VerifyKafka(e record.Entry, journal string, got *kgo.Record) error {
	if isWritten(&e, journal, got) {
		return nil
	}
	want := KafkaRecord(got.Topic, journal, got.Partition, e.Journal, e.Record, e.Value)
	if string(got.Key) != string(want.Key) {
		return fmt.Errorf("journal: record %d: the key is %q and not %q", e.Record.Sequence, got.Key, want.Key)
	}
	if !got.Timestamp.Equal(want.Timestamp) && IsRestamped(got) {
		return fmt.Errorf("journal: record %d: the brokers replaced its timestamp %v by %v, as message.timestamp.type was LogAppendTime: "+
			"copy the log to another topic with perpetua log copy, which restores it", e.Record.Sequence, want.Timestamp, got.Timestamp)
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

// IsRestamped reports whether a record has the time at which a broker appended it, and not the timestamp with which it was produced.
func IsRestamped(got *kgo.Record) bool { return got.Attrs.TimestampType() == 1 }

// RestoreTimestamp gives a record that a broker has restamped the timestamp that it was produced with. It leaves a value that is
// not in the form of a record alone, and reports whether it changed the timestamp.
func RestoreTimestamp(got *kgo.Record) bool {
	if !IsRestamped(got) {
		return false
	}
	r, err := record.DecodeHead(got.Value)
	if err != nil || got.Timestamp.Equal(timestamp(r)) {
		return false
	}
	got.Timestamp = timestamp(r)
	return true
}

// isWritten is VerifyKafka without the reason. It compares the parts one by one and allocates nothing.
func isWritten(e *record.Entry, journal string, got *kgo.Record) bool {
	h, r := got.Headers, e.Record
	if len(h) != 6 || !got.Timestamp.Equal(timestamp(r)) || !is(&h[0], headerSpecVersion, specVersion) ||
		!is(&h[3], headerType, r.Command.Type) || !is(&h[5], headerContentType, contentType) {
		return false
	}
	var room [96]byte
	source := append(append(append(room[:0], sourcePrefix...), journal...), '/')
	source = strconv.AppendInt(source, int64(got.Partition), 10)
	if string(got.Key) != string(source[len(sourcePrefix):]) || !is(&h[2], headerSource, source) {
		return false
	}
	id, _ := e.Journal.AppendText(room[:0])
	id = strconv.AppendInt(append(id, '/'), r.Sequence, 10)
	if !is(&h[1], headerID, id) {
		return false
	}
	at, _ := r.Time.AppendText(room[:0])
	return is(&h[4], headerTime, at)
}

// is reports whether a header has the name and the value.
func is[T string | []byte](h *kgo.RecordHeader, name string, value T) bool {
	return h.Key == name && string(h.Value) == string(value)
}

// timestamp returns the Kafka timestamp of a record, in milliseconds.
func timestamp(r *record.Record) time.Time { return time.UnixMilli(int64(r.Time) / 1000) }
