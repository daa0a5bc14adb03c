package trading

// few is a map that does without one as long as it holds only a few entries, as nearly always. It is only looked up,
// never walked through.
type few[K comparable, V any] struct {
	keys   [4]K
	values [4]V
	n      int
	more   map[K]V
}

// get returns what is kept for a key, or zero.
func (f *few[K, V]) get(key K) V {
	for i := range f.n {
		if f.keys[i] == key {
			return f.values[i]
		}
	}
	return f.more[key]
}

// put keeps something for a key that is not there yet.
func (f *few[K, V]) put(key K, value V) {
	if f.n < len(f.keys) {
		f.keys[f.n], f.values[f.n] = key, value
		f.n++
		return
	}
	if f.more == nil {
		f.more = make(map[K]V)
	}
	f.more[key] = value
}
