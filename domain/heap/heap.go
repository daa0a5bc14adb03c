// Package heap is a binary heap of entries that know their index, so that any entry can be moved or removed. The Order
// of a heap says which of two entries comes first. A heap is not safe for concurrent use.
package heap

import "iter"

// Order compares the entries of a heap and keeps their indexes.
type Order[E any] interface {
	// Before reports whether a comes before b.
	Before(a, b E) bool
	// Moved stores the new index of e in the heap. It MUST NOT change what Before compares.
	Moved(e E, index int)
}

// Heap is a heap of entries. The zero heap is empty and uses the zero Order.
type Heap[E any, O Order[E]] struct {
	Order   O
	entries []E
}

// Entries returns the entries in no particular order, except that the first entry comes first. The caller MUST NOT
// change the slice, and MUST NOT use it after the next change of the heap.
func (h *Heap[E, O]) Entries() []E { return h.entries }

// First returns the first entry, or false if the heap is empty.
func (h *Heap[E, O]) First() (first E, ok bool) {
	if len(h.entries) == 0 {
		return first, false
	}
	return h.entries[0], true
}

// Push adds an entry.
func (h *Heap[E, O]) Push(e E) {
	h.Append(e)
	h.up(len(h.entries) - 1)
}

// Append adds an entry at the end. After the last of several calls, Restore MUST be called.
func (h *Heap[E, O]) Append(e E) {
	h.Order.Moved(e, len(h.entries))
	h.entries = append(h.entries, e)
}

// Restore puts the entries into the order of a heap.
func (h *Heap[E, O]) Restore() {
	for i := len(h.entries)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Fix moves the entry at index i, which was changed, to its place.
func (h *Heap[E, O]) Fix(i int) {
	h.up(i)
	h.down(i)
}

// Remove removes the entry at index i. It does not call Moved for this entry.
func (h *Heap[E, O]) Remove(i int) {
	last := len(h.entries) - 1
	moved := h.entries[last]
	clear(h.entries[last:])
	h.entries = h.entries[:last]
	if i < last {
		h.put(i, moved)
		h.Fix(i)
	}
}

func (h *Heap[E, O]) put(i int, e E) {
	h.entries[i] = e
	h.Order.Moved(e, i)
}

func (h *Heap[E, O]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.Order.Before(h.entries[i], h.entries[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *Heap[E, O]) down(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.entries); child++ {
			if h.Order.Before(h.entries[child], h.entries[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}

func (h *Heap[E, O]) swap(i, j int) {
	a, b := h.entries[i], h.entries[j]
	h.put(i, b)
	h.put(j, a)
}

// InOrder yields the entries in their order, without removing them. The heap MUST NOT change during the iteration. The
// first n entries take O(n²) time, which suits small n.
func (h *Heap[E, O]) InOrder() iter.Seq[E] {
	return func(yield func(E) bool) {
		if len(h.entries) == 0 {
			return
		}
		next := []int{0} // the next entry is at one of these indexes: the children of the entries before
		for len(next) > 0 {
			first := 0
			for n := 1; n < len(next); n++ {
				if h.Order.Before(h.entries[next[n]], h.entries[next[first]]) {
					first = n
				}
			}
			at := next[first]
			next[first] = next[len(next)-1]
			next = next[:len(next)-1]
			if !yield(h.entries[at]) {
				return
			}
			for child := 2*at + 1; child <= 2*at+2 && child < len(h.entries); child++ {
				next = append(next, child)
			}
		}
	}
}

// Descend calls take with the first entry, and with both children of each entry for which take returned true. So it finds
// all entries up to a limit, in no particular order, without looking at most of the others.
func (h *Heap[E, O]) Descend(take func(E) bool) {
	for i := 0; ; {
		if i < len(h.entries) && take(h.entries[i]) {
			i = 2*i + 1
			continue
		}
		for i > 0 && i%2 == 0 { // up from right children
			i = (i - 1) / 2
		}
		if i == 0 {
			return
		}
		i++ // from the left child to the right one
	}
}
