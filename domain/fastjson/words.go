package fastjson

import "hash/maphash"

// Words is a cache of recently read strings, such as symbols and customer codes. A repeated string is not allocated
// again. A new string replaces an older one. The zero Words is empty and ready for use, by one goroutine.
type Words struct {
	table []word
	seed  maphash.Seed
}

// word keeps the hash with the text, so that most mismatches are found without reading the text from elsewhere in
// memory.
type word struct {
	hash uint64
	text string
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
		w.table, w.seed = make([]word, wordsKept), maphash.MakeSeed()
	}
	hash := maphash.Bytes(w.seed, b)
	entry := &w.table[hash%wordsKept]
	if entry.hash != hash || entry.text != string(b) {
		*entry = word{hash, string(b)}
	}
	return entry.text
}
