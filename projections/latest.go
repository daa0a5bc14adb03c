package projections

// Latest keeps one row for each key, the last that was put, in the order in which the keys first came: what a batch
// leaves of rows that several of its entries change.
type Latest[K comparable, T any] struct {
	places map[K]int
	rows   []T
}

// Put replaces the row of the key, or adds it. It returns the row that was there, if one was.
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

// Slot returns the row of the key, to be written to until the next key is added, and whether it was there; if not, it
// is zero.
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
