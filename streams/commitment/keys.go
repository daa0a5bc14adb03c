package commitment

import (
	"context"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// ErrAnotherSecret reports that a secret has another id than the journal or the caller knows.
var ErrAnotherSecret = errors.New("the key store holds another secret of this generation: restore the key store, or check --key-url")

// ErrUnnamed reports that nothing names the secret of the first generation.
var ErrUnnamed = errors.New("commitment: no record names the secret of generation 1: rotate the secret of the journal first")

// Secrets returns the secret of a generation and its id.
type Secrets func(ctx context.Context, generation int) (key []byte, id string, err error)

// FirstKey returns the key of the object in the bucket that holds the id of the secret of a journal's first generation.
func FirstKey(journal scalar.ID) string {
	return fmt.Sprintf("commitments/%v/%d", journal, epoch.FirstGeneration)
}

// Keys derives the epoch keys of one journal. It is not safe for concurrent use.
type Keys struct {
	Schedule epoch.Schedule // the caller adds rotations as it reads them
	First    string         // the id of the first generation's secret, where a caller keeps it; empty if only the Schedule has it

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

// At returns the epoch key for a sequence. It asks for the secret only when the epoch or the generation changes. Its errors are
// ErrUnnamed, ErrAnotherSecret if the secret is not the one that is named, and those of the secrets.
func (k *Keys) At(ctx context.Context, sequence int64) (*EpochKey, error) {
	generation, named := k.Schedule.At(sequence)
	if generation == epoch.FirstGeneration && k.First != "" {
		if named != "" && named != k.First {
			return nil, fmt.Errorf("commitment: the journal names %s as the first secret, not %s: %w", named, k.First, ErrAnotherSecret)
		}
		named = k.First
	}
	if named == "" {
		return nil, ErrUnnamed
	}
	if at := epoch.Of(sequence); k.key == nil || k.epoch != at || k.generation != generation {
		secret, id, err := k.secrets(ctx, generation)
		if err != nil {
			return nil, err
		}
		if id != named {
			return nil, fmt.Errorf("commitment: the secret of generation %d is %s, not %s: %w", generation, id, named, ErrAnotherSecret)
		}
		key, err := NewEpochKey(secret, k.journal, at)
		if err != nil {
			return nil, err
		}
		k.generation, k.epoch, k.key = generation, at, key
	}
	return k.key, nil
}
