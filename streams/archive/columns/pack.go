package columns

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// frameBytes is the most that several streams in one frame have together. A longer stream has a separate frame.
const frameBytes = 2048

// Encoder encodes chunks. It is not safe for concurrent use.
type Encoder struct {
	zstd  *zstd.Encoder
	dec   *Decoder
	share float64
}

// NewEncoder returns an encoder.
func NewEncoder() (*Encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, err
	}
	d, err := NewDecoder()
	return &Encoder{z, d, 1}, err
}

// SetShare sets how long Encode works on a busy processor, relative to the other goroutines: as long as they do for 1, which is the
// default, and a tenth of that for 0.1. The share MUST be above 0. On an idle processor Encode works all the time.
func (c *Encoder) SetShare(share float64) { c.share = share }

// MaxBytes is the largest sum of the lengths of the values of a chunk. It is the number of bytes to which a Kafka client decompresses a
// batch at most. An archive has a chunk for each 32 MiB of values, and the last record of a chunk may have any size: a topic takes
// four million bytes of a compressed batch, and readers skip a record of it that no writer has made. So a smaller bound would refuse
// archives that writers have made.
const MaxBytes = 1 << 30

// Encode returns the chunk of the values. The journal's id is that from which ids derive. The same values always give the same
// chunk. Encode decodes the chunk and compares the values before it returns.
func (c *Encoder) Encode(journal scalar.ID, values []Value) ([]byte, error) {
	total, sequences := 0, make([]int64, len(values))
	for i, v := range values {
		total += len(v.Bytes)
		sequences[i] = v.Sequence
	}
	if total > MaxBytes {
		return nil, fmt.Errorf("a chunk of %d bytes", total)
	}
	room := c.dec.room()
	defer c.dec.rooms.Put(room)
	chunk := append([]byte{formColumns}, c.columns(journal, values, total, room)...)
	err := c.check(journal, values, sequences, chunk, total, room)
	if err == nil {
		return chunk, nil
	}
	chunk = c.plain(values)
	return chunk, c.check(journal, values, sequences, chunk, total, room)
}

// The forms of a chunk, which are its first byte.
const (
	formPlain   byte = iota // the lengths of the values, then the values, in one frame each
	formColumns             // templates and streams
)

// plain returns the form for values that do not decode from columns to the same bytes.
func (c *Encoder) plain(values []Value) []byte {
	var lengths stream
	var all []byte
	for _, v := range values {
		lengths.uvarint(uint64(len(v.Bytes)))
		all = append(all, v.Bytes...)
	}
	return c.appendFrame(c.appendFrame([]byte{formPlain}, lengths.b), all)
}

// columns returns the templates and streams of values, which have a number of bytes. It uses the memory of room, and returns it.
func (c *Encoder) columns(journal scalar.ID, values []Value, total int, room *room) []byte {
	e := &encoder{model: newModel(journal), in: values, turns: newTurns(c.share), templates: make(map[string]int), names: make(map[string]int),
		dicts: make(map[int]*dictionary), ids: idIndex{known: make(map[scalar.ID]origin), record: -1}}
	room.fit(total)
	e.buf, e.values = room.buf[:0], append(room.values[:0], value{})
	e.split()
	e.fold()
	e.count()
	e.choose()
	e.emit()
	e.prune()
	room.values = e.values
	return c.pack(e)
}

// check returns an error if a chunk does not decode to the values.
func (c *Encoder) check(journal scalar.ID, values []Value, sequences []int64, chunk []byte, total int, room *room) error {
	again, err := c.dec.decode(journal, sequences, chunk, total, room)
	if err != nil {
		return fmt.Errorf("a chunk does not decode: %w", err)
	}
	from := 0
	for i, v := range values {
		if at := again.Prev[i]; at >= 0 {
			copy(again.Bytes[at:at+len(noHash)], v.Prev)
		}
		if !bytes.Equal(again.Bytes[from:again.Ends[i]], v.Bytes) {
			return fmt.Errorf("value %d of a chunk does not decode to the same bytes", i)
		}
		from = again.Ends[i]
	}
	return nil
}

// streamsOf returns the streams of a model, in the order in which a chunk has them.
func streamsOf(m *model, raw, rare *stream) []*stream {
	all := []*stream{raw, rare}
	for _, p := range m.pieces {
		all = append(all, &p.next)
	}
	for kind := range streamsPerColumn {
		for _, c := range m.columns {
			all = append(all, &c.streams[kind])
		}
	}
	return all
}

// pack joins the templates and the streams.
func (c *Encoder) pack(e *encoder) []byte {
	var head stream
	e.writeTemplates(&head)
	streams := streamsOf(e.model, &e.raw, &e.rare)
	var frames [][]byte
	var frame []byte
	for _, s := range streams {
		if n := len(s.b); n > 4 && bytes.Count(s.b, s.b[:1]) == n {
			head.uvarint(uint64(n)<<1 | 1)
			s.b = s.b[:1]
		} else {
			head.uvarint(uint64(n) << 1)
		}
		if len(frame) > 0 && len(frame)+len(s.b) > frameBytes {
			frames = append(frames, frame)
			frame = nil
		}
		frame = append(frame, s.b...)
	}
	frames = append(frames, frame)
	out := c.appendFrame(nil, head.b)
	for _, f := range frames {
		out = c.appendFrame(out, f)
	}
	return out
}

// appendFrame appends the lengths of a frame before and after its compression, and the frame. It is not compressed if that saves
// nothing; its second length is then 0.
func (c *Encoder) appendFrame(out, frame []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(frame)))
	packed := c.zstd.EncodeAll(frame, nil)
	if len(packed) >= len(frame) {
		return append(append(out, 0), frame...)
	}
	out = binary.AppendUvarint(out, uint64(len(packed)))
	return append(out, packed...)
}

func (e *encoder) writeTemplates(to *stream) {
	to.uvarint(uint64(e.model.names))
	to.uvarint(uint64(len(e.pieces)))
	for _, p := range e.pieces[2:] {
		to.uvarint(uint64(len(p.columns)))
		for _, s := range p.statics {
			to.uvarint(uint64(len(s)))
			to.b = append(to.b, s...)
		}
		for _, c := range p.columns {
			to.uvarint(uint64(c.name))
		}
		for _, list := range [][]int{p.anchors, p.joined} {
			to.uvarint(uint64(len(list)))
			for _, h := range list {
				to.uvarint(uint64(h))
			}
		}
		for _, updates := range p.updates {
			to.byte(byte(bit(updates)))
		}
	}
	for _, c := range e.columns {
		to.uvarint(uint64(len(c.slots)))
		for _, k := range c.slots {
			to.uvarint(uint64(k))
		}
		to.uvarint(uint64(len(c.bases)))
		for _, b := range c.bases {
			to.byte(b.kind)
			to.uvarint(uint64(b.of))
			to.uvarint(uint64(b.plus))
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func appendUnhex(b, digits []byte) []byte {
	b, _ = hex.AppendDecode(b, digits)
	return b
}
