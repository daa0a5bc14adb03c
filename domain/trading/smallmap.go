package trading

// smallMap is a map that keeps up to four entries inline and allocates a map only for more. It can be looked up, but not
// iterated.
type smallMap[K comparable, V any] struct {
	keys   [4]K
	values [4]V
	n      int
	more   map[K]V
}

// get returns the value of a key, or the zero value.
func (f *smallMap[K, V]) get(key K) V {
	for i := range f.n {
		if f.keys[i] == key {
			return f.values[i]
		}
	}
	return f.more[key]
}

// put adds a key, which must not be present.
func (f *smallMap[K, V]) put(key K, value V) {
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
