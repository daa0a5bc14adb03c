package seal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

var (
	anna = owner.Ref{Type: owner.PersonType, ID: scalar.ID{1, 15: 9}}
	acme = owner.Ref{Type: owner.CorporateType, ID: scalar.ID{1, 15: 9}} // with the same id
)

func testMaster(t testing.TB, fill byte) *Box {
	t.Helper()
	b, err := New(bytes.Repeat([]byte{fill}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// onFolder returns a node's view of the key store in a folder.
func onFolder(t testing.TB, folder string) *Owners {
	t.Helper()
	o, err := OpenOwners(t.Context(), "file://"+filepath.ToSlash(folder), testMaster(t, 7))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// created is onFolder with keys for anna and acme.
func created(t testing.TB, folder string) *Owners {
	t.Helper()
	o := onFolder(t, folder)
	for _, of := range []owner.Ref{anna, acme} {
		if err := o.Create(t.Context(), of.String()); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func sealed(t testing.TB, o *Owners, plain string, at AssociatedData) []byte {
	t.Helper()
	s, err := o.Seal(t.Context(), []byte(plain), at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stores are the kinds of key stores, each with two nodes on it.
func stores(t *testing.T) map[string][2]*Owners {
	folder, bucket := t.TempDir(), &bucketStore{memblob.OpenBucket(nil)}
	return map[string][2]*Owners{
		"a folder": {onFolder(t, folder), onFolder(t, folder)},
		"a bucket": {newOwners(bucket, testMaster(t, 7)), newOwners(bucket, testMaster(t, 7))},
	}
}

func TestOneKeyCountsWhoeverMakesIt(t *testing.T) {
	for kind, nodes := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			for n := range 20 {
				at := OwnerFields(owner.Ref{Type: owner.PersonType, ID: scalar.ID{2, byte(n)}})
				var wg sync.WaitGroup
				var kept [8][]byte
				for i := range kept {
					wg.Go(func() {
						node := nodes[i%2]
						if err := node.Create(t.Context(), at.Owner); err != nil {
							t.Error(err)
							return
						}
						kept[i], _ = node.Seal(t.Context(), []byte("Anna"), at)
					})
				}
				wg.Wait()
				for i, s := range kept {
					if plain, err := nodes[(i+1)%2].Open(t.Context(), s, at); err != nil || string(plain) != "Anna" {
						t.Fatalf("what node %d sealed, the other opens as %q, %v", i%2, plain, err)
					}
				}
			}
		})
	}
}

// TestADiscardedKeyLeavesNoTrace: who never came to be has neither a key nor a tombstone.
func TestADiscardedKeyLeavesNoTrace(t *testing.T) {
	for kind, nodes := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			ctx, o, at := t.Context(), nodes[0], OwnerFields(anna)
			if err := o.Create(ctx, at.Owner); err != nil {
				t.Fatal(err)
			}
			s := sealed(t, o, "Anna", at)
			for range 2 {
				if err := o.Discard(ctx, at.Owner); err != nil {
					t.Fatal(err)
				}
			}
			for _, node := range nodes {
				if _, err := node.KeyID(ctx, at.Owner); !errors.Is(err, ErrMissing) {
					t.Errorf("the key's id: %v", err)
				}
				if _, err := node.Open(ctx, s, at); !errors.Is(err, ErrMissing) {
					t.Errorf("it is opened: %v", err)
				}
			}
		})
	}
}

func TestADestroyedKeyIsGone(t *testing.T) {
	for kind, nodes := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			ctx, o, at := t.Context(), nodes[0], OwnerFields(anna)
			if err := o.Create(ctx, at.Owner); err != nil {
				t.Fatal(err)
			}
			s := sealed(t, o, "Anna", at)
			id, err := o.KeyID(ctx, at.Owner)
			if err != nil || len(id) != 32 {
				t.Fatalf("the key's id is %q, %v", id, err)
			}
			for range 2 { // as after a crash
				if err := o.Destroy(ctx, at.Owner); err != nil {
					t.Fatal(err)
				}
			}
			for name, node := range map[string]*Owners{"who destroyed it": o, "another": nodes[1]} {
				if plain, err := node.Open(ctx, s, at); !errors.Is(err, ErrDestroyed) {
					t.Errorf("%s opens %q, %v", name, plain, err)
				}
				if _, err := node.Seal(ctx, []byte("x"), at); !errors.Is(err, ErrDestroyed) {
					t.Errorf("%s seals: %v", name, err)
				}
				if err := node.Create(ctx, at.Owner); !errors.Is(err, ErrDestroyed) {
					t.Errorf("%s makes a key anew: %v", name, err)
				}
				if got, err := node.KeyID(ctx, at.Owner); got != id || err != nil {
					t.Errorf("%s names the key %q, %v, which was %q", name, got, err, id)
				}
			}
		})
	}
}

// TestNothingOfADestroyedKeyIsLeft looks at the blocks of the key's file: they hold the tombstone, also under the name that a
// process which was killed while it made the key has left.
func TestNothingOfADestroyedKeyIsLeft(t *testing.T) {
	folder := t.TempDir()
	o := created(t, folder)
	path := filepath.Join(folder, "owners", filepath.FromSlash(anna.String()))
	left := filepath.Join(folder, unfinishedDir, "key-1")
	if err := os.Link(path, left); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := decodeKeyFile(whole, anna.String())
	if err != nil || f.Key == nil {
		t.Fatalf("%+v, %v", f, err)
	}
	if about, _ := os.Stat(path); about.Mode().Perm() != 0o600 {
		t.Errorf("the key's file has mode %v", about.Mode())
	}
	key := whole[bytes.Index(whole, []byte(`"key":"`))+7:][:40]
	if err := o.Destroy(t.Context(), anna.String()); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, left} {
		content, err := os.ReadFile(p)
		if err != nil || bytes.Contains(content, key) || len(content) != keyFileSize {
			t.Errorf("%s holds %q, %v", p, content, err)
		}
	}
}

func TestAMissingKeyIsNoDestroyedOne(t *testing.T) {
	for kind, nodes := range stores(t) {
		o, at := nodes[0], OwnerFields(anna)
		_, sealing := o.Seal(t.Context(), []byte("x"), at)
		_, opening := o.Open(t.Context(), []byte("x"), at)
		_, naming := o.KeyID(t.Context(), at.Owner)
		for doing, err := range map[string]error{"seal": sealing, "open": opening, "name": naming, "destroy": o.Destroy(t.Context(), at.Owner)} {
			if !errors.Is(err, ErrMissing) || errors.Is(err, ErrDestroyed) || errors.Is(err, ErrAway) {
				t.Errorf("%s: %s: %v", kind, doing, err)
			}
		}
	}
	o := onFolder(t, t.TempDir())
	for _, bad := range []string{"", "person", "../master.key", "person/../../master.key", "person/" + strings.ToUpper("01890a5d-ac96-774b-bcce-b302099a8057")} {
		if err := o.Create(t.Context(), bad); err == nil {
			t.Errorf("there is a key for %q", bad)
		}
	}
}

// TestADamagedKeyFileOpensNothing flips each byte of a key file, cuts it and puts another owner's in its place.
func TestADamagedKeyFileOpensNothing(t *testing.T) {
	folder := t.TempDir()
	at := OwnerFields(anna)
	o := created(t, folder)
	s := sealed(t, o, "Anna", at)
	path := func(of owner.Ref) string { return filepath.Join(folder, "owners", filepath.FromSlash(of.String())) }
	whole, err := os.ReadFile(path(anna))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(path(acme))
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string][]byte{"another's": other, "nothing": nil, "zeros": make([]byte, keyFileSize)}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		bad["flipped at "+string(rune(i))] = flipped
		if i < bytes.LastIndexByte(whole, '}') {
			bad["cut to "+string(rune(i))] = whole[:i+1]
		}
	}
	for name, content := range bad {
		if err := os.WriteFile(path(anna), content, 0o600); err != nil {
			t.Fatal(err)
		}
		o.cache.forget(at.Owner)
		plain, err := o.Open(t.Context(), s, at)
		if err == nil && string(plain) != "Anna" || err != nil && !errors.Is(err, ErrDamaged) && !errors.As(err, new(*WrongKeyError)) {
			t.Fatalf("%s: %q, %v", name, plain, err)
		}
	}
	if err := os.WriteFile(path(anna), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := newOwners(o.store, testMaster(t, 8))
	if _, err := wrong.Open(t.Context(), s, at); !errors.As(err, new(*WrongKeyError)) {
		t.Errorf("with another master key: %v", err)
	}
}

// TestAKeyIsOnDiskBeforeItHasItsName: neither half a key nor a name without content survives a power cut, and a sync that
// fails makes no key.
func TestAKeyIsOnDiskBeforeItHasItsName(t *testing.T) {
	folder := t.TempDir()
	o := onFolder(t, folder)
	s := o.store.(*folderStore)
	path := filepath.Join(folder, "owners", filepath.FromSlash(anna.String()))
	var synced []string
	s.sync = func(f *os.File) error {
		about, err := f.Stat()
		if err != nil {
			return err
		}
		_, missing := os.Stat(path)
		if about.IsDir() == (missing != nil) || !about.IsDir() && about.Size() != keyFileSize {
			t.Errorf("%s is synced with %d bytes while the key's name is %v", f.Name(), about.Size(), missing)
		}
		if about.IsDir() {
			synced = append(synced, f.Name())
		}
		return f.Sync()
	}
	if err := o.Create(t.Context(), anna.String()); err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path)), folder, filepath.Dir(folder)}; strings.Join(synced, " ") != strings.Join(want, " ") {
		t.Errorf("synced are %v, not %v", synced, want)
	}
	full := errors.New("no space left")
	s.sync = func(*os.File) error { return full }
	if err := o.Create(t.Context(), acme.String()); !errors.Is(err, full) || !errors.Is(err, ErrAway) {
		t.Errorf("without a sync: %v", err)
	}
	if _, err := o.KeyID(t.Context(), acme.String()); !errors.Is(err, ErrMissing) {
		t.Errorf("a key that was not synced is there: %v", err)
	}
	if err := o.Destroy(t.Context(), anna.String()); !errors.Is(err, full) {
		t.Errorf("destroyed without a sync: %v", err)
	}
	left, err := os.ReadDir(filepath.Join(folder, unfinishedDir))
	if err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestWhatKilledProcessesLeftIsClearedUp(t *testing.T) {
	folder := t.TempDir()
	created(t, folder)
	for name, age := range map[string]time.Duration{"key-old": 2 * abandonedAfter, "key-new": 0} {
		path := filepath.Join(folder, unfinishedDir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	onFolder(t, folder)
	left, err := os.ReadDir(filepath.Join(folder, unfinishedDir))
	if err != nil || len(left) != 1 || left[0].Name() != "key-new" {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestNobodyWaitsForAKeyStoreThatHangs: a folder on a file system that is away blocks whoever asks, for as long as it likes.
func TestNobodyWaitsForAKeyStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, back := make(chan struct{}, 2), make(chan struct{})
		for range 4 { // more than may hang
			_, err := inTime(t.Context(), slots, patience, func() (int, error) { <-back; return 1, nil })
			if !errors.Is(err, ErrAway) {
				t.Error(err)
			}
		}
		close(back)
		synctest.Wait()
		if n, err := inTime(t.Context(), slots, patience, func() (int, error) { return 2, nil }); n != 2 || err != nil {
			t.Error(n, err)
		}
	})
}

// TestNoKeyIsMadeWhereNothingIsMounted: it would be lost with the container.
func TestNoKeyIsMadeWhereNothingIsMounted(t *testing.T) {
	mount := filepath.Join(t.TempDir(), "keys")
	url := "file://" + filepath.ToSlash(mount) + "?create_dir=false"
	if o, err := OpenOwners(t.Context(), url, testMaster(t, 7)); !errors.Is(err, ErrAway) {
		t.Errorf("opened: %v, %v", o, err)
	}
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	o, err := OpenOwners(t.Context(), url, testMaster(t, 7))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Create(t.Context(), anna.String()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(mount, mount+" away"); err != nil {
		t.Fatal(err)
	}
	_, naming := o.KeyID(t.Context(), anna.String())
	for _, err := range []error{naming, o.Create(t.Context(), acme.String())} {
		if !errors.Is(err, ErrAway) || errors.Is(err, ErrMissing) {
			t.Errorf("while it is away: %v", err)
		}
	}
	if _, err := os.Stat(mount); err == nil {
		t.Error("the folder was made")
	}
}

func TestTheKeyStoreIsAFolderOrABucket(t *testing.T) {
	master := testMaster(t, 1)
	for _, url := range []string{"", "/var/lib/keys", "nosuch://x", "file://host/x", "file:///x?prefix=a", "file://%zz", "file://"} {
		if o, err := OpenOwners(t.Context(), url, master); err == nil {
			o.Close()
			t.Errorf("%q was opened", url)
		}
	}
	o, err := OpenOwners(t.Context(), "mem://", master)
	if err != nil {
		t.Fatal(err)
	}
	o.Close()
}

// associatedDataOf returns all associated data of the onboarding journal that an owner's key is for.
func associatedDataOf(of owner.Ref, id scalar.ID) []AssociatedData {
	return []AssociatedData{OwnerFields(of), DocumentName(of, id), DocumentFile(of, id), Answers(of, id), Reason(of, id), InternalReason(of, id),
		ExternalReference(of, id), DeliveryResponse(of, id)}
}

// TestNoSealedValueOpensElsewhere: of all associated data of two owners with one id, and of two things, no two are the same, and
// what is sealed for one opens there only.
func TestNoSealedValueOpensElsewhere(t *testing.T) {
	o := created(t, t.TempDir())
	var all []AssociatedData
	for _, of := range []owner.Ref{anna, acme} {
		all = append(all, associatedDataOf(of, scalar.ID{3})...)
		all = append(all, associatedDataOf(of, scalar.ID{4})[1:]...)
	}
	rapid.Check(t, func(rt *rapid.T) {
		here, there := rapid.SampledFrom(all).Draw(rt, "here"), rapid.SampledFrom(all).Draw(rt, "there")
		plain := rapid.SliceOf(rapid.Byte()).Draw(rt, "plain")
		s, err := o.Seal(t.Context(), plain, here)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := o.Open(t.Context(), s, there)
		if here == there && (err != nil || !bytes.Equal(got, plain)) || here != there && !errors.Is(err, ErrDamaged) {
			rt.Fatalf("sealed for %+v, opened at %+v: %q, %v", here, there, got, err)
		}
	})
	seen := make(map[AssociatedData]bool)
	for _, at := range append(all, ErasureReason(anna), ErasureReason(acme), WebhookKey(scalar.ID{3}), TestResponse("a", scalar.ID{3})) {
		if seen[at] {
			t.Errorf("two things have the associated data %+v", at)
		}
		seen[at] = true
	}
}

func TestExternalIDsAreOfOneTenantAndType(t *testing.T) {
	b := testMaster(t, 1)
	one := b.ExternalID("broker-a", owner.PersonType, "1")
	if !bytes.Equal(one, b.ExternalID("broker-a", owner.PersonType, "1")) {
		t.Error("the same external id has two hashes")
	}
	for _, other := range [][]byte{b.ExternalID("broker-b", owner.PersonType, "1"), b.ExternalID("broker-a", owner.CorporateType, "1"),
		b.ExternalID("broker-a", owner.PersonType, "2"), testMaster(t, 2).ExternalID("broker-a", owner.PersonType, "1")} {
		if bytes.Equal(one, other) {
			t.Error("two external ids have one hash")
		}
	}
}

// FuzzOpen holds whatever bytes are said to be sealed against the opener.
func FuzzOpen(f *testing.F) {
	o := created(f, f.TempDir())
	at := OwnerFields(anna)
	f.Add(sealed(f, o, "Anna", at))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, s []byte) {
		if plain, err := o.Open(t.Context(), s, at); err == nil && string(plain) != "Anna" || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%q, %v", plain, err)
		}
	})
}

// FuzzKeyFile holds whatever a key file may contain against its reader.
func FuzzKeyFile(f *testing.F) {
	master := testMaster(f, 7)
	good, err := newKeyFile(master, anna.String(), bytes.Repeat([]byte{5}, KeySize))
	if err != nil {
		f.Fatal(err)
	}
	content, err := good.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(`{"version":1,"owner":"` + anna.String() + `","key_id":"x","destroyed_at":"2026-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		k, err := decodeKeyFile(content, anna.String())
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			return
		}
		if box, err := k.open(master); err == nil && longID(box) != good.KeyID {
			t.Errorf("another key came out of %q", content)
		}
	})
}
