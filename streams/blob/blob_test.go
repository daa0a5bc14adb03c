package blob_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

func TestAFolderIsMadeForItsOwnerAlone(t *testing.T) {
	ctx := context.Background()
	folder := filepath.Join(t.TempDir(), "data 1", blob.Folder) // with a character that URLs escape
	b, err := blob.Open(ctx, blob.URLOf(folder))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if ok, err := b.IsAccessible(ctx); !ok || err != nil {
		t.Error(ok, err)
	}
	if err := b.WriteAll(ctx, "snapshots/trading/one", []byte("content"), nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "snapshots", "snapshots/trading"} {
		info, err := os.Stat(filepath.Join(folder, path))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%q has mode %v: %v", path, info.Mode(), err)
		}
	}
	files, err := os.ReadDir(filepath.Join(folder, "snapshots/trading"))
	if err != nil || len(files) != 1 {
		t.Errorf("beside the blob there are %v: %v", files, err)
	}
}

func TestAFolderThatIsMissingIsAnErrorWhereItIsNotToBeMade(t *testing.T) {
	ctx := context.Background()
	folder := filepath.Join(t.TempDir(), "mount")
	if b, err := blob.Open(ctx, blob.URLOf(folder)+"?create_dir=false"); err == nil {
		b.Close()
		t.Error("it was made")
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := blob.Open(ctx, blob.URLOf(folder)+"?create_dir=false&prefix=venue/")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.WriteAll(ctx, "x", nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "venue/x")); err != nil {
		t.Error(err)
	}
}

func TestTheBucketIsOfAnEmbeddedKind(t *testing.T) {
	b, err := blob.Open(context.Background(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	for _, url := range []string{"", "/var/lib/blobs", "nosuch://x", "file://host/x", "file:///x?metadata=skip", "file://%zz"} {
		if b, err := blob.Open(context.Background(), url); err == nil {
			b.Close()
			t.Errorf("%q was opened", url)
		}
	}
}

// TestCheckURL checks that the error names the missing part of a URL. No bucket is opened.
func TestCheckURL(t *testing.T) {
	for at, want := range map[string]string{
		"file:///var/lib/blobs": "",
		"mem://":                "",
		"":                      "is not a URL: a folder is written like file:///var/lib/blobs",
		"/var/lib/blobs":        "is not a URL: a folder is written like file:///var/lib/blobs",
		"://":                   "is not a URL like",
		"s3://":                 "has no bucket name: use a URL like s3://bucket?region=eu-central-1",
		"gs://":                 "has no bucket name: use a URL like gs://bucket,",
		"ftp://bucket":          `unknown scheme "ftp"`,
	} {
		err := blob.CheckURL(at)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", at, err, want)
		}
	}
}
