package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// checkpointKeys are the keys of one transparency log: the seeds are in the key store, and the records of the journal name the
// verifier keys. It implements transparency.Keys.
type checkpointKeys struct {
	origin transparency.Origin
	seeds  *seal.Generations
	// rotations returns the rotations of the log in the records up to a sequence, for which it waits, and perhaps later ones.
	rotations func(ctx context.Context, sequence int64) ([]checkpointkey.Rotation, error)

	mu   sync.Mutex
	read map[int]*transparency.Key // by generation
}

var _ transparency.Keys = (*checkpointKeys)(nil)

// checkpointKeys returns the keys of the log with an origin.
func (l *transparencyLog) checkpointKeys(o transparency.Origin) *checkpointKeys {
	return newCheckpointKeys(o, seal.SigningSeeds(l.stores.owners.Store(), l.box, o.String()), func(ctx context.Context, sequence int64) ([]checkpointkey.Rotation, error) {
		if err := l.fold.Wait(ctx, sequence); err != nil {
			return nil, err
		}
		return l.rotations(o), nil
	})
}

func newCheckpointKeys(o transparency.Origin, seeds *seal.Generations, rotations func(context.Context, int64) ([]checkpointkey.Rotation, error)) *checkpointKeys {
	return &checkpointKeys{origin: o, seeds: seeds, rotations: rotations, read: make(map[int]*transparency.Key)}
}

// rotations returns the rotations of the log with an origin that the fold has applied.
func (l *transparencyLog) rotations(o transparency.Origin) (all []checkpointkey.Rotation) {
	l.fold.View(func(state decide.State, _ record.Position) {
		if s, ok := state.(decide.Facts); ok {
			schedule := s.CheckpointKeys()
			all = schedule.Of(o.String())
		}
	})
	return all
}

// Signing implements transparency.Keys. The key of every generation MUST be the one that the records name, so nothing is signed
// with a key store that was lost or exchanged.
func (k *checkpointKeys) Signing(ctx context.Context, size int64) (keys []*transparency.Key, err error) {
	rotations, err := k.rotations(ctx, size-1)
	if err != nil {
		return nil, err
	}
	for _, generation := range checkpointkey.Signing(rotations, size) {
		key, err := k.key(ctx, rotations, generation)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// key returns the key of a generation.
func (k *checkpointKeys) key(ctx context.Context, rotations []checkpointkey.Rotation, generation int) (*transparency.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	named := checkpointkey.Named(rotations, generation)
	if key := k.read[generation]; key != nil && (named == "" || named == key.Verifier()) {
		return key, nil
	}
	seed, err := k.seeds.Get(ctx, generation)
	if err != nil {
		return nil, fmt.Errorf("the signing key of %v: %w", k.origin, err)
	}
	key, err := transparency.NewKey(k.origin, seed.Key)
	if err != nil {
		return nil, err
	}
	if named != "" && named != key.Verifier() {
		return nil, fmt.Errorf("the key store has another signing key of generation %d of %v than the records name, %s", generation, k.origin, named)
	}
	k.read[generation] = key
	return key, nil
}

// Known implements transparency.Keys. It needs no seed of a key that a record names.
func (k *checkpointKeys) Known(ctx context.Context) (keys []note.Verifier, err error) {
	rotations, err := k.rotations(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, named := range keyList(rotations) {
		v, err := note.NewVerifier(named.key)
		if err != nil {
			return nil, fmt.Errorf("the key %s: %w", named.key, err)
		}
		keys = append(keys, v)
	}
	if len(keys) > 0 {
		return keys, nil
	}
	first, err := k.key(ctx, nil, checkpointkey.FirstGeneration)
	if err != nil {
		return nil, err
	}
	return first.Known(ctx)
}

// namedKey is a verifier key that records name.
type namedKey struct {
	key   string
	until time.Time // when it retires; zero for the last one
}

// keyList returns the keys that rotations name, the oldest first.
func keyList(rotations []checkpointkey.Rotation) (keys []namedKey) {
	for i, r := range rotations {
		if i == 0 {
			keys = append(keys, namedKey{key: r.Previous})
		}
		keys[i].until = r.Until.Std()
		keys = append(keys, namedKey{key: r.Key})
	}
	return keys
}

// check makes the first key if nothing was signed yet. It fails if the last published checkpoint is signed by none of the keys:
// those who verify checkpoints know the log by them.
func (k *checkpointKeys) check(ctx context.Context, signed bool, last transparency.Checkpoint) error {
	rotations, err := k.rotations(ctx, 0)
	if err != nil {
		return err
	}
	if !signed && len(rotations) == 0 {
		if _, err := k.seeds.Create(ctx, checkpointkey.FirstGeneration); err != nil {
			return fmt.Errorf("the signing key of %v: %w", k.origin, err)
		}
	}
	known, err := k.Known(ctx)
	if err != nil || last.Verifier == "" {
		return err
	}
	if _, err := transparency.NewPolicy(known...).ForLog(last.Verifier); err != nil {
		return fmt.Errorf("the key store has another signing key of %v than the one of its checkpoints, %s", k.origin, last.Newest())
	}
	return nil
}

// next makes the key of the generation after the last one, and returns the command that records it. Nodes that call it at the same
// time, and one that was killed before the command was recorded, get the same key.
func (k *checkpointKeys) next(ctx context.Context) (*decide.RotateCheckpointKey, error) {
	rotations, err := k.rotations(ctx, 0)
	if err != nil {
		return nil, err
	}
	last := checkpointkey.FirstGeneration + len(rotations)
	previous, err := k.key(ctx, rotations, last)
	if err != nil {
		return nil, err
	}
	// The seed in the key store is read again each time: until a record names the key, an operator may restore the store from a backup.
	seed, err := k.seeds.Create(ctx, last+1)
	if err != nil {
		return nil, fmt.Errorf("the next signing key of %v: %w", k.origin, err)
	}
	next, err := transparency.NewKey(k.origin, seed.Key)
	if err != nil {
		return nil, err
	}
	return &decide.RotateCheckpointKey{Generation: last + 1, Previous: previous.Verifier(), Key: next.Verifier()}, nil
}

// nextCheckpointKey makes the next key of a journal's transparency log.
func (n *Node) nextCheckpointKey(ctx context.Context, journal string) (*decide.RotateCheckpointKey, error) {
	l, err := n.logs.of(journal, 0)
	if err != nil {
		return nil, err
	}
	reader, _, err := l.published(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.mayRotate(reader.Origin(), l.clock.Now()); err != nil {
		return nil, err
	}
	return l.checkpointKeys(reader.Origin()).next(ctx)
}

// mayRotate returns the refusal of any rotation of the key of the log with an origin, or nil.
func (l *transparencyLog) mayRotate(o transparency.Origin, now scalar.Time) (err error) {
	l.fold.View(func(state decide.State, _ record.Position) {
		if s, ok := state.(decide.Facts); ok {
			err = s.MayRotateCheckpointKey(o.String(), now)
		}
	})
	return err
}

// clock returns the clock of this node.
func (n *Node) clock() journal.Clock {
	if n.Clock == nil {
		return journal.SystemClock()
	}
	return n.Clock
}
