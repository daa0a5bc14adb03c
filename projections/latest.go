package projections

// Latest keeps the last row that was put for each key, ordered by when the keys were first put. A batch uses it for rows
// that several entries change.
type Latest[K comparable, T any] struct {
	places map[K]int
	rows   []T
}

// Put replaces or adds the row of the key. It returns the replaced row.
func (l *Latest[K, T]) Put(key K, row T) (old T, replaced bool) {
	if i, ok := l.places[key]; ok {
		old, l.rows[i] = l.rows[i], row
		return old, true
	}
	if l.places == nil {
		l.places = make(map[K]int)
	}
	l.places[key] = len(l.rows)
	l.rows = append(l.rows, row)
	return old, false
}

// Slot returns the row of the key and whether it was known. For an unknown key it adds a zero row. The pointer is valid
// until the next key is added.
func (l *Latest[K, T]) Slot(key K) (row *T, known bool) {
	i, known := l.places[key]
	if !known {
		var zero T
		l.Put(key, zero)
		i = len(l.rows) - 1
	}
	return &l.rows[i], known
}

// Rows returns the rows.
func (l *Latest[K, T]) Rows() []T { return l.rows }
