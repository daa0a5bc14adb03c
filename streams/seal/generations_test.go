package seal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gocloud.dev/blob/memblob"
)

// bothStores returns a folder and a bucket.
func bothStores(t *testing.T) map[string]*KeyStore {
	t.Helper()
	folder, err := OpenKeyStore(t.Context(), "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bucket := &KeyStore{&bucketStore{memblob.OpenBucket(nil)}}
	t.Cleanup(func() { folder.Close(); bucket.Close() })
	return map[string]*KeyStore{"folder": folder, "bucket": bucket}
}

// TestASecretIsMadeOnce: nodes that create a generation at the same time get the same secret, and keep it.
func TestASecretIsMadeOnce(t *testing.T) {
	for name, store := range bothStores(t) {
		for generation := 1; generation <= 3; generation++ {
			if _, err := NewGenerations(store, testMaster(t, 7)).Get(t.Context(), generation); !errors.Is(err, ErrNoSecret) {
				t.Errorf("%s: generation %d exists: %v", name, generation, err)
			}
			made := make([]Secret, 16)
			var all sync.WaitGroup
			for n := range made {
				all.Go(func() {
					s, err := NewGenerations(store, testMaster(t, 7)).Create(t.Context(), generation)
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					made[n] = s
				})
			}
			all.Wait()
			for _, s := range made {
				if !bytes.Equal(s.Key, made[0].Key) || s.ID != made[0].ID || len(s.Key) != KeySize || s.Generation != generation {
					t.Errorf("%s: the nodes have %v and %v", name, s, made[0])
				}
			}
			again, err := NewGenerations(store, testMaster(t, 7)).Get(t.Context(), generation)
			if err != nil || !bytes.Equal(again.Key, made[0].Key) {
				t.Errorf("%s: later it is %v: %v", name, again, err)
			}
		}
	}
}

func TestSecretsDiffer(t *testing.T) {
	keys, ids := make(map[string]bool), make(map[string]bool)
	for name, store := range bothStores(t) {
		for generation := 1; generation <= 3; generation++ {
			s, err := NewGenerations(store, testMaster(t, 7)).Create(t.Context(), generation)
			if err != nil || keys[string(s.Key)] || ids[s.ID] || s.ID == "" || strings.Contains(s.ID, fmt.Sprintf("%x", s.Key[:8])) {
				t.Errorf("%s: %v: %v", name, s, err)
			}
			keys[string(s.Key)], ids[s.ID] = true, true
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
				if text := fmt.Sprintf(verb, s); text != fmt.Sprintf("(secret %s of generation %d)", s.ID, generation) {
					t.Errorf("with %s a secret prints as %s", verb, text)
				}
			}
		}
	}
}

// TestASecretIsNotReplaced: a secret that can't be read is an error, never a reason to make another.
func TestASecretIsNotReplaced(t *testing.T) {
	folder := t.TempDir()
	open := func(seed byte) *Generations {
		store, err := OpenKeyStore(t.Context(), "file://"+folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return NewGenerations(store, testMaster(t, seed))
	}
	if _, err := open(7).Create(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "commitment", "1")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var wrong *WrongKeyError
	if _, err := open(8).Create(t.Context(), 1); !errors.As(err, &wrong) {
		t.Errorf("with another master key: %v", err)
	}
	for name, content := range map[string][]byte{
		"empty": nil, "no JSON": []byte("x"), "cut": good[:len(good)/2], "another version": bytes.Replace(good, []byte(`"version":1`), []byte(`"version":2`), 1),
		"another generation": bytes.Replace(good, []byte(`"generation":1`), []byte(`"generation":2`), 1),
		"another id":         bytes.Replace(good, []byte(`"id":"`), []byte(`"id":"0`), 1),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := open(7).Create(t.Context(), 1); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
			t.Errorf("%s: the file was replaced (%v)", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "commitment", "2"), good, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(7).Get(t.Context(), 2); !errors.Is(err, ErrDamaged) {
		t.Errorf("the secret of generation 1 is that of 2: %v", err)
	}
	if _, err := open(7).Create(t.Context(), 0); err == nil {
		t.Error("there is a generation 0")
	}
}

// TestSigningSeeds: each log has another seed, which is made once and is no secret of record roots.
func TestSigningSeeds(t *testing.T) {
	for name, store := range bothStores(t) {
		master := testMaster(t, 7)
		seen := make(map[string]bool)
		for _, g := range []*Generations{NewGenerations(store, master), SigningSeeds(store, master, "venue.example/trading/0/a"), SigningSeeds(store, master, "venue.example/trading/0/b")} {
			s, err := g.Create(t.Context(), 1)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			again, err := g.Create(t.Context(), 1)
			if err != nil || !bytes.Equal(s.Key, again.Key) || seen[string(s.Key)] {
				t.Errorf("%s: %v, %v: %v", name, s, again, err)
			}
			seen[string(s.Key)] = true
		}
	}
}

// TestAnExistingSecretIsMadeDurable: a secret that another node has created may not be durable yet. Create makes it so, and
// fails if it cannot.
func TestAnExistingSecretIsMadeDurable(t *testing.T) {
	folder, err := openFolder(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	g := NewGenerations(&KeyStore{folder}, testMaster(t, 7))
	if _, err := g.Create(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	synced, broken := 0, errors.New("the disk is broken")
	folder.sync = func(*os.File) error { synced++; return nil }
	if _, err := g.Create(t.Context(), 1); err != nil || synced == 0 {
		t.Errorf("after %d syncs: %v", synced, err)
	}
	folder.sync = func(f *os.File) error {
		if about, err := f.Stat(); err == nil && about.IsDir() {
			return broken
		}
		return nil
	}
	if s, err := g.Create(t.Context(), 1); !errors.Is(err, broken) {
		t.Errorf("%v is returned, which may be lost: %v", s, err)
	}
}
