package blob

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
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

// openSynced is openTest for a folder, of which sync syncs the files and folders.
func openSynced(t *testing.T, root string, sync func(*os.File) error) *blob.Bucket {
	t.Helper()
	f, err := newFolder(root, true)
	if err != nil {
		t.Fatal(err)
	}
	f.sync = sync
	b := blob.PrefixedBucket(blob.NewBucket(f), "venue/")
	t.Cleanup(func() { b.Close() })
	return b
}

func TestABlobIsSyncedBeforeItHasItsNameAndItsFoldersAfterwards(t *testing.T) {
	root := filepath.Join(t.TempDir(), "blob")
	at := filepath.Join(root, "venue/snapshots/trading/one")
	var synced []string
	b := openSynced(t, root, func(f *os.File) error {
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
	err := NewStore(b).Write(t.Context(), "snapshots/trading/one", []byte("content"), Patience)
	want := []string{filepath.Dir(at) + "/file", filepath.Dir(at), filepath.Join(root, "venue/snapshots"), filepath.Join(root, "venue"), root}
	if err != nil || !slices.Equal(synced, want) {
		t.Errorf("%v were synced, not %v: %v", synced, want, err)
	}
	if content, err := b.ReadAll(t.Context(), "snapshots/trading/one"); err != nil || string(content) != "content" {
		t.Errorf("%q %v", content, err)
	}
}

func TestABlobThatCantBeSyncedOrIsGivenUpIsNotThere(t *testing.T) {
	var fails error
	folder := openSynced(t, t.TempDir(), func(*os.File) error { return fails })
	for name, b := range map[string]*blob.Bucket{"folder": folder, "memory": openTest(t, "mem://")} {
		t.Run(name, func(t *testing.T) {
			s := NewStore(b)
			if err := s.Write(t.Context(), "x", []byte("old"), Patience); err != nil {
				t.Fatal(err)
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if err := s.Write(ended, "x", []byte("new"), Patience); err == nil {
				t.Error("it was written although the context had ended")
			}
			if fails = errors.New("no space left"); name == "folder" {
				if err := s.Write(t.Context(), "x", []byte("new"), Patience); !errors.Is(err, fails) {
					t.Errorf("%v", err)
				}
			}
			fails = nil
			if content, err := s.Read(t.Context(), "x", 10); err != nil || string(content) != "old" {
				t.Errorf("%q %v", content, err)
			}
			// Whoever gives a blob up does not wait for it: its temporary file may still be there for a moment.
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				all, err := s.List(t.Context(), "")
				if err == nil && len(all) == 1 {
					return
				}
				if err != nil || time.Now().After(deadline) {
					t.Fatalf("%d are listed: %v", len(all), err)
				}
			}
		})
	}
}

// TestOnlyRegularFilesAreBlobs puts what hangs or fails when it is opened where blobs are: beside one, under a name that
// gocloud's driver would read on the way to it, and in the place of one that was just listed.
func TestOnlyRegularFilesAreBlobs(t *testing.T) {
	root := t.TempDir()
	s := NewStore(openTest(t, URLOf(root)))
	if err := s.Write(t.Context(), "all/one", []byte("content"), Patience); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"all/pipe", "all/one.attrs", "all/.pipe"} {
		if err := syscall.Mkfifo(filepath.Join(root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"all/link": "one", "all/nowhere": "none", "all/device": os.DevNull, "all/to-pipe": "pipe"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "all/folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	found, err := s.List(t.Context(), "all/")
	if err != nil || len(found) != 2 || found[0].Key != "all/link" || found[1].Key != "all/one" {
		t.Errorf("%v: %v", found, err)
	}
	for _, key := range []string{"all/pipe", "all/to-pipe", "all/device", "all/nowhere"} {
		if _, err := s.Read(t.Context(), key, 10); !Missing(err) {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{"all/one", "all/link"} {
		if content, err := s.Read(t.Context(), key, 4); err != nil || string(content) != "cont" {
			t.Errorf("%s: %q, %v", key, content, err)
		}
	}
	for _, key := range []string{"../all/one", "all//one", "/all/one", "all/../all/one", "."} {
		if _, err := s.Read(t.Context(), key, 10); err == nil {
			t.Errorf("%s was read", key)
		}
	}
	for _, prefix := range []string{"../", "../all/", "all/../../", "/all/", "all//", "./", "./all/"} {
		if found, err := s.List(t.Context(), prefix); err == nil {
			t.Errorf("below %s there are %v", prefix, found)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "flat"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := s.List(t.Context(), "flat/trading/0/"); len(found) != 0 || err != nil {
		t.Errorf("below a file there are %v: %v", found, err)
	}
}

// TestAPrefixStaysBelowItsFolder: what lies beside a bucket's folder is not listed, whatever the URL says.
func TestAPrefixStaysBelowItsFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "bucket")
	beside := openTest(t, URLOf(filepath.Join(filepath.Dir(root), "x")))
	if err := beside.WriteAll(t.Context(), "snapshots/trading/one", nil, nil); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]bool{"venue/": true, "a/b/": true, "venue": true, "../x/": false, "a/../../x/": false, "/x/": false, "./": false, "a//": false} {
		b, err := Open(t.Context(), URLOf(root)+"?prefix="+url.QueryEscape(prefix))
		if (err == nil) != want {
			t.Errorf("%s: %v", prefix, err)
		}
		if err == nil {
			b.Close()
		}
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

// TestAFailedWriteKeepsTheBlob: a write that fails, such as one on a full disk, neither replaces the blob nor leaves a temporary file.
func TestAFailedWriteKeepsTheBlob(t *testing.T) {
	root := t.TempDir()
	f, err := newFolder(root, false)
	if err != nil {
		t.Fatal(err)
	}
	full := &fullFolder{f, false}
	b := blob.NewBucket(full)
	t.Cleanup(func() { b.Close() })
	s := NewStore(b)
	for _, key := range []string{"witness", "new"} {
		full.full = false
		if key == "witness" {
			if err := s.Write(t.Context(), key, []byte("good"), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		full.full = true
		if err := s.Write(t.Context(), key, []byte("better"), time.Minute); err == nil {
			t.Errorf("%s: a write to a full disk succeeded", key)
		}
		if created, err := s.Create(t.Context(), key+"-created", []byte("better"), time.Minute); err == nil || created {
			t.Errorf("%s: a full disk has got another blob", key)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	if content, err := os.ReadFile(filepath.Join(root, "witness")); err != nil || string(content) != "good" {
		t.Errorf("the blob is now %q, %v", content, err)
	}
}

// fullFolder is a folder on a disk that may be full.
type fullFolder struct {
	*folder
	full bool
}

// NewTypedWriter returns a writer whose writes fail if the disk is full.
func (f *fullFolder) NewTypedWriter(ctx context.Context, key, contentType string, opts *driver.WriterOptions) (driver.Writer, error) {
	w, err := f.folder.NewTypedWriter(ctx, key, contentType, opts)
	if err != nil || !f.full {
		return w, err
	}
	named := w.(*folderWriter)
	readOnly, err := os.Open(named.Name())
	if err != nil {
		return nil, err
	}
	named.File.Close()
	named.File = readOnly
	return named, nil
}
