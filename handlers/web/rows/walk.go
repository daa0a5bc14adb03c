package rows

import (
	"iter"
	"slices"

	"github.com/perpetua-exchange/perpetua/projections"
)

// A Walk yields the items of a list after the key beyond, exclusive, or all items if beyond is nil, in either
// direction.
type Walk[T any] func(beyond *projections.Key, descending bool) iter.Seq2[projections.Key, T]

// Take returns a page of a list in memory. It pages like the lists of read models.
func Take[T any](p projections.Page, walk Walk[T]) projections.Paged[T] {
	backwards := p.Before != nil && p.After == nil // a page that ends at a cursor is read backwards from it
	from, descending := p.After, p.Descending
	if backwards {
		from, descending = p.Before, !descending
	}
	var out projections.Paged[T]
	beyond := false
	for k, v := range walk(from, descending) {
		if beyond = len(out.Rows) == p.Size; beyond { // there is an item after the page
			break
		}
		out.Rows = append(out.Rows, projections.Row[T]{Key: k, Value: v})
	}
	var first *projections.Key
	if len(out.Rows) > 0 {
		first = &out.Rows[0].Key
	}
	behind := from != nil && nonEmpty(walk(first, !descending))
	if backwards {
		slices.Reverse(out.Rows)
		out.HasPrevious, out.HasNext = beyond, behind
	} else {
		out.HasPrevious, out.HasNext = behind, beyond
	}
	return out
}

func nonEmpty[T any](all iter.Seq2[projections.Key, T]) bool {
	for range all {
		return true
	}
	return false
}
