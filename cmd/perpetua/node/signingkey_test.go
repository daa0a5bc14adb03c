package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// keyStore is a key store in a folder, with the keys of one log.
type keyStore struct {
	*checkpointKeys
	t      *testing.T
	folder string
	all    *[]checkpointkey.Rotation
}

var logOfTests = transparency.Origin{Host: "localhost", Journal: "trading", ID: scalar.ID{7}}

func newKeyStore(t *testing.T, o transparency.Origin, rotations *[]checkpointkey.Rotation) *keyStore {
	t.Helper()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	store, err := seal.OpenKeyStore(t.Context(), "file://"+folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	k := &keyStore{t: t, folder: folder, all: rotations}
	k.checkpointKeys = newCheckpointKeys(o, seal.SigningSeeds(store, box, o.String()), func(context.Context, int64) ([]checkpointkey.Rotation, error) { return *k.all, nil })
	return k
}

// again returns the keys as another process reads them.
func (k *keyStore) again() *checkpointKeys {
	return newCheckpointKeys(k.origin, k.seeds, k.checkpointKeys.rotations)
}

// rotate makes the next key, and records it at a sequence.
func (k *keyStore) rotate(sequence int64) checkpointkey.Rotation {
	k.t.Helper()
	next, err := k.next(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	r := checkpointkey.Rotation{Sequence: sequence, Generation: next.Generation, Previous: next.Previous, Key: next.Key}
	*k.all = append(*k.all, r)
	return r
}

// file returns the path of a seed.
func (k *keyStore) file(generation string) string {
	k.t.Helper()
	var found string
	err := filepath.WalkDir(k.folder, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, string(filepath.Separator)+generation) {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		k.t.Fatalf("there is no seed %s: %v", generation, err)
	}
	return found
}

// signs returns the verifier keys that sign the tree of a size.
func signs(t *testing.T, k *checkpointKeys, size int64) (all []string, err error) {
	t.Helper()
	keys, err := k.Signing(t.Context(), size)
	for _, key := range keys {
		all = append(all, key.Verifier())
	}
	return all, err
}

// TestFirstCheckpointKey: once a tree was signed, no other key signs for its log.
func TestFirstCheckpointKey(t *testing.T) {
	var none []checkpointkey.Rotation
	k := newKeyStore(t, logOfTests, &none)
	if err := k.check(t.Context(), true, transparency.Checkpoint{}); !errors.Is(err, seal.ErrNoSecret) {
		t.Errorf("a tree was signed, and another key is made: %v", err)
	}
	if _, err := k.next(t.Context()); !errors.Is(err, seal.ErrNoSecret) {
		t.Errorf("a key that was never made is replaced: %v", err)
	}
	if err := k.check(t.Context(), false, transparency.Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	first, err := signs(t, k.checkpointKeys, 1)
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	last := transparency.Checkpoint{Size: 1, Verifier: first[0]}
	if err := k.again().check(t.Context(), true, last); err != nil {
		t.Errorf("the same key store: %v", err)
	}
	other := newKeyStore(t, logOfTests, &none)
	if err := other.check(t.Context(), false, transparency.Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	if err := other.again().check(t.Context(), true, last); err == nil {
		t.Error("another key signs")
	}
}

// TestCheckpointKeysRotate: a process that is killed before the record is made finds the key that it made. From the record on both
// keys sign, and after the retirement the seed of the first one is not needed.
func TestCheckpointKeysRotate(t *testing.T) {
	var rotations []checkpointkey.Rotation
	k := newKeyStore(t, logOfTests, &rotations)
	if err := k.check(t.Context(), false, transparency.Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	first, err := signs(t, k.checkpointKeys, 1)
	if err != nil {
		t.Fatal(err)
	}
	made, err := k.next(t.Context())
	if err != nil || made.Generation != 2 || made.Previous != first[0] {
		t.Fatalf("%+v, %v", made, err)
	}
	if again, err := k.again().next(t.Context()); err != nil || *again != *made {
		t.Errorf("after a crash %+v is made (%v), and was %+v", again, err, made)
	}
	if r := k.rotate(10); r.Key != made.Key {
		t.Errorf("%s is recorded", r.Key)
	}
	for size, want := range map[int64][]string{10: first, 11: {made.Key, first[0]}, 500: {made.Key, first[0]}} {
		if got, err := signs(t, k.again(), size); err != nil || !slices.Equal(got, want) {
			t.Errorf("a tree of size %d is signed by %v (%v)", size, got, err)
		}
	}
	if err := k.again().check(t.Context(), true, transparency.Checkpoint{Size: 5, Verifier: first[0]}); err != nil {
		t.Errorf("of a checkpoint from before the rotation: %v", err)
	}
	rotations[0].Retired = 600
	if err := os.Remove(k.file("1")); err != nil {
		t.Fatal(err)
	}
	if got, err := signs(t, k.again(), 601); err != nil || !slices.Equal(got, []string{made.Key}) {
		t.Errorf("after the retirement %v signs (%v)", got, err)
	}
	if _, err := signs(t, k.again(), 600); !errors.Is(err, seal.ErrNoSecret) {
		t.Errorf("a tree of the overlap is signed without the first key: %v", err)
	}
	if known, err := k.again().Known(t.Context()); err != nil || len(known) != 2 {
		t.Errorf("%d keys are known (%v)", len(known), err)
	}
	if r := k.rotate(700); r.Generation != 3 || r.Previous != made.Key {
		t.Errorf("%+v follows", r)
	}
}

// TestCheckpointKeysOfAnotherStore: a seed that is lost, damaged, of another log, or another one than the records name signs nothing.
func TestCheckpointKeysOfAnotherStore(t *testing.T) {
	rotated := func(t *testing.T, o transparency.Origin) (*keyStore, *[]checkpointkey.Rotation) {
		rotations := new([]checkpointkey.Rotation)
		k := newKeyStore(t, o, rotations)
		if err := k.check(t.Context(), false, transparency.Checkpoint{}); err != nil {
			t.Fatal(err)
		}
		k.rotate(10)
		return k, rotations
	}
	elsewhere := logOfTests
	elsewhere.Host = "venue.example"
	for name, harm := range map[string]func(t *testing.T, k *keyStore) error{
		"lost":    func(_ *testing.T, k *keyStore) error { return os.Remove(k.file("2")) },
		"damaged": func(_ *testing.T, k *keyStore) error { return os.WriteFile(k.file("2"), []byte("{}\n"), 0o600) },
		"of another log": func(t *testing.T, k *keyStore) error {
			other, _ := rotated(t, elsewhere)
			b, err := os.ReadFile(other.file("2"))
			if err != nil {
				return err
			}
			return os.WriteFile(k.file("2"), b, 0o600)
		},
		"another one": func(t *testing.T, k *keyStore) error {
			other, _ := rotated(t, logOfTests)
			b, err := os.ReadFile(other.file("2"))
			if err != nil {
				return err
			}
			return os.WriteFile(k.file("2"), b, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, _ := rotated(t, logOfTests)
			if err := harm(t, k); err != nil {
				t.Fatal(err)
			}
			got, err := signs(t, k.again(), 11)
			if err == nil || len(got) > 0 || strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("%v sign: %v", got, err)
			}
			if _, err := k.again().next(t.Context()); err == nil {
				t.Error("the next key is made")
			}
			if got, err := signs(t, k.again(), 10); err != nil || len(got) != 1 {
				t.Errorf("a tree from before the rotation: %v, %v", got, err)
			}
		})
	}
}

// TestRestoredKeyStore: a process that has read another key signs once the key store has the one that the records name.
func TestRestoredKeyStore(t *testing.T) {
	var rotations, others []checkpointkey.Rotation
	k, other := newKeyStore(t, logOfTests, &rotations), newKeyStore(t, logOfTests, &others)
	for _, s := range []*keyStore{k, other} {
		if err := s.check(t.Context(), false, transparency.Checkpoint{}); err != nil {
			t.Fatal(err)
		}
	}
	rotations = append(rotations, other.rotate(10))
	if got, err := signs(t, k.checkpointKeys, 11); err == nil {
		t.Fatalf("%v sign", got)
	}
	for _, generation := range []string{"1", "2"} {
		b, err := os.ReadFile(other.file(generation))
		if err == nil {
			err = os.WriteFile(filepath.Join(filepath.Dir(k.file("1")), generation), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := signs(t, k.checkpointKeys, 11); err != nil || !slices.Equal(got, []string{rotations[0].Key, rotations[0].Previous}) {
		t.Errorf("%v sign: %v", got, err)
	}
}
