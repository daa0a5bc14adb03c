package commitment

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// FirstGeneration is in force from the first record of a journal on, without an event.
const FirstGeneration = 1

// Schedule says which generation of the venue's secret is in force at each sequence of a journal. The zero Schedule has the
// first generation only.
type Schedule struct{ rotations []rotation }

// rotation is a record that puts a generation in force from the next record on.
type rotation struct {
	sequence   int64
	generation int
	secret     string
}

// Rotate adds the record with this sequence, which puts a generation in force from the next record on. secret is the id of the
// generation's secret. Records are added in order, and each puts the next generation in force.
func (s *Schedule) Rotate(sequence int64, generation int, secret string) error {
	last, current := s.last()
	if sequence <= last || generation != current+1 {
		return fmt.Errorf("commitment: record %d puts generation %d in force, after record %d put generation %d", sequence, generation, last, current)
	}
	s.rotations = append(s.rotations, rotation{sequence, generation, secret})
	return nil
}

func (s *Schedule) last() (sequence int64, generation int) {
	if n := len(s.rotations); n > 0 {
		return s.rotations[n-1].sequence, s.rotations[n-1].generation
	}
	return -1, FirstGeneration
}

// At returns the generation in force at a sequence, and the secret's id, which is empty for the first generation.
func (s *Schedule) At(sequence int64) (generation int, secret string) {
	n := sort.Search(len(s.rotations), func(i int) bool { return s.rotations[i].sequence >= sequence })
	if n == 0 {
		return FirstGeneration, ""
	}
	return s.rotations[n-1].generation, s.rotations[n-1].secret
}

// Span is a run of sequences, both ends included, with one epoch key.
type Span struct {
	From, To   int64
	Generation int
}

// Spans returns the spans with their own epoch keys between two sequences, both included.
func (s *Schedule) Spans(from, to int64) (out []Span) {
	for from <= to {
		generation, _ := s.At(from)
		end := min(to, EpochOf(from)*EpochLength+EpochLength-1)
		next := slices.IndexFunc(s.rotations, func(r rotation) bool { return r.sequence >= from && r.sequence < end })
		if next >= 0 {
			end = s.rotations[next].sequence
		}
		out = append(out, Span{from, end, generation})
		from = end + 1
	}
	return out
}

// Secrets returns the secret of a generation and its id.
type Secrets func(ctx context.Context, generation int) (key []byte, id string, err error)

// Keys derives the epoch keys of one journal. It is not safe for concurrent use.
type Keys struct {
	Schedule Schedule // the caller adds rotations as it reads them

	journal    scalar.ID
	secrets    Secrets
	generation int // of the key
	epoch      int64
	key        *EpochKey // the last one; nil before the first
}

// NewKeys returns the epoch keys of a journal.
func NewKeys(journal scalar.ID, secrets Secrets) *Keys {
	return &Keys{journal: journal, secrets: secrets}
}

// At returns the epoch key for a sequence. It asks for the secret only if the last key was another. It fails if the secret is
// not the one that the journal names.
func (k *Keys) At(ctx context.Context, sequence int64) (*EpochKey, error) {
	generation, named := k.Schedule.At(sequence)
	if epoch := EpochOf(sequence); k.key == nil || k.epoch != epoch || k.generation != generation {
		secret, id, err := k.secrets(ctx, generation)
		if err != nil {
			return nil, err
		}
		if named != "" && id != named {
			return nil, fmt.Errorf("commitment: the secret of generation %d is %s, but the journal names %s", generation, id, named)
		}
		key, err := NewEpochKey(secret, k.journal, epoch)
		if err != nil {
			return nil, err
		}
		k.generation, k.epoch, k.key = generation, epoch, key
	}
	return k.key, nil
}
