package archive

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/archive/columns"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// chunkBytes is the size of the values from which a chunk is complete. It bounds the memory of writers and readers.
const chunkBytes = 32 << 20

// hashBytes is how much of each record's hash an object keeps.
const hashBytes = 4

// chunkHead describes a chunk in the header of an object. A chunk can be decoded without the others.
type chunkHead struct {
	First   int64       `json:"first"`   // sequence of the first valid record in it, or of the next one after it
	Offset  int64       `json:"offset"`  // of its first record
	Start   record.Hash `json:"start"`   // of the chain before it
	Records int         `json:"records"` // valid and skipped
	Values  int         `json:"values"`  // bytes of their values
	Facts   int         `json:"facts"`   // bytes of the part of the chunk that is not in columns
	Columns int         `json:"columns"` // bytes of the part in columns

	valid int // number of valid records, while it is written
}

// chunk is the content of a chunk before its values are decoded.
type chunk struct {
	chunkHead
	sequences []int64 // -1 for records that readers skip
	offsets   []int64
	starts    []record.Hash // of the chain before each sequence in the chunk that is a multiple of blockRecords
	prefixes  []byte        // hashBytes of the hash of each value
	parts     map[int]*kgo.Record
}

// appendFacts appends what the columns of a chunk do not hold.
func appendFacts(b []byte, entries []entry) []byte {
	b = appendRuns(b, entries)
	for i, e := range entries {
		if i > 0 && e.kafka.Offset != entries[i-1].kafka.Offset+1 {
			b = binary.AppendUvarint(b, uint64(i))
			b = binary.AppendUvarint(b, uint64(e.kafka.Offset-entries[i-1].kafka.Offset-1))
		}
	}
	b = append(b, 0)
	for i, e := range entries {
		if !e.plain {
			b = binary.AppendUvarint(b, uint64(i)+1)
			b = appendParts(b, e.kafka)
		}
	}
	b = append(b, 0)
	for _, e := range entries {
		if e.sequence >= 0 && e.sequence%blockRecords == 0 {
			b = append(b, e.prev[:]...)
		}
	}
	for _, e := range entries {
		b = append(b, e.hash[:hashBytes]...)
	}
	return b
}

// appendRuns appends the lengths of the runs of valid and skipped records by turns, beginning with valid ones.
func appendRuns(b []byte, entries []entry) []byte {
	run, valid := 0, true
	for _, e := range entries {
		if (e.sequence >= 0) != valid {
			b, run, valid = binary.AppendUvarint(b, uint64(run)), 0, !valid
		}
		run++
	}
	return binary.AppendUvarint(b, uint64(run))
}

// parseFacts reads the facts of a chunk.
func parseFacts(h chunkHead, facts []byte) (*chunk, error) {
	c := &chunk{chunkHead: h, parts: make(map[int]*kgo.Record)}
	s := &scanner{b: facts}
	next, blocks := h.First, 0
	for valid := true; len(c.sequences) < h.Records && s.err == nil; valid = !valid {
		n := s.count(h.Records - len(c.sequences))
		if n == 0 && len(c.sequences) > 0 {
			s.fail()
		}
		for range n {
			if !valid {
				c.sequences = append(c.sequences, -1)
				continue
			}
			if next%blockRecords == 0 {
				blocks++
			}
			c.sequences = append(c.sequences, next)
			next++
		}
	}
	offset, at := h.Offset, 0
	fill := func(to int) {
		for ; at < to; at++ {
			c.offsets = append(c.offsets, offset)
			offset++
		}
	}
	for s.err == nil {
		i := s.count(h.Records - 1)
		if i == 0 {
			break
		}
		gap := s.uvarint()
		if i <= at || gap == 0 || gap > math.MaxInt64/4 || offset > math.MaxInt64/4 {
			s.fail()
			break
		}
		fill(i)
		offset += int64(gap)
	}
	fill(h.Records)
	for before := 0; s.err == nil; {
		i := s.count(h.Records)
		if i == 0 {
			break
		}
		if i <= before {
			s.fail()
		}
		before = i
		r := &kgo.Record{}
		readParts(s, r)
		c.parts[i-1] = r
	}
	for range blocks {
		var start record.Hash
		copy(start[:], s.take(len(start)))
		c.starts = append(c.starts, start)
	}
	c.prefixes = s.take(hashBytes * h.Records)
	if s.err != nil || len(s.b) > 0 {
		return nil, errForm
	}
	return c, nil
}

// Codec compresses the records of archives. Writers of several archives may share one. It compresses chunks one after the other,
// so a process needs the tables and the buffers once, and no more than one core.
type Codec struct{ codec *codec }

// NewCodec returns a codec. The first chunk allocates most of the memory.
func NewCodec() (*Codec, error) {
	c, err := newCodec()
	return &Codec{c}, err
}

// UseCodec makes the writers of an archive use a shared codec. Otherwise each writer has its own.
func (c *Config) UseCodec(shared *Codec) { c.codec = shared.codec }

// codec compresses facts and columns. The hashes at the end of the facts are not compressible, and zstd stores them as they are, so
// a low level suffices.
type codec struct {
	mu      sync.Mutex
	encoder *columns.Encoder
	zstd    *zstd.Encoder
}

func newCodec() (*codec, error) {
	e, err := columns.NewEncoder()
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	return &codec{encoder: e, zstd: z}, err
}

const (
	// leastShare is the share of a busy processor at which records are encoded while they are young.
	leastShare = 1.0 / 16
	// urgentAge is the age of a record from which encoding gets as much of a busy processor as all else.
	urgentAge = 10 * time.Minute
)

// share returns the share of a busy processor for encoding records of an age. Young records wait for a burst of orders to end. The
// share grows with the age, because an archive that is behind keeps a log from being trimmed.
func share(age time.Duration) float64 {
	return min(max(leastShare, age.Seconds()/urgentAge.Seconds()), 1)
}

// encode returns the two parts of a chunk.
func (c *codec) encode(l log, entries []entry) (head chunkHead, facts, values []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := make([]columns.Value, len(entries))
	for i, e := range entries {
		in[i] = columns.Value{Bytes: e.kafka.Value, Sequence: e.sequence}
		if e.sequence >= 0 {
			in[i].Prev = e.prev.String()
		}
		head.Values += len(e.kafka.Value)
	}
	c.encoder.SetShare(share(time.Since(entries[0].kafka.Timestamp)))
	if values, err = c.encoder.Encode(l.id, in); err != nil {
		return head, nil, nil, fmt.Errorf("archive: %w", err)
	}
	facts = c.zstd.EncodeAll(appendFacts(nil, entries), nil)
	head.Offset, head.Start, head.Records = entries[0].kafka.Offset, entries[0].prev, len(entries)
	head.Facts, head.Columns = len(facts), len(values)
	return head, facts, values, nil
}
