package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

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

// late is a bucket that opens nothing until it is let, and tells what is closed.
type late struct {
	driver.Bucket
	begun, let, closed chan struct{}
}

func (l late) NewTypedWriter(ctx context.Context, key, contentType string, opts *driver.WriterOptions) (driver.Writer, error) {
	l.begun <- struct{}{}
	<-l.let
	w, err := l.Bucket.NewTypedWriter(ctx, key, contentType, opts)
	return lateWriter{w, l.closed}, err
}

func (l late) NewRangeReader(ctx context.Context, key string, offset, length int64, opts *driver.ReaderOptions) (driver.Reader, error) {
	l.begun <- struct{}{}
	<-l.let
	r, err := l.Bucket.NewRangeReader(ctx, key, offset, length, opts)
	return lateReader{r, l.closed}, err
}

type lateWriter struct {
	driver.Writer
	closed chan struct{}
}

func (w lateWriter) Close() error {
	defer func() { w.closed <- struct{}{} }()
	return w.Writer.Close()
}

type lateReader struct {
	driver.Reader
	closed chan struct{}
}

func (r lateReader) Close() error {
	defer func() { r.closed <- struct{}{} }()
	return r.Reader.Close()
}

// TestWhatOpensLateIsClosed: a client that goes away while its blob is being opened leaves neither a file nor an open one.
func TestWhatOpensLateIsClosed(t *testing.T) {
	root := t.TempDir()
	under, err := newFolder(root, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, begin := range map[string]func(context.Context, *Store) error{
		"a writer": func(ctx context.Context, s *Store) error { _, err := s.NewWriter(ctx, "a"); return err },
		"a reader": func(ctx context.Context, s *Store) error { _, err := s.NewReader(ctx, "there"); return err },
	} {
		there := filepath.Join(root, "there")
		if err := os.WriteFile(there, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		l := late{under, make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-l.begun
			cancel()
		}()
		if err := begin(ctx, NewStore(blob.NewBucket(l))); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		close(l.let)
		select {
		case <-l.closed:
		case <-time.After(time.Minute):
			t.Errorf("%s is never closed", name)
		}
		if left := files(t, root); len(left) != 1 || left[0] != there {
			t.Errorf("%s leaves %q", name, left)
		}
	}
}
