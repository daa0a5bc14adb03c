package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
)

// TestStoresWithoutLocks write nothing that is to be locked, and tell no lock.
func TestStoresWithoutLocks(t *testing.T) {
	for _, at := range []string{URLOf(t.TempDir()), "mem://"} {
		bucket, err := Open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer bucket.Close()
		s := NewStore(bucket)
		l := Retention{For: time.Hour, Mode: Governance}.Lock(time.Now())
		if created, err := s.CreateLocked(t.Context(), "a", []byte("x"), time.Second, l); created || !errors.Is(err, ErrNoLocks) {
			t.Errorf("%s: %t, %v", at, created, err)
		}
		if _, err := s.Read(t.Context(), "a", 1); !Missing(err) {
			t.Errorf("%s has the blob: %v", at, err)
		}
		if err := s.Write(t.Context(), "a", []byte("x"), time.Second); err != nil {
			t.Fatal(err)
		}
		if l, err := s.Lock(t.Context(), "a"); err != nil || l != (Lock{}) {
			t.Errorf("%s: %v, %v", at, l, err)
		}
		if err := CheckLocks(t.Context(), bucket, at); !errors.Is(err, ErrNoLocks) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestCheckLockURL(t *testing.T) {
	for at, want := range map[string]bool{"s3://b?region=eu-central-1": true, "gs://b": true, "azblob://b": false, "file:///b": false, "mem://": false} {
		if err := CheckLockURL(at); (err == nil) != want || !want && !errors.Is(err, ErrNoLocks) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestRetention(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 5, time.UTC)
	l := Retention{For: 24 * time.Hour, Mode: Compliance}.Lock(now)
	if want := (Lock{time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Compliance}); l != want || !l.Holds(now) || l.Holds(l.Until) {
		t.Errorf("%v", l)
	}
	if l := (Retention{Mode: Compliance}).Lock(now); l != (Lock{}) || l.Holds(now) {
		t.Errorf("no retention locks until %v", l.Until)
	}
}

// TestRefused tells a refusal by a folder, which reports a file that is immutable as one without permission, from other errors.
func TestRefused(t *testing.T) {
	for cause, want := range map[error]bool{&fs.PathError{Op: "rename", Err: os.ErrPermission}: true, errors.New("disk"): false} {
		f, err := newFolder(t.TempDir(), true)
		if err != nil {
			t.Fatal(err)
		}
		f.sync = func(*os.File) error { return cause }
		bucket := blob.NewBucket(f)
		defer bucket.Close()
		if err := NewStore(bucket).Write(t.Context(), "a", nil, time.Second); Refused(err) != want || !strings.Contains(fmt.Sprint(err), cause.Error()) {
			t.Errorf("%v is refused: %t", err, Refused(err))
		}
	}
	if Refused(nil) {
		t.Error("success is a refusal")
	}
}
