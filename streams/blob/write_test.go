package blob

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gocloud.dev/blob"
)

func openTest(t *testing.T, url string) *blob.Bucket {
	t.Helper()
	b, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestABlobIsSyncedBeforeItHasItsNameAndItsFoldersAfterwards(t *testing.T) {
	root := filepath.Join(t.TempDir(), "blob")
	b := openTest(t, URLOf(root)+"?prefix=venue/")
	at := filepath.Join(root, "venue/snapshots/trading/one")
	var synced []string
	err := write(t.Context(), b, "snapshots/trading/one", []byte("content"), func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		_, missing := os.Stat(at)
		switch {
		case info.IsDir() && missing != nil:
			t.Errorf("%s was synced before the blob had its name", f.Name())
		case !info.IsDir() && (missing == nil || info.Size() != 7 || !Temporary(f.Name())):
			t.Errorf("%s was synced with %d bytes, while the blob: %v", f.Name(), info.Size(), missing)
		case info.IsDir():
			synced = append(synced, f.Name())
		default:
			synced = append(synced, filepath.Dir(f.Name())+"/file")
		}
		return f.Sync()
	})
	want := []string{filepath.Dir(at) + "/file", filepath.Dir(at), filepath.Join(root, "venue/snapshots"), filepath.Join(root, "venue"), root}
	if err != nil || !slices.Equal(synced, want) {
		t.Errorf("%v were synced, not %v: %v", synced, want, err)
	}
	if content, err := b.ReadAll(t.Context(), "snapshots/trading/one"); err != nil || string(content) != "content" {
		t.Errorf("%q %v", content, err)
	}
}

func TestABlobThatCantBeSyncedOrIsGivenUpIsNotThere(t *testing.T) {
	for name, url := range map[string]string{"folder": URLOf(t.TempDir()), "memory": "mem://"} {
		t.Run(name, func(t *testing.T) {
			b := openTest(t, url)
			if err := Write(t.Context(), b, "x", []byte("old")); err != nil {
				t.Fatal(err)
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if err := Write(ended, b, "x", []byte("new")); err == nil {
				t.Error("it was written although the context had ended")
			}
			full := errors.New("no space left")
			if err := write(t.Context(), b, "x", []byte("new"), func(*os.File) error { return full }); name == "folder" && !errors.Is(err, full) {
				t.Errorf("%v", err)
			}
			content, err := b.ReadAll(t.Context(), "x")
			if err != nil || name == "folder" && string(content) != "old" {
				t.Errorf("%q %v", content, err)
			}
			for it := b.List(nil); ; {
				o, err := it.Next(t.Context())
				if err != nil {
					break
				}
				if o.Key != "x" {
					t.Errorf("%s is left over", o.Key)
				}
			}
		})
	}
}

func TestAFolderThatHangsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		_, err := openInTime(t.Context(), &url.URL{Scheme: "file", Path: "/mnt/far"}, func(*url.URL) (*blob.Bucket, error) {
			<-hangs
			return nil, nil
		})
		if err == nil || !strings.Contains(err.Error(), "file:///mnt/far did not answer") {
			t.Errorf("%v", err)
		}
		close(hangs)
	})
}

func TestWhatIsCalledTemporary(t *testing.T) {
	root := t.TempDir()
	b := openTest(t, URLOf(root))
	w, err := b.NewWriter(t.Context(), "snapshots/one.1", &blob.WriterOptions{ContentType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	o, err := b.List(nil).Next(t.Context())
	if err != nil || !Temporary(o.Key) || !strings.HasPrefix(o.Key, "snapshots/one.1.") {
		t.Errorf("what is being written is listed as %q: %v", o.Key, err)
	}
	for _, key := range []string{"", ".tmp", "notes.tmp", "snapshots/one.1", "1890abcdef012345.tmp", "x.1890abcdef01234g.tmp", "x.1890abcdef012345.tmp.gz",
		"x.1890abcdef0123450.tmp"} {
		if Temporary(key) {
			t.Errorf("%q is taken for temporary", key)
		}
	}
}
