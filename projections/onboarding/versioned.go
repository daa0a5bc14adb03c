package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
)

// versioned collects the rows that a batch makes or changes in a table with a history. An event changes only some columns of
// a row, so the batch knows whole rows only if it makes them. It changes the others once for each record, and before that
// adds the version in the table to the history.
type versioned[T any] struct {
	rows projections.Latest[scalar.ID, []step[T]]
}

// step is a row as a record leaves it, with the groups of all columns that the batch has changed so far.
type step[T any] struct {
	changed[T]
	sequence int64 // of the record
}

// make adds a new row.
func (v *versioned[T]) make(at position, id scalar.ID, row projections.Row[T]) {
	v.rows.Put(id, []step[T]{{changed[T]{Row: row, made: true}, at.Sequence}})
}

// slot returns the row with an id, for a change of a group of columns. The pointer is valid until the next call.
func (v *versioned[T]) slot(at position, id scalar.ID, group int) *changed[T] {
	steps, _ := v.rows.Slot(id)
	var now step[T]
	if n := len(*steps); n > 0 {
		now = (*steps)[n-1]
	}
	if len(*steps) == 0 || now.sequence != at.Sequence {
		now.sequence = at.Sequence
		*steps = append(*steps, now)
	}
	r := &(*steps)[len(*steps)-1].changed
	r.groups |= 1 << group
	return r
}

// write writes the rows and the versions that they replace. The groups are those of put.
func (v *versioned[T]) write(b *projections.Batch, h *projections.History[T], groups ...[]string) {
	var made []changed[T]
	var before []projections.Version[T]
	var changes [][]step[T]
	for _, steps := range v.rows.Rows() {
		if !steps[0].made {
			changes = append(changes, steps)
			continue
		}
		for i := range steps[1:] {
			before = append(before, projections.Version[T]{Row: steps[i].Row, Until: steps[i+1].sequence})
		}
		made = append(made, steps[len(steps)-1].changed)
	}
	put(b, h.Table(), made)
	h.Insert(b, before)
	for round := 0; ; round++ {
		changes = slices.DeleteFunc(changes, func(steps []step[T]) bool { return round >= len(steps) })
		if len(changes) == 0 {
			return
		}
		rows, closed := make([]changed[T], len(changes)), make([]projections.Version[T], len(changes))
		for i, steps := range changes {
			rows[i], closed[i] = steps[round].changed, projections.Version[T]{Row: steps[round].Row, Until: steps[round].sequence}
		}
		h.Close(b, closed, true)
		put(b, h.Table(), rows, groups...)
	}
}
