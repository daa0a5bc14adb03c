package term

// fifo is a queue on a slice. The zero fifo is empty.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) push(v T) { q.items = append(q.items, v) }

// peek returns the oldest item. The queue must not be empty.
func (q *fifo[T]) peek() T { return q.items[q.head] }

func (q *fifo[T]) pop() T {
	v := q.items[q.head]
	var zero T
	q.items[q.head] = zero
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head > 1024 && q.head*2 > len(q.items):
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return v
}

// remove removes the items that drop selects.
func (q *fifo[T]) remove(drop func(T) bool) {
	remaining := q.items[:0]
	for _, v := range q.items[q.head:] {
		if !drop(v) {
			remaining = append(remaining, v)
		}
	}
	clear(q.items[len(remaining):])
	q.items, q.head = remaining, 0
}

// all returns the items, oldest first. The caller must not change the slice.
func (q *fifo[T]) all() []T { return q.items[q.head:] }
