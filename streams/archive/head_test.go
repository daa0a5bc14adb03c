package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func headOf(n int64, hash byte) Head {
	return Head{Range: n, Manifest: sha256.Sum256([]byte{byte(n), hash}), LastOffset: 128*(n+1) + 5,
		Base: record.Base{Journal: "trading", Partitions: 1, JournalID: scalar.ID{7}, Sequence: 128 * (n + 1), Prev: record.Hash{byte(n + 1), hash}, Term: 1}}
}

// TestHeadsInAFolder: a newer head replaces an older one and never the other way, and one that contradicts it is refused.
func TestHeadsInAFolder(t *testing.T) {
	ctx := t.Context()
	f := HeadFolder{Dir: filepath.Join(t.TempDir(), "a", "heads"), TopicPrefix: "p-"}
	is := func(want *Head) {
		t.Helper()
		got, err := f.Head(ctx, "trading", 0)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	is(nil)
	first, second, forked, other := headOf(0, 1), headOf(1, 1), headOf(1, 2), headOf(5, 1)
	other.Base.JournalID = scalar.ID{8}
	for _, h := range []Head{first, second, second, first} {
		if err := f.Keep(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	is(&second)
	for _, h := range []Head{forked, other} {
		if err := f.Keep(ctx, h); !errors.Is(err, ErrContradiction) {
			t.Errorf("%v", err)
		}
	}
	if err := f.Keep(ctx, Head{}); err == nil {
		t.Error("an empty head was kept")
	}
	is(&second)
	path := filepath.Join(f.Dir, "p-trading-0.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{"", string(text[:len(text)-3]), " " + string(text), string(text) + "x", "{}"} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Head(ctx, "trading", 0); err == nil {
			t.Errorf("%q is a head", damaged)
		}
		if err := f.Keep(ctx, second); err == nil {
			t.Errorf("%q was replaced", damaged)
		}
	}
	if err := errors.Join(f.Forget("trading", 0), f.Forget("trading", 0)); err != nil {
		t.Fatal(err)
	}
	is(nil)
}

// sealingHeads are heads of an archive in which a node seals a range, and keeps its head, whenever the head is read.
type sealingHeads struct {
	HeadFolder
	seal func() Head
}

func (s sealingHeads) Head(ctx context.Context, journal string, partition int32) (*Head, error) {
	if err := s.Keep(ctx, s.seal()); err != nil {
		return nil, err
	}
	return s.HeadFolder.Head(ctx, journal, partition)
}

// TestOpenContinuingWhileANodeSeals: an archive that has grown since it was opened has lost nothing. One that lacks the head has.
func TestOpenContinuingWhileANodeSeals(t *testing.T) {
	s := newMemory()
	cfg, p, n := testConfig(t, s), newTopic(t, 61), int64(150)
	folder := HeadFolder{Dir: t.TempDir()}
	heads := sealingHeads{folder, func() Head {
		n += 128
		if err := p.grow(n).archive(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		a, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return *a.Head()
	}}
	for range 3 {
		if _, err := OpenContinuing(t.Context(), cfg, heads); err != nil {
			t.Error(err)
		}
	}
	h, err := folder.Head(t.Context(), cfg.Journal, cfg.Partition)
	if err != nil || h == nil {
		t.Fatalf("%v, %v", h, err)
	}
	delete(s.blobs, cfg.tailKey())
	delete(s.blobs, cfg.manifestKey(h.Range))
	var lost *Error
	if _, err := OpenContinuing(t.Context(), cfg, folder); !errors.As(err, &lost) || lost.Damage != Missing || lost.Key != cfg.manifestKey(h.Range) {
		t.Errorf("without its last manifest: %v", err)
	}
}
