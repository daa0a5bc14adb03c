package seal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// overwriting is a key store that ignores that an object is to be created only if absent, as some S3 stores do.
type overwriting struct{ *bucketStore }

func (s overwriting) create(ctx context.Context, name string, content []byte) error {
	return s.write(ctx, name, content, false)
}

// pretending is one that reports a conflict and overwrites all the same.
type pretending struct{ *bucketStore }

func (s pretending) create(ctx context.Context, name string, content []byte) error {
	err := s.bucketStore.create(ctx, name, content)
	if err != nil {
		return errors.Join(err, s.write(ctx, name, content, false))
	}
	return nil
}

func TestProbe(t *testing.T) {
	bucket := func() *bucketStore { return &bucketStore{memblob.OpenBucket(nil)} }
	good, ignorant, liar := bucket(), bucket(), bucket()
	for _, c := range []struct {
		name string
		of   store
		in   *bucketStore
		want error
	}{
		{"a store that creates once", good, good, nil},
		{"one that ignores the condition", overwriting{ignorant}, ignorant, ErrOverwrites},
		{"one that overwrites and reports a conflict", pretending{liar}, liar, ErrOverwrites},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := probe(t.Context(), c.of); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("probe: %v, want %v", err, c.want)
			}
			if o, err := c.in.bucket.List(nil).Next(t.Context()); err == nil {
				t.Errorf("the probe left %s", o.Key)
			}
		})
	}
}

func TestProbeOfAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if err := Probe(t.Context(), blob.URLOf(dir)); !errors.Is(err, ErrAway) {
		t.Errorf("probe of a folder that is missing: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the probe made the folder")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Probe(t.Context(), blob.URLOf(dir)); err != nil {
		t.Errorf("probe of a folder: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "doctor") {
			t.Errorf("the probe left %s", e.Name())
		}
	}
}
