package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// TestArchiveRetention refuses what no store could lock.
func TestArchiveRetention(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		retention, mode, at string
		want                time.Duration
		wrong               string // part of the error
	}{
		{"none", "governance", "file:///b", 0, ""},
		{"1827d", "governance", "s3://b", 1827 * day, ""},
		{"43848h", "compliance", "gs://b", 1827 * day, ""},
		{"1827d", "governance", "file:///b", 0, "can't lock objects"},
		{"1827d", "governance", "azblob://b", 0, "immutability policy"},
		{"23h", "governance", "s3://b", 0, "--archive-retention takes"},
		{"36501d", "governance", "s3://b", 0, "--archive-retention takes"},
		{"", "governance", "s3://b", 0, "--archive-retention takes"},
		{"none", "legal", "s3://b", 0, "--archive-retention-mode takes"},
	} {
		s := &Settings{}
		s.Archive.Retention, s.Archive.Mode, s.Stores.ArchiveURL = c.retention, c.mode, c.at
		r, err := s.ArchiveRetention(c.at)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) || r.For != c.want {
			t.Errorf("%+v: %v, %v", c, r, err)
		}
		if c.want > 0 && r.Mode != blob.Mode(c.mode) {
			t.Errorf("%+v: %v", c, r)
		}
		if again := s.checkArchiveRetention(); (again == nil) != (err == nil) {
			t.Errorf("%+v: %v at the start", c, again)
		}
	}
}
