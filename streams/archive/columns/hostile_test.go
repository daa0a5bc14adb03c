package columns

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
)

// crafted returns a chunk that no encoder makes. make adds templates and streams to the model of an encoder.
func crafted(t *testing.T, make func(e *encoder)) []byte {
	c, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	e := &encoder{model: newModel(journal)}
	make(e)
	return append([]byte{formColumns}, c.pack(e)...)
}

// add adds a template whose columns have the names. The static text before each column is before, and that after the last is empty.
func (e *encoder) add(before string, names ...int) *piece {
	p := &piece{number: uint32(len(e.pieces))}
	for _, n := range names {
		p.statics = append(p.statics, []byte(before))
		e.model.names = max(e.model.names, n+1)
		e.addColumn(p, n, false, new(dictionary))
	}
	p.statics = append(p.statics, nil)
	e.pieces = append(e.pieces, p)
	return p
}

// repeated returns n bytes. A chunk has one of them, and their number.
func repeated(b byte, n int) stream { return stream{b: bytes.Repeat([]byte{b}, n)} }

// TestHostileChunks decodes small chunks that would take gigabytes without limits, or go on for long.
func TestHostileChunks(t *testing.T) {
	frame := func(size uint64) []byte { // claims to be long, and is not
		b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0} // a single segment with 8 bytes for its length
		b = append(binary.LittleEndian.AppendUint64(b, size), 1, 0, 0)
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, size), uint64(len(b))), b...)
	}
	wide := make([]int, maxHoles)
	for name, c := range map[string]struct {
		chunk []byte
		total int
		good  bool
	}{
		"rows without text": {chunk: crafted(t, func(e *encoder) {
			p := e.add("")
			p.next = repeated(2, 1000)
			p.next.byte(0)
			e.pieces[0].next = repeated(2, 1)
		})},
		"values without text": {total: 1 << 17, chunk: crafted(t, func(e *encoder) {
			p := e.add("", wide...)
			p.statics[0] = []byte("x")
			p.next = repeated(2, 1<<17)
			e.pieces[0].next = repeated(2, 1)
			for _, c := range p.columns {
				c.streams[streamOps], c.streams[streamTexts] = repeated(opText, 1<<17), repeated(0, 1<<17)
			}
		})},
		"columns without values": {total: 1000, chunk: crafted(t, func(e *encoder) {
			for range maxPieces - 2 {
				e.add("", wide...)
			}
		})},
		"templates without values": {total: 1, chunk: crafted(t, func(e *encoder) {
			p := e.add("")
			p.statics[0] = []byte("x")
			for range 1000 {
				e.add("")
			}
			p.next, e.pieces[0].next = repeated(0, 1), repeated(2, 1)
		})},
		"a long frame of few bytes":  {total: 1 << 28, chunk: append([]byte{formColumns}, frame(1<<28)...)},
		"a plain frame of few bytes": {total: 1 << 28, chunk: append([]byte{formPlain, 1, 0, 0}, frame(1<<28)...)},
		"a second frame in a frame": {total: 1 << 28, chunk: func() []byte {
			c, err := NewEncoder()
			if err != nil {
				t.Fatal(err)
			}
			first := c.zstd.EncodeAll(make([]byte, 20), nil)
			second := frame(1 << 28)
			_, n := binary.Uvarint(second)
			_, k := binary.Uvarint(second[n:])
			b := append(first, second[n+k:]...)
			return append(binary.AppendUvarint([]byte{formColumns, 20}, uint64(len(b))), b...)
		}()},
		"a frame longer than the values allow": {total: 4000, chunk: crafted(t, func(e *encoder) {
			p := e.add("x")
			p.statics[0] = bytes.Repeat([]byte("ab"), maxStatic/2)
			for range 4000 {
				e.pieces = append(e.pieces, p)
			}
		})},
		"objects with few members of many names": {total: 3000 * 7 * 3, good: true, chunk: crafted(t, func(e *encoder) {
			var all []*piece
			for range maxChanges + 2 {
				p := e.add("", 1, 1<<16-2)
				p.anchors, p.updates = []int{0}, []bool{true}
				all = append(all, p)
			}
			for i := range 3000 {
				before := &all[len(all)-1].next
				if i == 0 {
					before = &e.pieces[0].next
				}
				for _, p := range all {
					before.uvarint(uint64(p.number))
					before = &p.next
					for h, text := range []string{string([]byte{byte(i), byte(i >> 8), 'x'}), ""} {
						s := &p.columns[h].streams
						s[streamOps].byte(opText)
						s[streamTexts].uvarint(uint64(len(text)))
						s[streamTexts].b = append(s[streamTexts].b, text...)
					}
				}
			}
			all[len(all)-1].next.uvarint(0)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := NewDecoder()
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = d.Decode(journal, []int64{5}, c.chunk, c.total)
			runtime.ReadMemStats(&after)
			if (err == nil) != c.good {
				t.Errorf("%v", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 128<<20 {
				t.Errorf("decoding %d bytes allocates %d MiB", len(c.chunk), n>>20)
			}
		})
	}
}

// TestFirstValuesUnlikeTheRest encodes values whose beginning says nothing of the rest.
func TestFirstValuesUnlikeTheRest(t *testing.T) {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]Value, estimateAfter+1)
	for i := range estimateAfter {
		values[i] = Value{Bytes: []byte("1"), Sequence: -1}
	}
	values[estimateAfter] = Value{Bytes: bytes.Repeat([]byte(" "), 4<<20), Sequence: -1}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := e.Encode(journal, values); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 96<<20 {
		t.Errorf("it allocates %d MiB", n>>20)
	}
}
