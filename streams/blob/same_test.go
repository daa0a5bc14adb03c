package blob_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

func TestSame(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"a folder":                 {"file://" + dir + "/x", "file://" + dir + "/x", true},
		"that is relative":         {"file://" + dir + "/x", "file://./x", true},
		"with a query":             {"file://" + dir + "/x/", "file://localhost" + dir + "/x?create_dir=false", true},
		"through a link":           {"file://" + dir, "file://./link", true},
		"another folder":           {"file://" + dir + "/x", "file://" + dir + "/y", false},
		"another part of a folder": {"file://" + dir + "/x", "file://" + dir + "/x?prefix=y/", false},
		"a bucket":                 {"s3://b?region=r&prefix=p/", "s3://b?prefix=p/&region=r", true},
		"another bucket":           {"s3://b", "gs://b", false},
		"at another endpoint":      {"s3://b?endpoint=x", "s3://b", false},
		"no URL":                   {":", ":", false},
	} {
		if got := blob.Same(c.a, c.b); got != c.want {
			t.Errorf("%s: %s and %s are the same: %v", name, c.a, c.b, got)
		}
	}
}
