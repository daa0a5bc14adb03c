package fastjson

import (
	"encoding/binary"
	"math/bits"
)

// Words is a cache of recently read strings, such as symbols and customer codes. A repeated string is not allocated
// again. A new string replaces an older one. The zero Words is empty and ready for use, by one goroutine.
type Words struct {
	table *[wordsKept]word
}

// word keeps the ends of the text with it, so that most mismatches are found without reading the text from elsewhere in
// memory. The two ends of a text of 8 to 16 bytes cover the whole text.
type word struct {
	first, last uint64
	text        string
}

const (
	wordsKept = 2048
	wordLimit = 64 // bytes; longer strings rarely repeat
)

// of returns b as a string.
func (w *Words) of(b []byte) string {
	if w == nil || len(b) > wordLimit || len(b) == 0 {
		return string(b)
	}
	if w.table == nil {
		w.table = new([wordsKept]word)
	}
	first, last := ends(b)
	entry := &w.table[slot(first, last, len(b))]
	if entry.first == first && entry.last == last && len(entry.text) == len(b) && (len(b) <= 16 || entry.text == string(b)) {
		return entry.text
	}
	*entry = word{first, last, string(b)}
	return entry.text
}

// ends returns the first and the last 8 bytes of b. If b is shorter, first has its bytes. With the length they determine a text of up
// to 16 bytes.
func ends(b []byte) (first, last uint64) {
	if n := len(b); n >= 8 {
		return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	}
	for _, c := range b {
		first = first<<8 | uint64(c)
	}
	return first, 0
}

// slot returns the index of a text in the table. Its bytes come from a log, and texts chosen to share a slot are only slower.
func slot(first, last uint64, length int) uint64 {
	high, low := bits.Mul64(first^0x9e3779b97f4a7c15, bits.RotateLeft64(last, 32)^0xd6e8feb86659fd93)
	return ((high ^ low) + uint64(length)) * 0x9e3779b97f4a7c15 >> 53
}
