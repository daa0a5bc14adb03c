package broker

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// segmentFolder makes the folder of a partition with one segment.
func segmentFolder(t *testing.T, content []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "partitions", "trading-0")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	appendTo(t, filepath.Join(dir, "0.dat"), content)
	return dir
}

func appendTo(t *testing.T, path string, content []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFailedFlushIsForAll has one flush fail while another waits for it. The other must not try again, although it would
// succeed, and although the broker has not stopped yet.
func TestFailedFlushIsForAll(t *testing.T) {
	dir := segmentFolder(t, encode(0, []byte("one"), []byte("two")))
	begun, release := make(chan struct{}), make(chan struct{})
	fails := true
	f := newFlushed(dir, func(file *os.File) error {
		if filepath.Ext(file.Name()) != segmentExtension || !fails {
			return nil
		}
		fails = false
		close(begun)
		<-release
		return syscall.EIO
	})
	t.Cleanup(func() { f.close() })
	var all sync.WaitGroup
	wait := func() {
		if err := f.await(1, newHalt()); !errors.Is(err, syscall.EIO) {
			t.Errorf("waiting ends with %v", err)
		}
	}
	all.Go(wait)
	<-begun
	for range 3 {
		all.Go(wait)
	}
	close(release)
	all.Wait()
	if at := f.recoveryPoint.Load(); at != 0 {
		t.Errorf("the recovery point is %d", at)
	}
}

// TestFlushTakesWhatIsComplete lets batches and segments come one after the other, the last one half.
func TestFlushTakesWhatIsComplete(t *testing.T) {
	whole := encode(0, []byte("one"), []byte("two"), []byte("three")) // of one, two and three records
	dir := segmentFolder(t, whole[:len(whole)-1])
	synced := 0
	f := newFlushed(dir, func(file *os.File) error {
		if filepath.Ext(file.Name()) == segmentExtension {
			synced++
		}
		return nil
	})
	t.Cleanup(func() { f.close() })
	missing := (*missingError)(nil)
	if err := f.await(4, newHalt()); !errors.As(err, &missing) || missing.end != 3 {
		t.Fatalf("what is not complete: %v", err)
	}
	if err := f.await(3, newHalt()); err != nil || synced != 1 {
		t.Fatalf("what is synced already: %v after %d syncs", err, synced)
	}
	appendTo(t, filepath.Join(dir, "0.dat"), whole[len(whole)-1:])
	appendTo(t, filepath.Join(dir, "6.dat"), encode(6, []byte("next")))
	appendTo(t, filepath.Join(dir, "7.dat"), encode(7, []byte("after")))
	if err := f.await(8, newHalt()); err != nil || synced != 4 {
		t.Fatalf("over three segments: %v after %d syncs", err, synced)
	}
	appendTo(t, filepath.Join(dir, "7.dat"), encode(9, []byte("not the next")))
	if err := f.await(9, newHalt()); err == nil || errors.As(err, &missing) {
		t.Fatalf("a batch of another offset: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, "7.dat"), 10); err != nil {
		t.Fatal(err)
	}
	g := newFlushed(dir, func(*os.File) error { return nil })
	t.Cleanup(func() { g.close() })
	if err := g.await(7, newHalt()); err != nil {
		t.Fatal(err)
	}
	appendTo(t, filepath.Join(dir, "7.dat"), encode(7, []byte("after"))[10:])
	if err := g.await(8, newHalt()); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "7.dat"), 20); err != nil {
		t.Fatal(err)
	}
	if err := g.await(9, newHalt()); err == nil || errors.As(err, &missing) {
		t.Fatalf("a segment that was cut: %v", err)
	}
}
