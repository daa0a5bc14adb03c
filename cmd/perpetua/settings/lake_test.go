package settings

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLakeURL compares the place that the catalog names with the place of the files: the bucket's URL, its prefix, and the prefix of the keys.
func TestLakeURL(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ archive, topics, want string }{
		{"file:///var/blobs", "", "/var/blobs/lake/"},
		{"file:///var/blobs/", "test-", "/var/blobs/lake/test-/"},
		{"file:///var/blobs?prefix=a/", "test.", "/var/blobs/a/lake/test./"},
		{"file:///var/my%20blobs", "", "/var/my blobs/lake/"},
		{"file://./blobs", "", filepath.ToSlash(here) + "/blobs/lake/"},
		{"s3://bucket?region=eu-central-1", "", "s3://bucket/lake/"},
		{"s3://bucket?region=eu-central-1&prefix=a/", "test-", "s3://bucket/a/lake/test-/"},
		{"gs://bucket", "test-", "gs://bucket/lake/test-/"},
		{"azblob://container?prefix=a/", "", "az://container/a/lake/"},
		{"mem://", "", ""},
	} {
		var s Settings
		s.Stores.ArchiveURL, s.Kafka.Prefix = c.archive, c.topics
		got, err := s.LakeURL()
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("the archive in %s with the prefix %q has its files in %q (%v), not in %q", c.archive, c.topics, got, err, c.want)
		}
	}
}

// TestLakePrefix has files of venues with different topics in different folders.
func TestLakePrefix(t *testing.T) {
	for prefix, want := range map[string]string{"": "lake/", "test-": "lake/test-/"} {
		var s Settings
		s.Kafka.Prefix = prefix
		if got := s.LakePrefix(); got != want {
			t.Errorf("the prefix of %q is %q, not %q", prefix, got, want)
		}
	}
}
