package node

import (
	"context"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// checkFirstSecret returns an error unless the key store has the first secret of a journal that the bucket names, if it names one. A
// node with the key store of another venue, or with none, is thus found before it computes a root.
func checkFirstSecret(ctx context.Context, blobs *blob.Store, secrets *seal.Generations, journal scalar.ID) error {
	known, err := blobs.Read(ctx, commitment.FirstKey(journal), maxSecretID)
	if blob.Missing(err) || err == nil && len(known) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the bucket does not tell which secret the store must have: %w", err)
	}
	has, err := secrets.Get(ctx, epoch.FirstGeneration)
	if err == nil && has.ID != string(known) {
		err = fmt.Errorf("the secret is %s, and that of the venue's first root %s: %w", has.ID, known, commitment.ErrAnotherSecret)
	}
	return err
}

// checkKeyStore warns once if the key store is not the one of the nodes that compute the roots of the journals. The node serves
// without it: a key store that was lost stops no trading.
func (n *Node) checkKeyStore(ctx context.Context) {
	blobs, secrets := blob.NewStore(n.stores.snapshots.bucket), seal.NewGenerations(n.stores.owners.Store(), n.Box)
	for _, f := range n.followers {
		id, founded, err := n.stores.client.JournalID(ctx, f.Name())
		if err == nil && founded {
			err = checkFirstSecret(ctx, blobs, secrets, id)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			n.Logger.Warn("the key store may not be the one of the venue's other nodes; look at --key-url", "part", "keys", "journal", f.Name(), "error", err)
			return // the journals share the secret
		}
	}
}

// maxSecretID bounds the bytes read of a secret's id.
const maxSecretID = 64

// firstSecret returns the id of the first secret that a journal's roots depend on. The bucket has it before the first root is
// published, so that a key store that was lost or exchanged is found. A secret is made only while unused: while no root was
// published and no record names the secret. It replaces an empty id, which an earlier build may have left before the first root, when
// the disk was full.
func firstSecret(ctx context.Context, blobs *blob.Store, secrets *seal.Generations, journal scalar.ID, unused bool) (string, error) {
	key := commitment.FirstKey(journal)
	known, err := blobs.Read(ctx, key, maxSecretID)
	torn := err == nil && len(known) == 0
	if !torn && !blob.Missing(err) {
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
	if torn {
		return s.ID, blobs.Write(ctx, key, []byte(s.ID), blob.Patience)
	}
	if _, err := blobs.Create(ctx, key, []byte(s.ID), blob.Patience); err != nil {
		return "", err
	}
	known, err = blobs.Read(ctx, key, maxSecretID) // another node may have created it first
	return string(known), err
}
