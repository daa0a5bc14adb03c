package seal

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"gocloud.dev/blob/memblob"
)

// careless is a store that ignores the condition of a creation, as some S3 stores do.
type careless struct{ store }

func (c careless) create(ctx context.Context, name string, content []byte) error {
	if err := c.store.create(ctx, name, content); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return c.overwrite(ctx, name, content)
}

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

func TestAKeyStoreThatCreatesTwiceIsFound(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		if err := (&KeyStore{s}).CreatesOnce(t.Context()); err != nil {
			t.Error(err)
		}
		if err := (&KeyStore{careless{s}}).CreatesOnce(t.Context()); !errors.Is(err, ErrCreatesTwice) {
			t.Errorf("a store that creates twice: %v", err)
		}
		if left, err := s.list(t.Context(), "doctor"); len(left) > 0 || err != nil {
			t.Errorf("left are %q (%v)", left, err)
		}
	})
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
