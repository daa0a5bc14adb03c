package archive

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/streams/blob/blobtest"
)

// tear returns the blob of a manifest with another bit.
func tear(b []byte) []byte {
	torn := slices.Clone(b)
	torn[len(torn)/2] ^= 1
	return torn
}

// damages reports whether an error names the damaged tail of an archive.
func damages(err error, cfg Config) bool {
	var wrong *Error
	return errors.As(err, &wrong) && wrong.Key == cfg.tailKey()
}

// TestADamagedTail stops no reader of full ranges, and every reader of what the tail may hold.
func TestADamagedTail(t *testing.T) {
	ctx := t.Context()
	p := newTopic(t, 40).grow(300)
	for name, torn := range map[string]func([]byte) []byte{
		"a bit": tear,
		"empty": func([]byte) []byte { return nil },
		"cut":   func(b []byte) []byte { return b[:len(b)/2] },
	} {
		s := newMemory()
		cfg := testConfig(t, s)
		if err := p.archive(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		s.blobs[cfg.tailKey()] = torn(s.blobs[cfg.tailKey()])
		if _, err := Open(ctx, cfg); !damages(err, cfg) {
			t.Errorf("%s: opened with %v", name, err)
		}
		a, err := OpenRanges(ctx, cfg)
		if err != nil || !damages(a.TailDamage(), cfg) || a.Tail() != nil || a.Base().Sequence != 256 {
			t.Fatalf("%s: %+v, %v", name, a, err)
		}
		for to, want := range map[int64]bool{256: false, 257: true, math.MaxInt64: true} {
			values, last := 0, error(nil)
			for _, err := range a.Values(ctx, 0, to) {
				if last = err; err == nil {
					values++
				}
			}
			if values != 256 || damages(last, cfg) != want {
				t.Errorf("%s: %d values before record %d, then %v", name, values, to, last)
			}
		}
		if sum, err := a.Verify(ctx, nil); sum.Records != 256 || !damages(err, cfg) {
			t.Errorf("%s: verified %+v, %v", name, sum, err)
		}
		chunks, err := a.Chunks(ctx)
		for err == nil {
			_, err = chunks.Next(ctx)
		}
		if errors.Is(err, io.EOF) || !damages(err, cfg) {
			t.Errorf("%s: the chunks end with %v", name, err)
		}
		chunks.Close()
	}
}

// TestADamagedTailOfNoRange is an error for writers too: with another key they would replace it.
func TestADamagedTailOfNoRange(t *testing.T) {
	s := newMemory()
	cfg := testConfig(t, s)
	if err := newTopic(t, 41).grow(100).archive(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s.blobs[cfg.tailKey()] = tear(s.blobs[cfg.tailKey()])
	if _, err := NewWriter(t.Context(), cfg); !damages(err, cfg) {
		t.Errorf("the writer: %v", err)
	}
}

// TestASealerReplacesADamagedTail, and leaves the object of the damaged one until there is another tail.
func TestASealerReplacesADamagedTail(t *testing.T) {
	for name, early := range map[string]bool{"damaged before the writer opens the archive": true, "damaged afterwards": false} {
		p, s := oldTopic(t, 42).grow(200), newMemory()
		cfg := testConfig(t, s)
		s.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := p.archive(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		object := cfg.folderOf(s.keys(), tailName+"-")
		damage := func() {
			s.blobs[cfg.tailKey()] = tear(s.blobs[cfg.tailKey()])
			s.times[cfg.tailKey()] = s.now.Add(time.Hour)
		}
		if early {
			damage()
		}
		w, err := NewWriter(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !early {
			damage()
		}
		if err := w.Sweep(t.Context()); err != nil || !slices.Equal(cfg.folderOf(s.keys(), tailName+"-"), object) {
			t.Errorf("%s: %v; of %v there are %v", name, err, object, s.keys())
		}
		r := seals(t, p, cfg)
		r.until("the tail", func(st Status) bool { return st.Tailed == 199 })
		r.end()
		if a := sound(t, cfg); a.Tail() == nil || a.Tail().Base.Sequence != 200 {
			t.Errorf("%s: the tail is %+v", name, a.Tail())
		}
	}
}

// TestABucketThatKeepsADamagedTail gets all full ranges, and one warning that names the tail.
func TestABucketThatKeepsADamagedTail(t *testing.T) {
	for name, tells := range map[string]bool{"tells the locks": true, "does not tell them": false} {
		m := newMemory()
		p := oldTopic(t, 43).grow(200)
		if err := p.archive(t.Context(), testConfig(t, m)); err != nil {
			t.Fatal(err)
		}
		cfg := testConfig(t, blobtest.NewWorm(m, blobtest.Policy{Until: time.Now().Add(future), Tells: tells}))
		m.blobs[cfg.tailKey()] = tear(m.blobs[cfg.tailKey()])
		var log logged
		s := runs(t, p.grow(300), SealerConfig{Config: cfg, TailEvery: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s.until("the second range", func(st Status) bool { return st.Sealed == 255 && st.Read == 299 })
		s.end()
		if n := log.count("tail of the archive is damaged"); n != 1 || !strings.Contains(log.text.String(), cfg.tailKey()) {
			t.Errorf("%s: %d warnings:\n%s", name, n, &log.text)
		}
		if objects := cfg.folderOf(m.keys(), tailName+"-"); len(objects) != 1 {
			t.Errorf("%s: objects of tails: %v", name, objects)
		}
	}
}

// listedBefore is a bucket that lists what it held before.
type listedBefore struct {
	*memory
	all []*gocloud.ListObject
}

func (l *listedBefore) List(context.Context, string) ([]*gocloud.ListObject, error) {
	return l.all, nil
}

// TestRangesThatAppearWhileAnArchiveIsOpened seals ranges and writes a tail after the manifests were listed.
func TestRangesThatAppearWhileAnArchiveIsOpened(t *testing.T) {
	ctx := t.Context()
	for name, before := range map[string]int64{"no range": 100, "one range": 140} {
		s := newMemory()
		cfg, p := testConfig(t, s), newTopic(t, 45).grow(before)
		if err := p.archive(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		all, err := s.List(ctx, cfg.folder()+manifestName)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.grow(400).archive(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		late := cfg
		late.Store = &listedBefore{s, all}
		a, err := Open(ctx, late)
		if err != nil || len(a.Sealed()) != 3 || a.Tail() == nil {
			t.Fatalf("%s: %+v, %v", name, a, err)
		}
		values := int64(0)
		for _, err := range a.Values(ctx, 0, math.MaxInt64) {
			if err != nil {
				t.Fatal(err)
			}
			values++
		}
		if values != p.sequence {
			t.Errorf("%s: %d values, want %d", name, values, p.sequence)
		}
		delete(s.blobs, cfg.manifestKey(1))
		var wrong *Error
		if _, err := Open(ctx, late); !errors.As(err, &wrong) || wrong.Damage != Missing || wrong.Key != cfg.manifestKey(1) {
			t.Errorf("%s, without a manifest: %v", name, err)
		}
	}
}
