package tools

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// signedTree is the tree of a signed checkpoint.
type signedTree struct {
	verify.Checkpoint
	journal string
}

// openSignedTree reads a checkpoint from a file and verifies its signature. Other signatures in the file, such as those of
// witnesses, are not verified.
func openSignedTree(path, key string) (*signedTree, error) {
	signed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	origin, size, root, err := verify.OpenCheckpoint(signed, textOrFile(key))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	parts := strings.Split(origin, "/") // <host>/tlog/<journal>/<partition>/<journal id>
	n := len(parts)
	if n < 5 || parts[n-4] != "tlog" || parts[n-2] != "0" {
		return nil, fmt.Errorf("%s: %s is not the origin of a journal's transparency log", path, origin)
	}
	id, err := scalar.ParseID(parts[n-1])
	if err != nil {
		return nil, fmt.Errorf("%s: %s is not the origin of a journal's transparency log: %w", path, origin, err)
	}
	return &signedTree{verify.Checkpoint{Journal: id, Size: size, Root: root}, parts[n-3]}, nil
}

// maxSecretID bounds the bytes read of a secret's id.
const maxSecretID = 64

// open opens the venue's secrets of record roots.
func (t *signedTree) open(ctx context.Context, s *settings.Settings) (done func(), err error) {
	if t.Classes, err = disclose.Compile(schemas.Events()); err != nil {
		return nil, err
	}
	box, err := s.FindMaster(ctx)
	if err != nil {
		return nil, err
	}
	at, err := s.KeyStoreURL()
	if err != nil {
		return nil, err
	}
	store, err := seal.OpenKeyStore(ctx, at)
	if err != nil {
		return nil, err
	}
	bucket, err := s.OpenBucket(ctx)
	if err != nil {
		store.Close()
		return nil, err
	}
	secrets := seal.NewGenerations(store, box)
	first, err := blob.NewStore(bucket).Read(ctx, commitment.FirstKey(t.Journal), maxSecretID)
	if err != nil && !blob.Missing(err) {
		bucket.Close()
		store.Close()
		return nil, fmt.Errorf("the id of the first secret of record roots: %w", err)
	}
	t.Keys = func(journal scalar.ID) (*commitment.Keys, error) {
		keys := commitment.NewKeys(journal, secrets.Secret)
		keys.First = string(first)
		return keys, nil
	}
	return func() { bucket.Close(); store.Close() }, nil
}
