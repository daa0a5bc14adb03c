package commitment_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestRestoredSecrets: a backup of the folder commitment, without the keys of owners, and the master key give the roots that the
// lost key store gave.
func TestRestoredSecrets(t *testing.T) {
	master, lost, restored := make([]byte, seal.KeySize), t.TempDir(), t.TempDir()
	open := func(folder string) *seal.Generations {
		t.Helper()
		box, err := seal.New(master)
		if err != nil {
			t.Fatal(err)
		}
		store, err := seal.OpenKeyStore(t.Context(), "file://"+folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return seal.NewGenerations(store, box)
	}
	first, err := open(lost).Create(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	root := func(folder string) (commitment.Hash, error) {
		keys := commitment.NewKeys(journalID, open(folder).Secret)
		keys.First = first.ID
		key, err := keys.At(t.Context(), 5)
		if err != nil {
			return commitment.Hash{}, err
		}
		return committer(t, "trading").Root(key, 5, aRecord(5, desk, expired(1)...))
	}
	want, err := root(lost)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root(restored); !errors.Is(err, seal.ErrNoSecret) {
		t.Errorf("without the backup: %v", err)
	}
	if err := os.CopyFS(filepath.Join(restored, "commitment"), os.DirFS(filepath.Join(lost, "commitment"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(restored, "commitment", "1"), 0o600); err != nil { // CopyFS does not keep the mode
		t.Fatal(err)
	}
	if got, err := root(restored); err != nil || got != want {
		t.Errorf("the root is %x, not %x: %v", got, want, err)
	}
}
