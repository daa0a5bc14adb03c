package tools

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// signedTree is the tree of a signed checkpoint.
type signedTree struct {
	verify.Checkpoint
	journal string
}

// openSignedTree reads a checkpoint from a file and verifies it under a policy.
func openSignedTree(path string, policy *transparency.Policy) (*signedTree, error) {
	signed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	o, err := policy.Open(signed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	origin := o.Origin
	parts := strings.Split(origin, "/") // <host>/tlog/<journal>/<partition>/<journal id>
	n := len(parts)
	if n < 5 || parts[n-4] != "tlog" || parts[n-2] != "0" {
		return nil, fmt.Errorf("%s: %s is not the origin of a journal's transparency log", path, origin)
	}
	id, err := scalar.ParseID(parts[n-1])
	if err != nil {
		return nil, fmt.Errorf("%s: %s is not the origin of a journal's transparency log: %w", path, origin, err)
	}
	return &signedTree{verify.Checkpoint{Journal: id, Size: o.Size, Root: o.Root}, parts[n-3]}, nil
}

// open opens the venue's secrets of record roots.
func (t *signedTree) open(ctx context.Context, s *settings.Settings) (done func(), err error) {
	if t.Classes, err = disclose.Compile(schemas.Events()); err != nil {
		return nil, err
	}
	t.Keys, done, err = rootKeys(ctx, s)
	return done, err
}

// maxSecretID bounds the bytes read of a secret's id.
const maxSecretID = 64

// rootKeys opens the key store and the bucket. It returns a function that makes the epoch keys of a journal.
func rootKeys(ctx context.Context, s *settings.Settings) (keys func(journal scalar.ID) (*commitment.Keys, error), done func(), err error) {
	box, err := s.FindMaster(ctx)
	if err != nil {
		return nil, nil, err
	}
	at, err := s.KeyStoreURL()
	if err != nil {
		return nil, nil, err
	}
	store, err := seal.OpenKeyStore(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	bucket, err := s.OpenBucket(ctx)
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	secrets := seal.NewGenerations(store, box)
	keys = func(journal scalar.ID) (*commitment.Keys, error) {
		first, err := blob.NewStore(bucket).Read(ctx, commitment.FirstKey(journal), maxSecretID)
		if err != nil && !blob.Missing(err) {
			return nil, fmt.Errorf("the id of the first secret of record roots: %w", err)
		}
		keys := commitment.NewKeys(journal, secrets.Secret)
		keys.First = string(first)
		return keys, nil
	}
	return keys, func() { bucket.Close(); store.Close() }, nil
}

// rootKeysAtHand is rootKeys if the bucket that was found has a key store. Otherwise keys is nil. It prints on out why a
// key store that the settings name cannot be opened.
func rootKeysAtHand(ctx context.Context, s *settings.Settings, out io.Writer) (keys func(journal scalar.ID) (*commitment.Keys, error), done func()) {
	if s.Stores.KeyURL == "" {
		if _, err := os.Stat((&local.Folder{Dir: s.Data}).Path(seal.Folder)); err != nil {
			return nil, func() {}
		}
	}
	keys, done, err := rootKeys(ctx, s)
	if err != nil {
		fmt.Fprintf(out, "perpetua: the roots of statements of liabilities are not verified: %v\n", err)
		return nil, func() {}
	}
	return keys, done
}
