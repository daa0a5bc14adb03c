package seal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gocloud.dev/blob/memblob"
)

// eachStore runs a test on a folder and on a bucket.
func eachStore(t *testing.T, test func(t *testing.T, s store)) {
	t.Run("folder", func(t *testing.T) {
		k, err := OpenKeyStore(t.Context(), "file://"+filepath.ToSlash(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		test(t, k.store)
	})
	t.Run("bucket", func(t *testing.T) {
		s := &bucketStore{memblob.OpenBucket(nil)}
		defer s.close()
		test(t, s)
	})
}

func TestReplace(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		k := &KeyStore{s}
		if err := k.Create(t.Context(), "fence/a", []byte("a long content")); err != nil {
			t.Fatal(err)
		}
		for _, content := range []string{"short", "a longer content than before"} {
			if err := k.Replace(t.Context(), "fence/a", []byte(content)); err != nil {
				t.Fatal(err)
			}
			if got, err := k.Read(t.Context(), "fence/a"); string(got) != content || err != nil {
				t.Errorf("read %q (%v), want %q", got, err, content)
			}
		}
	})
}

// TestAReplacementIsWhole: the file has its old content until the new one is on disk, so a power cut leaves one of the two.
func TestAReplacementIsWhole(t *testing.T) {
	folder := t.TempDir()
	s, err := openFolder(folder, false)
	if err != nil {
		t.Fatal(err)
	}
	k := &KeyStore{s}
	if err := k.Replace(t.Context(), "fence/a", []byte("new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("replacing nothing: %v", err)
	}
	if err := k.Create(t.Context(), "fence/a", []byte("old")); err != nil {
		t.Fatal(err)
	}
	content := func() string {
		got, err := os.ReadFile(filepath.Join(folder, "fence", "a"))
		if err != nil {
			t.Error(err)
		}
		return string(got)
	}
	broken := errors.New("the disk is full")
	s.sync = func(*os.File) error { return broken }
	if err := k.Replace(t.Context(), "fence/a", []byte("new")); !errors.Is(err, broken) || content() != "old" {
		t.Errorf("replaced by what is not on disk: %v, and the content is %q", err, content())
	}
	var synced []string
	s.sync = func(f *os.File) error {
		synced = append(synced, content())
		return f.Sync()
	}
	if err := k.Replace(t.Context(), "fence/a", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(synced, []string{"old", "new"}) { // the new file, then the folder
		t.Errorf("at each sync the content was %q", synced)
	}
	if left, err := os.ReadDir(filepath.Join(folder, unfinishedDir)); len(left) > 0 || err != nil {
		t.Errorf("left unfinished: %v (%v)", left, err)
	}
}

func TestAKeyStoreListsAFolder(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		k := &KeyStore{s}
		if names, err := k.List(t.Context(), "held/person/1"); len(names) > 0 || err != nil {
			t.Errorf("of no folder: %q (%v)", names, err)
		}
		for _, name := range []string{"held/person/1/a", "held/person/1/b", "held/person/12/c", "held/person/1/d/e"} {
			if err := k.Create(t.Context(), name, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		names, err := k.List(t.Context(), "held/person/1")
		if slices.Sort(names); err != nil || !slices.Equal(names, []string{"a", "b"}) {
			t.Errorf("%q (%v)", names, err)
		}
	})
}
