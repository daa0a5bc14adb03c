package commitment

import (
	"context"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Secrets returns the secret of a generation and its id.
type Secrets func(ctx context.Context, generation int) (key []byte, id string, err error)

// Keys derives the epoch keys of one journal. It is not safe for concurrent use.
type Keys struct {
	Schedule epoch.Schedule // the caller adds rotations as it reads them

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
	if at := epoch.Of(sequence); k.key == nil || k.epoch != at || k.generation != generation {
		secret, id, err := k.secrets(ctx, generation)
		if err != nil {
			return nil, err
		}
		if named != "" && id != named {
			return nil, fmt.Errorf("commitment: the secret of generation %d is %s, but the journal names %s", generation, id, named)
		}
		key, err := NewEpochKey(secret, k.journal, at)
		if err != nil {
			return nil, err
		}
		k.generation, k.epoch, k.key = generation, at, key
	}
	return k.key, nil
}
