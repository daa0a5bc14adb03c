package projections

// Versioned is a Latest that also keeps the rows that later records replace. Close adds them to a History. The table must
// not have columns that keep their first value.
type Versioned[K comparable, T any] struct {
	latest   Latest[K, Row[T]]
	spans    Latest[K, span]
	replaced []Version[T]
}

// span names the first and the last record that put a row.
type span struct{ first, last int64 }

// Put replaces or adds the row of the key, as the record with the sequence leaves it. Sequences never decrease.
func (v *Versioned[K, T]) Put(key K, sequence int64, row Row[T]) {
	old, known := v.latest.Put(key, row)
	s, _ := v.spans.Slot(key)
	if !known {
		s.first = sequence
	} else if s.last != sequence {
		v.replaced = append(v.replaced, Version[T]{old, sequence})
	}
	s.last = sequence
}

// Rows returns the last row of each key.
func (v *Versioned[K, T]) Rows() []Row[T] { return v.latest.Rows() }

// Close adds the replaced rows to the history, and the rows that the table has before the batch. It MUST come before the
// statement that changes the table.
func (v *Versioned[K, T]) Close(b *Batch, h *History[T]) {
	h.Insert(b, v.replaced)
	stored := make([]Version[T], len(v.latest.rows))
	for i, row := range v.latest.rows {
		stored[i] = Version[T]{row, v.spans.rows[i].first}
	}
	h.Close(b, stored, false)
}
