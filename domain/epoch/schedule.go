// Package epoch divides the sequences of a journal into spans, each with one key for its record roots. streams/README.md,
// "Record roots", says how.
package epoch

import (
	"fmt"
	"slices"
	"sort"

	"github.com/perpetua-exchange/perpetua/domain/pack"
)

// Length is the number of sequences in an epoch.
const Length = 4096

// Of returns the epoch of a sequence.
func Of(sequence int64) int64 { return sequence / Length }

// FirstGeneration is in force from the first record of a journal on, also before a record names its secret.
const FirstGeneration = 1

// Schedule says which generation of the venue's secret is in force at each sequence of a journal. The zero Schedule has the
// first generation only, and does not name its secret.
type Schedule struct {
	rotations []*Rotation // of the generations 1, 2, …
}

// Rotation is a record that names the secret of the next generation, and puts it in force from the following record on. That of
// the first generation, which is in force already, only names it.
type Rotation struct {
	Sequence int64  // of the record
	Secret   string // the id of the generation's secret
}

// Rotate adds the record with this sequence, which names the secret of a generation. secret is its id. Records are added in
// order, and each has the next generation, from the first one on.
func (s *Schedule) Rotate(sequence int64, generation int, secret string) error {
	last := int64(-1)
	if n := len(s.rotations); n > 0 {
		last = s.rotations[n-1].Sequence
	}
	if sequence <= last || generation != s.Generation()+1 {
		return fmt.Errorf("epoch: record %d names generation %d, after record %d named generation %d", sequence, generation, last, s.Generation())
	}
	s.rotations = append(s.rotations, &Rotation{sequence, secret})
	return nil
}

// Generation returns the last generation that a record names, or 0.
func (s *Schedule) Generation() int { return len(s.rotations) }

// Rotations returns the records that name the generations 1, 2, and so on.
func (s *Schedule) Rotations() []Rotation {
	out := make([]Rotation, len(s.rotations))
	for i, r := range s.rotations {
		out[i] = *r
	}
	return out
}

// Clone returns a copy. Rotate changes only one of the two.
func (s *Schedule) Clone() Schedule { return Schedule{slices.Clone(s.rotations)} }

// Visit visits the schedule. Reading fills s, which is new.
func (s *Schedule) Visit(v *pack.Coder) {
	pack.List(v, &s.rotations, func(r *Rotation) {
		pack.Int(v, &r.Sequence)
		pack.String(v, &r.Secret)
	})
}

// At returns the generation in force at a sequence, and the secret's id. The id is empty if no record names it.
func (s *Schedule) At(sequence int64) (generation int, secret string) {
	if len(s.rotations) == 0 {
		return FirstGeneration, ""
	}
	later := s.rotations[FirstGeneration:] // those that change the generation
	n := sort.Search(len(later), func(i int) bool { return later[i].Sequence >= sequence })
	return FirstGeneration + n, s.rotations[n].Secret
}

// Span is a run of sequences, both ends included, with one epoch key.
type Span struct {
	From, To   int64
	Generation int
}

// Around returns the whole span that a sequence belongs to, as far as the rotations are known.
func (s *Schedule) Around(sequence int64) Span {
	generation, _ := s.At(sequence)
	span := Span{Of(sequence) * Length, Of(sequence)*Length + Length - 1, generation}
	if generation > FirstGeneration {
		span.From = max(span.From, s.rotations[generation-1].Sequence+1)
	}
	if generation < len(s.rotations) {
		span.To = min(span.To, s.rotations[generation].Sequence)
	}
	return span
}

// Spans returns the whole spans that the sequences from one to another belong to, both included. There are at most limit.
func (s *Schedule) Spans(from, to int64, limit int) (out []Span) {
	for from <= to && len(out) < limit {
		span := s.Around(from)
		out, from = append(out, span), span.To+1
	}
	return out
}
