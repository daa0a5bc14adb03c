package snapshot

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// hanging is a bucket that answers nothing, and knows of no context, until it is let go.
type hanging struct {
	driver.Bucket
	asked chan struct{}
	free  chan struct{}
}

func (h *hanging) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.Unknown }
func (h *hanging) Close() error                       { return nil }
func (h *hanging) ListPaged(context.Context, *driver.ListOptions) (*driver.ListPage, error) {
	h.asked <- struct{}{}
	<-h.free
	return &driver.ListPage{}, nil
}

// inBubble runs a test in which time passes at once when everybody waits.
func inBubble(t *testing.T, test func(t *testing.T, h *hanging, s *Store)) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{asked: make(chan struct{}, 1000), free: make(chan struct{})}
		s := NewStore(Config{Bucket: gocloud.NewBucket(h), Key: key})
		test(t, h, s)
		close(h.free)
		synctest.Wait()
	})
}

func TestALogIsFoldedSoonWhereTheBlobStoreHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hanging, s *Store) {
		start := time.Now()
		for _, journal := range []string{"identity", "trading", "identity", "trading"} {
			if seed, err := s.Load(t.Context(), journal, 0, codec{version: 1}); seed != nil || err != nil {
				t.Errorf("%v %v", seed, err)
			}
		}
		if took := time.Since(start); took != blob.Patience || len(h.asked) != 1 {
			t.Errorf("loading was given up after %v, when the store had been asked %d times", took, len(h.asked))
		}
		if n := testutil.ToFloat64(s.metrics.ignored.WithLabelValues("trading", "unreachable")); n != 2 {
			t.Errorf("%v of two were told", n)
		}
		start = time.Now() // whoever asks for safety's sake does ask
		if _, err := s.Positions(t.Context(), "trading", 0); !errors.Is(err, blob.ErrSilent) || time.Since(start) != blob.Patience || len(h.asked) != 2 {
			t.Errorf("positions: %v after %v", err, time.Since(start))
		}
		time.Sleep(blob.Rest)
		if _, err := s.Load(t.Context(), "trading", 0, codec{}); err != nil || len(h.asked) != 3 {
			t.Errorf("after a rest the store was asked %d times in all: %v", len(h.asked), err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := s.Positions(ended, "trading", 0); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestQuestionsThatHangDoNotAddUp(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hanging, s *Store) {
		for range 2 * blob.Pending {
			if _, err := s.list(t.Context(), "trading", 0); !errors.Is(err, blob.ErrSilent) {
				t.Fatal(err)
			}
		}
		if len(h.asked) != blob.Pending {
			t.Errorf("%d questions hang", len(h.asked))
		}
		for range blob.Pending {
			h.free <- struct{}{}
		}
		go func() { h.free <- struct{}{} }()
		if _, err := s.list(t.Context(), "trading", 0); err != nil || s.blobs.Resting() != nil {
			t.Errorf("when it answers again: %v, %v", err, s.blobs.Resting())
		}
	})
}

func TestWhatAKilledProcessWasWritingIsClearedUpInTime(t *testing.T) {
	folder := t.TempDir()
	bucket, err := blob.Open(t.Context(), blob.URLOf(folder))
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	var log strings.Builder
	s := NewStore(Config{Bucket: bucket, Key: key, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	at := record.Position{Offset: 7, Sequence: 7}
	save := func() {
		t.Helper()
		if _, err := s.save(t.Context(), Header{Journal: "trading", Position: at, Codec: 1}, nil, []byte("state")); err != nil {
			t.Fatal(err)
		}
	}
	save()
	place := filepath.Join(folder, "snapshots/trading/0")
	whole := filepath.Base(s.key("trading", 0, name{at, 1}))
	leave := func(file string, age time.Duration) {
		path := filepath.Join(place, file)
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	writing, killed := whole+".1890abcdef012345.tmp", whole+".1890abcdef012346.tmp"
	leave(writing, blob.AbandonedAfter/2)
	leave(killed, 2*blob.AbandonedAfter)
	leave("notes.tmp", 2*blob.AbandonedAfter)
	save()
	var left []string
	files, err := os.ReadDir(place)
	for _, f := range files {
		left = append(left, f.Name())
	}
	want := []string{whole, writing, "notes.tmp"}
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, not %v: %v", left, want, err)
	}
	if strings.Contains(log.String(), "what is no snapshot") != true || strings.Contains(log.String(), writing) {
		t.Errorf("told was\n%s", log.String())
	}
}
