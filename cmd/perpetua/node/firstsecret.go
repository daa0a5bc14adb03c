package node

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// maxSecretID bounds the bytes read of a secret's id.
const maxSecretID = 64

// firstSecret returns the id of the first secret that a journal's roots depend on. The bucket has it before the first root is
// published, so that a key store that was lost or exchanged is found. A secret is made only while unused: while no root was
// published and no record names the secret.
func firstSecret(ctx context.Context, blobs *blob.Store, secrets *seal.Generations, journal scalar.ID, unused bool) (string, error) {
	key := commitment.FirstKey(journal)
	known, err := blobs.Read(ctx, key, maxSecretID)
	if err == nil || !blob.Missing(err) {
		return string(known), err
	}
	get := secrets.Get
	if unused {
		get = secrets.Create
	}
	s, err := get(ctx, epoch.FirstGeneration)
	if err != nil {
		return "", err
	}
	if _, err := blobs.Create(ctx, key, []byte(s.ID), blob.Patience); err != nil {
		return "", err
	}
	known, err = blobs.Read(ctx, key, maxSecretID) // another node may have created it first
	return string(known), err
}
