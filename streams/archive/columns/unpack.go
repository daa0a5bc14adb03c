package columns

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Decoder decodes chunks. It is safe for concurrent use.
type Decoder struct {
	zstd  *zstd.Decoder
	rooms sync.Pool // of *room
}

// NewDecoder returns a decoder.
func NewDecoder() (*Decoder, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecodeAllCapLimit(true))
	return &Decoder{zstd: z}, err
}

// room is memory that a decoder uses again.
type room struct {
	buf    []byte
	values []value
}

// fit makes the buffer large enough to decode total bytes.
func (r *room) fit(total int) {
	if cap(r.buf) < total+slack {
		r.buf = make([]byte, total+slack)
	}
	r.buf = r.buf[:total+slack]
}

// room returns memory that is free, or none.
func (c *Decoder) room() *room {
	if r, ok := c.rooms.Get().(*room); ok {
		return r
	}
	return new(room)
}

// Decode returns the values of a chunk, of which there must be as many as sequences, and total bytes. Its errors are
// *DamagedError.
func (c *Decoder) Decode(journal scalar.ID, sequences []int64, chunk []byte, total int) (*Decoded, error) {
	r := c.room()
	defer c.rooms.Put(r)
	out, err := c.decode(journal, sequences, chunk, total, r)
	r.buf = nil
	return out, err
}

// Free returns the Bytes of decoded values to the decoder, which decodes another chunk into them. The caller MUST NOT use them again.
func (c *Decoder) Free(b []byte) {
	r := c.room()
	r.buf = b
	c.rooms.Put(r)
}

// decode is Decode with memory to use. The values that it returns are in the buffer of room, if that is large enough.
func (c *Decoder) decode(journal scalar.ID, sequences []int64, chunk []byte, total int, room *room) (*Decoded, error) {
	if len(chunk) == 0 {
		return nil, &DamagedError{-1, errShort}
	}
	form, chunk := chunk[0], chunk[1:]
	switch form {
	case formPlain:
		return c.plain(len(sequences), chunk, total)
	case formColumns:
	default:
		return nil, &DamagedError{-1, fmt.Errorf("it is in the unknown form %d", form)}
	}
	d := &decoder{model: newModel(journal), sequences: sequences, limit: total}
	if err := c.open(d, chunk); err != nil {
		return nil, &DamagedError{-1, err}
	}
	d.start()
	room.fit(total)
	d.buf, d.values = room.buf, append(slices.Grow(room.values[:0], 1+d.count()), value{})
	d.out.Ends, d.out.Prev = make([]int, 0, len(sequences)), make([]int, 0, len(sequences))
	err := d.all()
	room.values = d.values
	if err != nil {
		return nil, err
	}
	if d.at != total {
		return nil, &DamagedError{-1, fmt.Errorf("its values have %d bytes, not %d", d.at, total)}
	}
	out := d.out // a copy, because a pointer into d would keep all of d in memory
	out.Bytes = d.buf[:total]
	return &out, nil
}

// plain decodes the plain form.
func (c *Decoder) plain(n int, chunk []byte, total int) (*Decoded, error) {
	rest := stream{b: chunk}
	b, err := c.frame(&rest, mostInFrame(n, total))
	if err != nil {
		return nil, &DamagedError{-1, err}
	}
	lengths := stream{b: b}
	out := new(Decoded)
	if b, err = c.frame(&rest, total); err != nil {
		return nil, &DamagedError{-1, err}
	}
	out.Bytes = bytes.Clone(b) // it may be a part of the chunk, and the caller may free it
	end := 0
	for i := range n {
		size, err := lengths.readUvarint()
		if err != nil || size > uint64(len(out.Bytes)-end) {
			return nil, &DamagedError{i, errShort}
		}
		end += int(size)
		out.Ends, out.Prev = append(out.Ends, end), append(out.Prev, -1)
	}
	if end != len(out.Bytes) || end != total || !lengths.done() || !rest.done() {
		return nil, &DamagedError{-1, errLeft}
	}
	return out, nil
}

// open reads the templates and opens the streams.
func (c *Decoder) open(d *decoder, chunk []byte) error {
	rest, most := stream{b: chunk}, mostInFrame(len(d.sequences), d.limit)
	first, err := c.frame(&rest, most)
	if err != nil {
		return err
	}
	head := stream{b: append(make([]byte, 0, len(first)+slack), first...)} // static texts have slack after them
	if err := readTemplates(d.model, &head, d.limit); err != nil {
		return err
	}
	var frame stream
	for _, s := range streamsOf(d.model, &d.raw, &d.rare) {
		n, err := head.readUvarint()
		if err != nil {
			return err
		}
		size := n >> 1
		if n&1 == 1 {
			if size == 0 || size > MaxBytes {
				return errRange
			}
			s.repeated, size = int(size), 1
		}
		if frame.done() && size > 0 {
			b, err := c.frame(&rest, most)
			if err != nil {
				return err
			}
			frame = stream{b: b}
		}
		if size > MaxBytes {
			return errRange
		}
		if s.b, err = frame.take(int(size)); err != nil {
			return err
		}
	}
	if len(rest.b)-rest.i == 2 && rest.b[rest.i] == 0 { // an empty frame
		rest.i += 2
	}
	if !frame.done() || !head.done() || !rest.done() {
		return errLeft
	}
	return nil
}

// mostInFrame returns a number of bytes that no frame of a chunk exceeds. A value has at least one byte of the text. Its column takes up
// to 162 bytes in the templates, together with its piece, and the value up to 24 bytes in a stream.
func mostInFrame(records, total int) int { return min(256*(records+total)+4096, MaxBytes) }

// MaxExpansion is how much longer than its compressed form a frame of zstd can be: four bytes repeat one of them 128 Ki times.
const MaxExpansion = 128 << 10 / 4

// frame returns the next frame, which has at most a number of bytes.
func (c *Decoder) frame(rest *stream, most int) ([]byte, error) {
	size, err := rest.readUvarint()
	if err != nil {
		return nil, err
	}
	packed, err := rest.readUvarint()
	if err != nil {
		return nil, err
	}
	if size > uint64(most) || packed > MaxBytes || packed > 0 && size > packed*MaxExpansion {
		return nil, errRange
	}
	if packed == 0 {
		return rest.take(int(size))
	}
	b, err := rest.take(int(packed))
	if err != nil {
		return nil, err
	}
	var header zstd.Header
	if err := header.Decode(b); err != nil || !header.HasFCS || header.FrameContentSize != size {
		return nil, errRange
	}
	out, err := c.zstd.DecodeAll(b, make([]byte, 0, size+16)) // with 16 more bytes, zstd copies faster
	if err != nil {
		return nil, err
	}
	if uint64(len(out)) != size {
		return nil, errRange
	}
	return out, nil
}

var errTemplate = errors.New("a template is not in the form of one")

// readTemplates reads the templates of values with a number of bytes. Each template is a part of a value, and each hole has at least
// one byte in it, so that limits the memory for them.
func readTemplates(m *model, from *stream, total int) error {
	number := func(below int) int {
		n, err := from.readUvarint()
		if err != nil || n >= uint64(below) {
			below = -1
		}
		if below < 0 {
			from.i = len(from.b) + 1
			return 0
		}
		return int(n)
	}
	ok := func() bool { return from.i <= len(from.b) }
	names, pieces := number(1<<16), number(maxPieces+1)
	if !ok() || names < 1 || pieces < 2 || pieces > total+3 { // of the three, one is the template of an empty value
		return errTemplate
	}
	dicts := make(map[int]*dictionary)
	for range pieces - 2 {
		p := &piece{number: uint32(len(m.pieces))}
		holes := number(min(maxHoles, total+1-len(m.columns)) + 1)
		for i := 0; ok() && i <= holes; i++ {
			text, err := from.take(number(maxStatic + 1))
			if err != nil || !ok() {
				return errTemplate
			}
			p.statics = append(p.statics, text)
		}
		for i := 0; ok() && i < holes; i++ {
			name := number(names)
			if dicts[name] == nil {
				dicts[name] = new(dictionary)
			}
			m.addColumn(p, name, false, dicts[name])
		}
		for _, list := range []*[]int{&p.anchors, &p.joined} {
			for n := number(maxAnchors + 1); ok() && n > 0; n-- {
				*list = append(*list, number(holes))
			}
		}
		for range p.anchorsOf() {
			p.updates = append(p.updates, number(2) == 1)
		}
		if !ok() {
			return errTemplate
		}
		p.index()
		m.pieces = append(m.pieces, p)
	}
	for _, c := range m.columns {
		for n := number(maxSlots + 1); ok() && n > 0; n-- {
			c.slots = append(c.slots, number(len(m.columns)))
		}
		for n := number(maxBases + 1); ok() && n > 0; n-- {
			b := base{kind: byte(number(int(baseSlot) + 1)), of: number(len(m.columns)), plus: number(len(m.columns) + 1)}
			c.bases = append(c.bases, b)
		}
	}
	if !ok() {
		return errTemplate
	}
	return nil
}
