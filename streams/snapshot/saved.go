package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// HistoryFolder is the folder of the snapshots of package history.
const HistoryFolder = "history/"

// Saved names a snapshot in a store.
type Saved struct {
	Position record.Position
	Codec    int
	Written  time.Time
	Bytes    int64 // of the file
}

// Saved returns the snapshots of a partition of every codec version, in descending order of sequence.
func (s *Store) Saved(ctx context.Context, journalName string, partition int32) ([]Saved, error) {
	l, err := s.listFolder(ctx, journalName, partition)
	if err != nil {
		return nil, err
	}
	all := make([]Saved, len(l.names))
	for i, n := range l.names {
		o := l.blobs[n.String()]
		all[i] = Saved{n.Position, n.Codec, o.ModTime, o.Size}
	}
	return all, nil
}

// LoadAt returns the newest readable snapshot at or below a sequence, or nil if there is none. Unlike Load it returns an error
// if the blob store does not answer. Each call returns a separate state.
func (s *Store) LoadAt(ctx context.Context, journalName string, partition int32, codec decide.StateCodec, sequence int64) (*record.Seed, error) {
	return s.load(ctx, journalName, partition, codec, sequence)
}

// Put writes a snapshot and returns its size in bytes. It deletes nothing.
func (s *Store) Put(ctx context.Context, h Header, anchors []record.Position, state []byte) (bytes int, err error) {
	content, err := appendFile(s.cfg.Key, h, thin(anchors), state)
	if err != nil {
		return 0, err
	}
	if err := s.blobs.Write(ctx, s.key(h.Journal, h.Partition, name{h.Position, h.Codec}), content, saveWithin); err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	return len(content), nil
}

// Remove deletes snapshots of a partition.
func (s *Store) Remove(ctx context.Context, journalName string, partition int32, old ...Saved) error {
	keys := make([]string, len(old))
	for i, o := range old {
		keys[i] = s.key(journalName, partition, name{o.Position, o.Codec})
	}
	if err := s.blobs.Delete(ctx, keys...); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// State returns the state of a stored snapshot as its codec has encoded it. The snapshot may be gone: a node deletes the oldest
// when it has made another.
func (s *Store) State(ctx context.Context, journalName string, partition int32, of Saved) ([]byte, error) {
	content, err := s.blobs.Read(ctx, s.key(journalName, partition, name{of.Position, of.Codec}), maxSize)
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
