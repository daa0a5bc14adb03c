package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/synctest"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// files returns what lies in a folder and those below it.
func files(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestABlobInPieces(t *testing.T) {
	root := t.TempDir()
	s := NewStore(openTest(t, URLOf(root)))
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	write := func(ctx context.Context) *Writer {
		w, err := s.NewWriter(ctx, "documents/1")
		if err != nil {
			t.Fatal(err)
		}
		for piece := range bytes.SplitSeq(content, []byte("9")) {
			if _, err := w.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		return w
	}
	w := write(t.Context())
	if n := len(files(t, root)); n != 1 {
		t.Fatalf("%d files are being written", n)
	}
	w.Abandon()
	if left := files(t, root); len(left) > 0 {
		t.Errorf("what was abandoned leaves %q", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w = write(ctx)
	cancel()
	if err := w.Commit(); err == nil {
		t.Error("it was committed although its context had ended")
	}
	if left := files(t, root); len(left) > 0 {
		t.Errorf("what was given up leaves %q", left)
	}
	w = write(t.Context())
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	w.Abandon()
	r, err := s.NewReader(t.Context(), "documents/1")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, bytes.ReplaceAll(content, []byte("9"), nil)) {
		t.Errorf("%d bytes were read: %v", len(got), err)
	}
	if _, err := s.NewReader(t.Context(), "documents/2"); !Missing(err) {
		t.Errorf("what is not there: %v", err)
	}
}

// hanging is a bucket whose writers take nothing until they are let.
type hanging struct {
	driver.Bucket
	let chan struct{}
}

func (h hanging) NewTypedWriter(context.Context, string, string, *driver.WriterOptions) (driver.Writer, error) {
	return h, nil
}
func (h hanging) Write([]byte) (int, error)              { <-h.let; return 0, errors.New("late") }
func (h hanging) Close() error                           { <-h.let; return errors.New("late") }
func (h hanging) ErrorCode(error) (c gcerrors.ErrorCode) { return c }

func TestAStoreThatHangsAmidABlobIsNotWaitedFor(t *testing.T) {
	under, err := newFolder(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := hanging{under, make(chan struct{})}
		s := NewStore(blob.NewBucket(h))
		w, err := s.NewWriter(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x")); !errors.Is(err, ErrSilent) {
			t.Errorf("a piece: %v", err)
		}
		if err := w.Commit(); !errors.Is(err, ErrSilent) {
			t.Errorf("the end: %v", err)
		}
		close(h.let)
	})
}
