package projections

// Latest keeps the last row that was put for each key, ordered by when the keys were first put. A batch uses it for rows
// that several entries change.
type Latest[K comparable, T any] struct {
	indexes map[K]int
	rows    []T
}

// Put replaces or adds the row of the key. It returns the replaced row.
func (l *Latest[K, T]) Put(key K, row T) (old T, replaced bool) {
	if i, ok := l.indexes[key]; ok {
		old, l.rows[i] = l.rows[i], row
		return old, true
	}
	if l.indexes == nil {
		l.indexes = make(map[K]int)
	}
	l.indexes[key] = len(l.rows)
	l.rows = append(l.rows, row)
	return old, false
}

// Slot returns the row of the key and whether it was known. For an unknown key it adds a zero row. The pointer is valid
// until the next key is added.
func (l *Latest[K, T]) Slot(key K) (row *T, known bool) {
	i, known := l.indexes[key]
	if !known {
		var zero T
		l.Put(key, zero)
		i = len(l.rows) - 1
	}
	return &l.rows[i], known
}

// Rows returns the rows.
func (l *Latest[K, T]) Rows() []T { return l.rows }
