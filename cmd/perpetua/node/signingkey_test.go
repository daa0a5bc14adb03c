package node

import (
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// TestTreeSigner: once a tree was signed, no other key signs for its log.
func TestTreeSigner(t *testing.T) {
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	o := transparency.Origin{Host: "localhost", Journal: "trading", ID: scalar.ID{7}}
	keyStore := func() *seal.Generations {
		store, err := seal.OpenKeyStore(t.Context(), "file://"+t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return seal.SigningSeeds(store, box, o.String())
	}
	original := keyStore()
	if _, err := treeSigner(t.Context(), o, nil, original, true, transparency.Checkpoint{}); !errors.Is(err, seal.ErrNoSecret) {
		t.Errorf("a tree was signed, and another key is made: %v", err)
	}
	first, err := treeSigner(t.Context(), o, nil, original, false, transparency.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	last := transparency.Checkpoint{Size: 1, Verifier: first.Verifier()}
	again, err := treeSigner(t.Context(), o, nil, original, true, last)
	if err != nil || again.Verifier() != first.Verifier() {
		t.Errorf("the same key store: %v", err)
	}
	if _, err := treeSigner(t.Context(), o, nil, another(t, keyStore()), true, last); err == nil {
		t.Error("another key signs")
	}
}
