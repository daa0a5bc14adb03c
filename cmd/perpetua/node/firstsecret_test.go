package node

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestFirstSecret: a key store that was lost after the first root was published gets no new secret, and one with another
// secret gives no keys.
func TestFirstSecret(t *testing.T) {
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	keyStore := func() *seal.Generations {
		store, err := seal.OpenKeyStore(t.Context(), "file://"+t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return seal.NewGenerations(store, box)
	}
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	blobs, journal := blob.NewStore(bucket), scalar.ID{7}

	original := keyStore()
	if id, err := firstSecret(t.Context(), blobs, original, journal, false); !errors.Is(err, seal.ErrNoSecret) {
		t.Errorf("roots were published, and %s is made: %v", id, err)
	}
	if err := checkFirstSecret(t.Context(), blobs, original, journal); err != nil {
		t.Errorf("before the first root: %v", err)
	}
	first, err := firstSecret(t.Context(), blobs, original, journal, true)
	if err != nil || first == "" {
		t.Fatal(err)
	}
	if err := blobs.Write(t.Context(), commitment.FirstKey(journal), nil, blob.Patience); err != nil {
		t.Fatal(err)
	}
	if err := checkFirstSecret(t.Context(), blobs, original, journal); err != nil {
		t.Errorf("with an empty id: %v", err)
	}
	if id, err := firstSecret(t.Context(), blobs, keyStore(), journal, false); !errors.Is(err, seal.ErrNoSecret) {
		t.Errorf("with an empty id and another key store, the secret is %s: %v", id, err)
	}
	if id, err := firstSecret(t.Context(), blobs, original, journal, false); err != nil || id != first {
		t.Errorf("with an empty id, the secret is %s: %v", id, err)
	}
	for name, tt := range map[string]struct {
		secrets *seal.Generations
		want    error
	}{"the original": {original, nil}, "an empty one": {keyStore(), seal.ErrNoSecret}, "another one": {another(t, keyStore()), commitment.ErrAnotherSecret}} {
		if err := checkFirstSecret(t.Context(), blobs, tt.secrets, journal); !errors.Is(err, tt.want) {
			t.Errorf("%s, at the start: %v", name, err)
		}
		for _, unused := range []bool{true, false} {
			id, err := firstSecret(t.Context(), blobs, tt.secrets, journal, unused)
			if err != nil || id != first {
				t.Errorf("%s: the secret is %s, not %s: %v", name, id, first, err)
			}
			keys := commitment.NewKeys(journal, tt.secrets.Secret)
			keys.First = id
			if _, err := keys.At(t.Context(), 1); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestANodeWithAnotherKeyStore serves, and warns once.
func TestANodeWithAnotherKeyStore(t *testing.T) {
	b := newBench(t, journals.All())
	n, stop := b.run(t, b.config)
	blobs := blob.NewStore(n.stores.snapshots.bucket)
	for _, f := range n.followers {
		id, _, err := n.stores.client.JournalID(t.Context(), f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := blobs.Write(t.Context(), commitment.FirstKey(id), []byte("another"), blob.Patience); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	var said lines
	b.config.Logger = slog.New(slog.NewTextHandler(&said, nil))
	b.start(t)
	if warned := strings.Count(said.String(), "the key store may not be the one of the venue's other nodes"); warned != 1 {
		t.Errorf("%d warnings:\n%s", warned, &said)
	}
}

func another(t *testing.T, secrets *seal.Generations) *seal.Generations {
	t.Helper()
	if _, err := secrets.Create(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return secrets
}
