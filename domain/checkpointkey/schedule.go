// Package checkpointkey says which keys sign the checkpoints of a journal's transparency logs. streams/README.md, "Rotation of
// the key", says how.
//
// A key is named by its verifier key (c2sp.org/signed-note): the origin of the log, a hash, and the public key. Before the first
// rotation, a log has the key of generation 1, and no record names it.
package checkpointkey

import (
	"fmt"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Overlap is the time for which both keys sign after a rotation.
const Overlap = 30 * scalar.Day

// FirstGeneration is that of the key of a new log.
const FirstGeneration = 1

// Rotation is a record that names the next key of a log.
type Rotation struct {
	Sequence   int64       // of the record: the new key signs every tree that contains it
	Generation int         // of the new key, from 2
	Previous   string      // the verifier key until then
	Key        string      // the new verifier key
	Until      scalar.Time // the previous key signs no tree with a record of this time or later
	// Retired is the sequence of the first record with the time Until or later. It is 0 before that record.
	Retired int64
}

// Schedule lists the rotations of all logs of a journal in the order of their records. The zero Schedule has none. Another host
// in the origin is another log of the same journal, with its own keys.
type Schedule struct{ rotations []*Rotation }

// Rotate adds a rotation. Retired must be 0. It returns an error if the generation is not the one after the last of that log.
func (s *Schedule) Rotate(r Rotation) error {
	last, _ := s.Last(Origin(r.Key))
	if want := max(last.Generation, FirstGeneration) + 1; r.Generation != want {
		return fmt.Errorf("checkpointkey: record %d names the key of generation %d, not of %d", r.Sequence, r.Generation, want)
	}
	s.rotations = append(s.rotations, &r)
	return nil
}

// Pass adds a record of any kind, which may be the first one after which a previous key no longer signs. Records are added in
// order, so that their times never fall.
func (s *Schedule) Pass(sequence int64, at scalar.Time) {
	for i, r := range slices.Backward(s.rotations) {
		if r.Retired != 0 { // so are all before it: the overlap is the same for all
			return
		}
		if at >= r.Until {
			passed := *r // a clone has the old one
			passed.Retired = sequence
			s.rotations[i] = &passed
		}
	}
}

// Of returns the rotations of the log with an origin.
func (s *Schedule) Of(origin string) (out []Rotation) {
	for _, r := range s.rotations {
		if Origin(r.Key) == origin {
			out = append(out, *r)
		}
	}
	return out
}

// Last returns the last rotation of the log with an origin. It is false if there is none.
func (s *Schedule) Last(origin string) (Rotation, bool) {
	for _, r := range slices.Backward(s.rotations) {
		if Origin(r.Key) == origin {
			return *r, true
		}
	}
	return Rotation{}, false
}

// Clone returns a copy. Changes of one do not change the other.
func (s *Schedule) Clone() Schedule { return Schedule{slices.Clone(s.rotations)} }

// Visit visits the schedule. Reading fills s, which is new.
func (s *Schedule) Visit(v *pack.Coder) {
	pack.List(v, &s.rotations, func(r *Rotation) {
		pack.Int(v, &r.Sequence)
		pack.Small(v, &r.Generation)
		pack.String(v, &r.Previous)
		pack.String(v, &r.Key)
		pack.Int(v, &r.Until)
		pack.Int(v, &r.Retired)
	})
}

// Signing returns the generations that sign the tree of a size, the newest first. rotations are those of the log, and include
// all in records of that tree. The result depends on the records of the tree only.
func Signing(rotations []Rotation, size int64) []int {
	for _, r := range slices.Backward(rotations) {
		switch {
		case size <= r.Sequence: // the tree does not contain the record
		case r.Retired != 0 && size > r.Retired:
			return []int{r.Generation}
		default:
			return []int{r.Generation, r.Generation - 1}
		}
	}
	return []int{FirstGeneration}
}

// Named returns the verifier key of a generation. It is empty if no record names it.
func Named(rotations []Rotation, generation int) string {
	for _, r := range rotations {
		switch generation {
		case r.Generation:
			return r.Key
		case r.Generation - 1:
			return r.Previous
		}
	}
	return ""
}
