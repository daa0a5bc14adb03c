package node

import (
	"context"
	"fmt"

	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// firstSeed is the generation of the key that signs checkpoints.
const firstSeed = 1

// treeSigner returns the signer of a log. It makes the signing key only if nothing was signed: signed says whether a tree is recorded
// or a checkpoint is published, and last is the checkpoint that was published last. It fails if the key is gone, or is not that of
// last: those who verify checkpoints know the log by its key.
func treeSigner(ctx context.Context, o transparency.Origin, heads transparency.Heads, seeds *seal.Generations, signed bool, last transparency.Checkpoint) (*transparency.Signer, error) {
	get := seeds.Create
	if signed {
		get = seeds.Get
	}
	seed, err := get(ctx, firstSeed)
	if err != nil {
		return nil, fmt.Errorf("the signing key of %v: %w", o, err)
	}
	signer, err := transparency.NewSigner(o, heads, seed.Key)
	if err == nil && last.Verifier != "" && last.Verifier != signer.Verifier() {
		err = fmt.Errorf("the key store has another signing key of %v than the one of its checkpoints, %s", o, last.Verifier)
	}
	return signer, err
}
