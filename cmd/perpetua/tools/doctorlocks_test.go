package tools

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// keeping is a driver that takes writes and refuses to delete.
type keeping struct{ driver.Bucket }

type discarded struct{ io.Writer }

func (discarded) Close() error { return nil }
func (keeping) Close() error   { return nil }
func (keeping) NewTypedWriter(context.Context, string, string, *driver.WriterOptions) (driver.Writer, error) {
	return discarded{io.Discard}, nil
}
func (keeping) Delete(context.Context, string, *driver.DeleteOptions) error {
	return errors.New("it is locked")
}
func (keeping) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.PermissionDenied }

// TestABucketThatKeepsWhatItGets is right for an archive, and wrong for snapshots and uploads.
func TestABucketThatKeepsWhatItGets(t *testing.T) {
	bucket := gocloud.NewBucket(keeping{})
	defer bucket.Close()
	for keeps, want := range map[bool]verdict{true: isWarning, false: isFailed} {
		d := &diagnosis{}
		d.judgeWrites(t.Context(), "bucket", bucket, keeps)
		if len(d.findings) != 1 || !d.holds(want, "doctor-") {
			t.Errorf("keeps %t: %v", keeps, d.findings)
		}
	}
}

func TestJudgedLocks(t *testing.T) {
	asked := blob.Retention{For: time.Hour}
	for _, c := range []struct {
		found    *locks
		retained blob.Retention
		want     verdict
		part     string
	}{
		{&locks{Blobs: 4, Until: "2030-01-01T00:00:00Z", Mode: "compliance"}, asked, isGood, "4 of 4 objects of full ranges are locked, until 2030-01-01T00:00:00Z or later (compliance)"},
		{&locks{Blobs: 4, Until: "2030-01-01T00:00:00Z"}, blob.Retention{}, isGood, "by a policy of the bucket"},
		{&locks{Blobs: 4, Open: 4}, blob.Retention{}, isNote, "none of 4"},
		{&locks{Blobs: 4, Open: 1, Mode: "governance"}, asked, isWarning, "3 of 4"},
	} {
		d := &diagnosis{}
		d.judgeLocks("locks", c.found, c.retained)
		if len(d.findings) != 1 || !d.holds(c.want, c.part) {
			t.Errorf("%+v: %v", c, d.findings)
		}
	}
	d := &diagnosis{}
	d.judgeLocks("locks", nil, asked)
	if len(d.findings) > 0 {
		t.Errorf("without ranges: %v", d.findings)
	}
}

// TestLocksThatNoStoreKeeps: doctor fails if a retained archive is in a folder.
func TestLocksThatNoStoreKeeps(t *testing.T) {
	s := &settings.Settings{}
	s.Archive.Retention, s.Archive.Mode, s.Stores.ArchiveURL = "2d", "governance", blob.URLOf(t.TempDir())
	d := &diagnosis{}
	if d.checkLocks(t.Context(), s, nil); !d.holds(isFailed, "can't lock objects") {
		t.Errorf("%v", d.findings)
	}
	s.Archive.Retention = "none"
	d = &diagnosis{}
	if d.checkLocks(t.Context(), s, nil); len(d.findings) > 0 {
		t.Errorf("%v", d.findings)
	}
}
