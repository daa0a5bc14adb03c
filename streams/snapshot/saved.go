package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Saved is the name of a stored snapshot.
type Saved struct {
	Position record.Position
	Codec    int // version of the codec
}

// Saved returns the snapshots of a partition, in ascending order of sequence.
func (s *Store) Saved(ctx context.Context, journalName string, partition int32) ([]Saved, error) {
	names, err := s.list(ctx, journalName, partition)
	if err != nil {
		return nil, err
	}
	out := make([]Saved, len(names))
	for i, n := range names {
		out[i] = Saved(n)
	}
	slices.Reverse(out)
	return out, nil
}

// State returns the state of a stored snapshot as its codec has encoded it. The snapshot may be gone: a node deletes the oldest
// when it has made another.
func (s *Store) State(ctx context.Context, journalName string, partition int32, of Saved) ([]byte, error) {
	content, err := s.blobs.Read(ctx, s.key(journalName, partition, name(of)), maxSize)
	if err != nil {
		return nil, err
	}
	h, _, state, err := parseFile(s.cfg.Key, content)
	if err != nil {
		return nil, err
	}
	if h.Journal != journalName || h.Partition != partition || !h.Position.Equal(of.Position) || h.Codec != of.Codec {
		return nil, errors.New("it is not what its name says")
	}
	return state, nil
}
