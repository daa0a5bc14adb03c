package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// RangeRecords is the number of valid records in a range.
const RangeRecords = 65_536

// blockRecords is the number of valid records after which an object repeats the hash of the chain.
const blockRecords = 256

// log identifies a partition of a journal.
type log struct {
	journal    string
	partition  int32
	partitions int32
	id         scalar.ID
}

// entry is a record of the topic on its way into an object.
type entry struct {
	kafka    *kgo.Record
	sequence int64       // -1 if readers skip the record
	prev     record.Hash // of the chain before the record
	hash     record.Hash // of the value
	plain    bool        // key, headers and timestamp are functions of the value
}

// isPlain reports whether key, headers and timestamp of a record are those that a writer gives to its value. The head is that of the
// value.
func isPlain(l log, r *kgo.Record, head *record.Record) bool {
	if r.Key == nil || r.Value == nil {
		return false
	}
	for _, h := range r.Headers {
		if h.Value == nil {
			return false
		}
	}
	return journal.VerifyKafka(record.Entry{Record: head, Journal: l.id, Value: r.Value}, l.journal, r) == nil
}

// rebuilder sets key, headers and timestamp of plain records. It is not safe for concurrent use.
type rebuilder struct {
	decoder  *record.Decoder
	topic    string
	log      log
	messages *journal.Messages // of the log; nil before the first record
}

func newRebuilder(topic string) *rebuilder {
	return &rebuilder{decoder: record.NewDecoder(decide.NewRegistry()), topic: topic}
}

// rebuild returns a plain record of a log as the topic had it.
func (b *rebuilder) rebuild(l log, offset int64, value []byte) (*kgo.Record, error) {
	head, err := b.decoder.Head(value)
	if err != nil {
		return nil, err
	}
	if b.messages == nil || b.log != l {
		b.log, b.messages = l, journal.NewMessages(b.topic, l.journal, l.partition, l.id)
	}
	r := b.messages.Record(head, value)
	r.Offset = offset
	return r, nil
}

// content computes the hash of everything that a range must preserve.
type content struct {
	sum hash.Hash
	b   []byte
}

func newContent() *content { return &content{sum: sha256.New()} }

// add adds the next record: offset, sequence, hash, and the parts unless the record is plain.
func (c *content) add(e *entry) {
	b := binary.BigEndian.AppendUint64(c.b[:0], uint64(e.kafka.Offset))
	b = binary.BigEndian.AppendUint64(b, uint64(e.sequence))
	b = append(b, e.hash[:]...)
	if e.plain {
		b = append(b, 1)
	} else {
		b = appendParts(append(b, 0), e.kafka)
	}
	c.sum.Write(b)
	c.b = b
}

// appendParts appends what a record has besides its value: the timestamp in milliseconds, whether the value is null, the key, and
// the headers.
func appendParts(b []byte, r *kgo.Record) []byte {
	b = binary.AppendVarint(b, r.Timestamp.UnixMilli())
	if r.Value == nil {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = appendBytes(b, r.Key)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendBytes(b, []byte(h.Key))
		b = appendBytes(b, h.Value)
	}
	return b
}

// appendBytes appends the length plus one, or 0 for null, and the bytes.
func appendBytes(b, of []byte) []byte {
	if of == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(of))+1), of...)
}

// readParts reads what appendParts has appended.
func readParts(from *scanner, r *kgo.Record) {
	r.Timestamp = time.UnixMilli(from.varint())
	switch from.byte() {
	case 0:
		r.Value = []byte{}
	case 1:
	default:
		from.fail()
	}
	r.Key = from.bytes()
	for n := from.uvarint(); n > 0 && from.err == nil; n-- {
		key := from.bytes()
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: string(key), Value: from.bytes()})
	}
}
