package fastjson

import "hash/maphash"

// Words are the strings that were read of late: symbols, codes of customers and the like come again and again, and need
// not be made anew each time. A new one takes the place of another. The zero Words is empty; it is for one goroutine.
type Words struct {
	table []word
	seed  maphash.Seed
}

// word is kept with its hash, so that nobody looks at a text elsewhere in memory to find that it is another.
type word struct {
	hash uint64
	text string
}

const (
	wordsKept = 2048
	wordLimit = 64 // bytes; what is longer does not come again
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
	place := &w.table[hash%wordsKept]
	if place.hash != hash || place.text != string(b) {
		*place = word{hash, string(b)}
	}
	return place.text
}
