package rows

import (
	"iter"
	"slices"

	"github.com/perpetua-exchange/perpetua/projections"
)

// A Walk yields what a list holds beyond a place, exclusive, or all of it, in either direction.
type Walk[T any] func(beyond *projections.Key, descending bool) iter.Seq2[projections.Key, T]

// Take takes a page of a list that is in memory, which pages as those in read models do.
func Take[T any](p projections.Page, walk Walk[T]) projections.Paged[T] {
	backwards := p.Before != nil && p.After == nil // the page that ends at a cursor is read from there
	from, descending := p.After, p.Descending
	if backwards {
		from, descending = p.Before, !descending
	}
	var out projections.Paged[T]
	beyond := false
	for k, v := range walk(from, descending) {
		if beyond = len(out.Rows) == p.Size; beyond { // one more than the page holds: something follows it
			break
		}
		out.Rows = append(out.Rows, projections.Row[T]{Key: k, Value: v})
	}
	var first *projections.Key
	if len(out.Rows) > 0 {
		first = &out.Rows[0].Key
	}
	behind := from != nil && some(walk(first, !descending))
	if backwards {
		slices.Reverse(out.Rows)
		out.HasPrevious, out.HasNext = beyond, behind
	} else {
		out.HasPrevious, out.HasNext = behind, beyond
	}
	return out
}

func some[T any](all iter.Seq2[projections.Key, T]) bool {
	for range all {
		return true
	}
	return false
}
