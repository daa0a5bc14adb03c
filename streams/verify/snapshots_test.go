package verify_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

func position(k *kgo.Record) record.Position {
	sequence, _ := record.SequenceOf(k.Value)
	return record.Position{Offset: k.Offset, Sequence: sequence, Hash: sha256.Sum256(k.Value)}
}

// saved returns snapshots after the records with the sequences.
func (s *sample) saved(t testing.TB, sequences ...int64) (all []verify.Snapshot) {
	t.Helper()
	state, decoder := s.Rules.NewState(), record.NewDecoder(s.Rules.Registry())
	for n, k := range s.records {
		r, err := decoder.Decode(k.Value)
		if err != nil {
			t.Fatal(err)
		}
		state.Evolve(decide.Stamp{Journal: s.id, Sequence: r.Sequence, Time: r.Time, Prev: r.Prev}, r.Command, r.Outcome, r.Events)
		if slices.Contains(sequences, int64(n)) {
			b := s.Codec.Append(nil, state)
			all = append(all, verify.Snapshot{Position: position(k), Load: func(context.Context) ([]byte, error) { return b, nil }})
		}
	}
	return all
}
